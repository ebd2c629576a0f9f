"""`embed_text`: texts as vectors."""

from collections.abc import Sequence
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.meaning.embedding import embedded, floats
from toolgate.tools.means import Means

_DIGITS = 6


async def embed_text(
    means: Means, call: Call, *, text: str = "", texts: Sequence[str] = ()
) -> dict[str, Any]:
    """Turn a text, or several, into vectors of length 1."""
    if bool(text) == bool(texts):
        raise ToolError("Give one `text`, or several as `texts`, and not both.")
    found = await embedded(means, call.caller, texts or [text])
    vectors = [[round(one, _DIGITS) for one in floats(vector)] for vector in found.vectors]
    told = {"embedding": vectors[0]} if text else {"embeddings": vectors}
    return {"model": found.model, "dimensions": len(vectors[0]), **told}
