"""Which of a body's media types is sent, and as what kind of body."""

import re
from typing import Any, NamedTuple, cast

_KINDS = (
    ("json", re.compile(r"application/json\Z")),
    ("json", re.compile(r"application/merge-patch\+json\Z")),
    ("json", re.compile(r"[\w.-]+/[\w.+-]+\+json\Z")),
    ("form", re.compile(r"application/x-www-form-urlencoded\Z")),
    ("multipart", re.compile(r"multipart/form-data\Z")),
    ("json", re.compile(r"\*/\*\Z|application/\*\Z")),
    ("text", re.compile(r"text/[\w.+-]+\Z|application/([\w.-]+\+)?(xml|yaml|x-yaml|graphql)\Z")),
    ("binary", re.compile(r"[\w.+-]+/[\w.+-]+\Z")),
)
_MEDIA = re.compile(r"[\w.+*-]+/[\w.+*-]+")
_STYLES = frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"})


class Media(NamedTuple):
    """One way to send a body."""

    kind: str
    type: str
    schema: Any
    # How the fields of a form are written, where the document says so.
    encoding: dict[str, Any]
    # The media type as it stands, which may show examples.
    fields: dict[str, Any]


def choice(content: Any) -> Media | None:
    """The way that says most: JSON before forms, forms before text, text before bytes."""
    given = cast("dict[Any, Any]", content) if isinstance(content, dict) else {}
    types = {str(name): _plain(str(name)) for name in given}
    for kind, pattern in _KINDS:
        for name, plain in types.items():
            if pattern.match(plain):
                media: Any = given.get(name)
                fields = cast("dict[str, Any]", media) if isinstance(media, dict) else {}
                sent = "application/json" if "*" in plain else plain
                encoding = _encoding(fields.get("encoding")) if kind == "form" else {}
                return Media(kind, sent, fields.get("schema", {}), encoding, fields)
    return None


def json_of(content: Any) -> Any:
    """The schema of the JSON that an answer has; `None` where it has none."""
    found = choice(content)
    return found.schema if found is not None and found.kind == "json" else None


def _plain(name: str) -> str:
    found = _MEDIA.match(name.strip().lower())
    return found[0] if found else ""


def _encoding(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in cast("dict[str, Any]", given if isinstance(given, dict) else {}).items():
        fields = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        style, explode = fields.get("style", "form"), fields.get("explode")
        if style not in _STYLES or not ("style" in fields or "explode" in fields):
            continue
        found[name] = {"style": style}
        if isinstance(explode, bool):
            found[name]["explode"] = explode
    return {"encoding": found} if found else {}
