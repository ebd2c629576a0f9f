"""Text that every server takes. A tool's words can hold what UTF-8 or PostgreSQL cannot."""


def storable(text: str) -> str:
    """The same text; lone surrogates and NUL are written as their escapes."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
