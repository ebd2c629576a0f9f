"""`echo`: the text that was given, as proof that a call goes all the way."""


async def echo(text: str) -> dict[str, str]:
    """Echo text back."""
    return {"text": text}
