"""The text of a document as a value: its version, and the line of everything in it."""

import re
from typing import Any, NamedTuple, cast

from toolgate.errors import InvalidSpecs
from toolgate.sources.openapi.prose import printable
from toolgate.spec.problem import Problem
from toolgate.spec.reader import LineOf
from toolgate.text.document import Text, decoded, parsed
from toolgate.text.refusal import Refusal
from toolgate.text.yaml_text import Limits

# Descriptions of real services have up to a few megabytes.
MAX_BYTES = 32 * 1024 * 1024
_LIMITS = Limits(most=MAX_BYTES, values=2_000_000)
# YAML takes them only in quotes, and its parser nowhere; they are in real documents by accident.
_STRAY = re.compile("[\x7f-\x84\x86-\x9f]")
# YAML allows these tabs, and its parser does not: on a line of blanks, and after a dash.
_TABS = re.compile(r"^(?:(?=[ ]*+\t)[ \t]++$|([ ]*+-)\t++)", re.MULTILINE)
_VERSION = re.compile(r"(2\.0|3\.0|3\.1)(\.\d{1,3})?(-[A-Za-z0-9.]{1,20})?\Z")


class Opened(NamedTuple):
    """A document that says that it is one of OpenAPI."""

    value: dict[str, Any]
    # "2.0", "3.0" or "3.1".
    version: str
    line_of: LineOf
    # The lines of characters that were replaced.
    stray: tuple[int, ...]


def open_document(raw: bytes, *, file: str) -> Opened:
    """The document in these bytes, or `InvalidSpecs` with line and cause."""
    try:
        text = decoded(raw, most=MAX_BYTES)
        stray = tuple(text.count("\n", 0, one.start()) + 1 for one in _STRAY.finditer(text))[:100]
        if stray:
            text = _STRAY.sub("\ufffd", text)
        found = _parsed(text, is_json=file.lower().endswith(".json"))
    except Refusal as refusal:
        raise refused(file, refusal.message, refusal.write, refusal.line) from None
    if not isinstance(found.value, dict):
        raise refused(file, "is no OpenAPI document", "It has to be an object.", 1)
    value = cast("dict[str, Any]", found.value)
    version = _version(value, file, found.line_of)
    if not isinstance(value.get("paths", {}), (dict, type(None))):
        raise refused(
            file, "has paths that are no object", "Each is a key.", found.line_of(("paths",))
        )
    return Opened(value, version, found.line_of, stray)


def _parsed(text: str, *, is_json: bool) -> Text:
    try:
        return parsed(text, is_json=is_json, limits=_LIMITS)
    except Refusal:
        mended = _TABS.sub(lambda found: f"{found[1]} " if found[1] else "", text)
        if is_json or mended == text:
            raise
    return parsed(mended, limits=_LIMITS)


def refused(file: str, message: str, write: str, line: int | None = None) -> InvalidSpecs:
    """A document that cannot be taken."""
    return InvalidSpecs([Problem(file=file, line=line, message=message, write=write)])


def _version(value: dict[str, Any], file: str, line_of: LineOf) -> str:
    key = "swagger" if "swagger" in value else "openapi"
    if key not in value:
        raise refused(
            file,
            "says nowhere that it is an OpenAPI document",
            'It begins with openapi: "3.1.0", or swagger: "2.0".',
            1,
        )
    # Without quotes it is a number.
    said = str(value[key])
    known = _VERSION.match(said)
    if known is None or (known[1] == "2.0") != (key == "swagger"):
        raise refused(
            file,
            f"is {key} {printable(said, 40)!r}",
            "OpenAPI 2.0, 3.0 and 3.1 are read.",
            line_of((key,)),
        )
    return known[1]
