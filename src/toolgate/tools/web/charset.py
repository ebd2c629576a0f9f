"""The text in bytes: by their mark, by what the server or the page says, or by what they are."""

import codecs
import re

_SAID = re.compile(r"charset\s*+=\s*+[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_IN_PAGE = re.compile(
    rb"<meta[^>]{0,200}?charset\s*+=\s*+[\"']?\s*+([\w.:-]{1,40})"
    rb"|<\?xml[^>]{0,100}?encoding\s*+=\s*+[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
_BEGINNING = 4_096
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# As browsers read what servers say; Python knows more, some of which take far too long.
_MEANT = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "utf8": "utf-8",
}
_KNOWN = re.compile(
    r"utf-(8|16|32)(-?[lb]e)?|(iso-8859|windows|cp)-?\d+(-\d+)?|cp1252|cp932|cp949|euc-jp|"
    r"iso-2022-jp|gb18030|big5|koi8-[ru]"
)
# What no text has: a byte of these is a sign of something else.
_ODD = bytes({*range(0x20), 0x7F} - {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B})
_MOST_ODD = 0.02


def decoded(body: bytes, content_type: str = "") -> tuple[str, str] | None:
    """The text and what it was written in; nothing where it is no text."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return _read(body[len(mark) :], name), name
    said = _SAID.search(content_type)
    name = _named(said[1]) if said else ""
    if not name and (found := _IN_PAGE.search(body, 0, _BEGINNING)):
        name = _named((found[1] or found[2]).decode("ascii", "replace"))
        # Whoever could read that did not read it by twos.
        name = "utf-8" if name.startswith(("utf-16", "utf-32")) else name
    if name and name != "utf-8":
        return (_read(body, name), name) if name.startswith("utf") or _is_text(body) else None
    if not _is_text(body):
        return None
    try:
        return _strictly(body), "utf-8"
    except UnicodeDecodeError:
        return (_read(body, name), name) if name else (_read(body, "cp1252"), "windows-1252")


def _named(given: str) -> str:
    name = given.strip().lower()
    name = _MEANT.get(name, name)
    return name if _KNOWN.fullmatch(name) and _is_codec(name) else ""


def _is_codec(name: str) -> bool:
    try:
        codecs.lookup(name)
    except LookupError:
        return False
    return True


def _is_text(body: bytes) -> bool:
    beginning = body[:_BEGINNING]
    odd = len(beginning) - len(beginning.translate(None, _ODD))
    return odd <= len(beginning) * _MOST_ODD and b"\0" not in beginning


def _strictly(body: bytes) -> str:
    """What was cut in the middle of a character loses that one."""
    return codecs.getincrementaldecoder("utf-8")().decode(body)


def _read(body: bytes, name: str) -> str:
    return codecs.getincrementaldecoder(name)("replace").decode(body)
