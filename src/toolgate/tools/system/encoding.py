"""Bytes of a file as text: which encoding it has, and where its characters begin and end."""

import codecs

import msgspec

from toolgate.errors import ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before the shorter one that it begins with.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Of so many bytes at the beginning one that is zero says that it is no text.
HEAD = 8_192
_UNUSUAL = "The file is not valid UTF-8; it was read as latin-1, which takes any byte."


class Text(msgspec.Struct, frozen=True):
    """What was read. `begin` and `end` are the bytes of the file that it was made of."""

    text: str
    encoding: str
    begin: int
    end: int
    note: str = ""


def is_binary(head: bytes) -> bool:
    """Whether it begins like something that is no text."""
    return marked(head)[1] == "" and b"\0" in head[:HEAD]


def marked(head: bytes) -> tuple[int, str]:
    """How long the mark at the beginning is, and the encoding that it tells."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return len(mark), name
    return 0, ""


def decoded(content: bytes, *, head: bytes, offset: int, is_end: bool, encoding: str) -> Text:
    """A piece of a file that begins at `offset`, cut where characters begin and end.

    `head` is how the file begins; `is_end` says that nothing comes after the piece.
    """
    length, told = marked(head)
    name = told if encoding in {"auto", "utf-16"} and told else encoding
    name = {"auto": "utf-8", "utf-16": "utf-16-le"}.get(name, name)
    skipped = max(0, length - offset) if told == name else 0
    content, begin = content[skipped:], offset + skipped
    shift = _first(content, name, begin - length) if begin > length else 0
    content, begin = content[shift:], begin + shift
    try:
        text, used = _whole(content, name) if is_end else _most(content, name)
    except UnicodeDecodeError:
        if encoding != "auto" or told:
            raise ToolError(
                f"That is no {encoding if encoding != 'auto' else name} text. Read it with "
                "encoding 'latin-1', or 'base64' where it is binary."
            ) from None
        return Text(content.decode("latin-1"), "latin-1", begin, begin + len(content), _UNUSUAL)
    return Text(text, name, begin, begin + used)


def _whole(content: bytes, name: str) -> tuple[str, int]:
    return content.decode(name), len(content)


def _most(content: bytes, name: str) -> tuple[str, int]:
    """All whole characters, and how many bytes they have."""
    decoder = codecs.getincrementaldecoder(name)("strict")
    text = decoder.decode(content)
    return text, len(content) - len(decoder.getstate()[0])


def _first(content: bytes, name: str, at: int) -> int:
    """How many bytes at the beginning belong to a character before it."""
    if name == "utf-8":
        return next((i for i, byte in enumerate(content[:4]) if byte & 0xC0 != 0x80), 0)
    if name.startswith("utf-16"):
        odd = at % 2
        high = content[odd + 1 : odd + 2] if name.endswith("le") else content[odd : odd + 1]
        return odd + (2 if high and 0xDC <= high[0] <= 0xDF else 0)
    return -at % 4 if name.startswith("utf-32") else 0
