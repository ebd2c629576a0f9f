"""The secrets that settings name: what stands in their variables, and in their addresses."""

from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

_VARIABLE = "_env"


def known_secrets(settings: BaseModel, environ: Mapping[str, str]) -> frozenset[str]:
    """Every text that must not be logged or stored."""
    return frozenset(text for text in _found("", settings, environ) if text)


def _found(name: str, value: object, environ: Mapping[str, str]) -> Iterator[str]:
    if isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from _found(field, getattr(value, field), environ)
    elif isinstance(value, str):
        if name.endswith(_VARIABLE):
            yield environ.get(value, "")
        elif "://" in value:
            yield from _in_address(value)
    elif isinstance(value, Mapping):
        for key, of in cast("Mapping[str, object]", value).items():
            # A section of any number of names: `headers_env` holds variables, others parts.
            yield from _found(name if name.endswith(_VARIABLE) else key, of, environ)
    elif isinstance(value, tuple):
        for of in cast("tuple[object, ...]", value):
            yield from _found(name, of, environ)


def _in_address(url: str) -> Iterator[str]:
    try:
        password = urlsplit(url).password or ""
    except ValueError:
        return
    yield password
    yield unquote(password)
