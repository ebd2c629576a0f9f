"""`echo`: the text that was given, as proof that a call goes all the way."""

from toolgate.call import Call
from toolgate.tools.means import Means


async def echo(_means: Means, _call: Call, *, text: str) -> dict[str, str]:
    """Echo text back."""
    return {"text": text}
