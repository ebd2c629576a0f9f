"""What every section of the settings is made of: its base, and how values are read."""

import re
from typing import Annotated, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict

_HTTP = re.compile(r"https?://[^/:?#\s]")


class Part(BaseModel):
    """A section: unknown keys are refused, values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def store_url(url: str) -> str:
    if re.match(r"(sqlite:///|postgresql://).", url):
        return url
    raise ValueError("write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME")


def http_url(url: str) -> str:
    if url and not _HTTP.match(url):
        raise ValueError("write an address such as https://HOST or http://HOST:PORT")
    return url.rstrip("/")


def origin(url: str) -> str:
    url = http_url(url)
    if not re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[^/:?#@\[\]\s]+)(:\d{1,5})?", url):
        raise ValueError(
            "write where the page is, without a path: https://HOST or http://HOST:PORT"
        )
    return url


def redis_url(url: str) -> str:
    if url and not re.match(r"rediss?://.", url):
        raise ValueError("write redis://HOST:PORT or rediss://HOST:PORT")
    return url


def grpc_url(url: str) -> str:
    if url and not re.match(r"grpcs?://[^/:?#\s]", url):
        raise ValueError("write grpc://HOST:PORT, or grpcs://HOST:PORT with TLS")
    return url.rstrip("/")


def texts(given: object) -> object:
    if not isinstance(given, (list, tuple)):
        raise ValueError('write a list of texts, such as ["tools/*.yaml"]')
    return cast("object", given)


def _seconds(given: object) -> object:
    if isinstance(given, bool):
        raise ValueError("write a number of seconds")
    return given


Texts = Annotated[tuple[str, ...], BeforeValidator(texts)]
Seconds = Annotated[float, BeforeValidator(_seconds)]


def rate(given: str) -> str:
    if given and not re.fullmatch(r"\s*[1-9][0-9]{0,8}\s*/\s*(second|minute|hour|day)\s*", given):
        raise ValueError("write a rate such as 600/minute")
    return given
