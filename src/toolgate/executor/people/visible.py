"""Arguments as a person reads them: what hides, reorders or moves the text stands as its escape."""

import orjson

# Printable to Unicode, and nothing to see: fillers, joiners, selectors of a variant.
_UNSEEN = frozenset(
    {
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x2800,
        0x3164,
        0xFFA0,
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    }
)


def visible(text: str) -> str:
    """The text with every sign that cannot be seen written as `\\u202e`; line ends stay."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(sign if _is_seen(sign) else _escape(sign) for sign in text)


def visible_json(text: str) -> str:
    """The same in escapes that JSON knows, so that what is JSON stays the same JSON."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(sign if _is_seen(sign) else _escape_json(sign) for sign in text)


def shown(args: bytes) -> str:
    """JSON on several lines, so that one can be compared with the next."""
    return visible(orjson.dumps(orjson.loads(args), option=orjson.OPT_INDENT_2).decode())


def _is_seen(sign: str) -> bool:
    return sign == "\n" or (sign.isprintable() and ord(sign) not in _UNSEEN)


def _escape_json(sign: str) -> str:
    pair = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pair[at : at + 4]}" for at in range(0, len(pair), 4))


def _escape(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
