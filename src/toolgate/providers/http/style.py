"""How lists and objects are written where only text goes: the styles of OpenAPI."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import orjson

from toolgate.providers.http.template import shown

# By place, the first is what holds where nothing is said; `json` is one text, whatever it holds.
STYLES = {
    "path": ("simple", "label", "matrix", "json"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject", "json"),
    "header": ("simple", "json"),
    "cookie": ("form", "json"),
}
_BETWEEN = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}
Encode = Callable[[str], str]
Pairs = list[tuple[str, str]]


class Style(NamedTuple):
    """A style, and whether each item stands by itself."""

    name: str
    explode: bool


_DEEP = Style("deepObject", explode=True)
_FORM = Style("form", explode=True)


def default(place: str) -> Style:
    """What OpenAPI says where nothing is said."""
    name = STYLES[place][0]
    return Style(name, name == "form")


def usual(value: Any) -> Style:
    """How a field of a form, or an argument that nothing describes, is written."""
    items = cast("list[Any]", value) if isinstance(value, list) else ()
    nests = isinstance(value, dict) or any(isinstance(one, (dict, list)) for one in items)
    return _DEEP if nests else _FORM


def encoded(text: str) -> str:
    """Percent-encoded, so that nothing in it has a meaning in an address."""
    return quote(text, safe="")


def segment(name: str, value: Any, style: Style) -> str:
    """A value as it stands in a path, encoded but for what the style itself writes."""
    if style.name == "json":
        return encoded(_json(value))
    if style.name == "label":
        return "." + _joined(value, "." if style.explode else ",", encoded, explode=style.explode)
    if style.name == "matrix":
        return _matrix(encoded(name), value, explode=style.explode)
    return _joined(value, ",", encoded, explode=style.explode)


def line(value: Any, style: Style) -> str:
    """A value as it stands in a header."""
    return _json(value) if style.name == "json" else _joined(value, ",", str, explode=style.explode)


def pairs(name: str, value: Any, style: Style, encode: Encode = encoded) -> Pairs:
    """A value as it stands in a query, a form or cookies: names and values, encoded."""
    if not isinstance(value, (list, dict)):
        return [] if value is None else [(encode(name), encode(shown(value)))]
    if style.name == "json":
        return [(encode(name), encode(_json(value)))]
    if style.name == "deepObject":
        return [(encode(at), encode(of)) for at, of in _deep(name, value)]
    if not style.explode:
        between = _BETWEEN.get(style.name, ",")
        return [(encode(name), _joined(value, between, encode, explode=False))] if value else []
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [(encode(name), encode(shown(one))) for one in items if one is not None]
    fields = cast("dict[str, Any]", value).items()
    return [(encode(key), encode(shown(of))) for key, of in fields if of is not None]


def _joined(value: Any, between: str, encode: Encode, *, explode: bool) -> str:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        given = [(encode(key), encode(shown(of))) for key, of in fields if of is not None]
        equals = "=" if explode else between
        return between.join(f"{key}{equals}{of}" for key, of in given)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return between.join(encode(shown(one)) for one in items if one is not None)
    return encode(shown(value))


def _matrix(name: str, value: Any, *, explode: bool) -> str:
    if explode and isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return "".join(f";{encoded(key)}={encoded(shown(of))}" for key, of in fields)
    if explode and isinstance(value, list):
        return "".join(f";{name}={encoded(shown(one))}" for one in cast("list[Any]", value))
    return f";{name}={_joined(value, ',', encoded, explode=False)}"


def _deep(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, of in cast("dict[str, Any]", value).items():
            yield from _deep(f"{name}[{key}]", of)
    elif isinstance(value, list):
        for index, of in enumerate(cast("list[Any]", value)):
            yield from _deep(f"{name}[{index}]", of)
    elif value is not None:
        yield name, shown(value)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
