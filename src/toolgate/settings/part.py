"""What every section of the settings is made of: its base, and how values are read."""

import re
from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

_HTTP = re.compile(r"https?://[^/:?#\s]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
# So many small letters and digits without a break are a key, and no name.
_LIKE_A_KEY = re.compile(r"(?=[A-Z0-9]*[a-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{16}")


NOT_A_VALUE = "the name of the variable that holds it, such as MY_TOKEN, and not its value"


class Part(BaseModel):
    """A section: unknown keys are refused, values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def store_url(url: str) -> str:
    if re.match(r"(sqlite:///|postgresql://).", url):
        return url
    raise ValueError("write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME")


def owner_url(url: str) -> str:
    if not url or re.match(r"postgresql://.", url):
        return url
    raise ValueError("write postgresql://OWNER:PASSWORD@HOST/NAME; a file of SQLite has no owner")


def http_url(url: str) -> str:
    if url and not _HTTP.match(url):
        raise ValueError("write an address such as https://HOST or http://HOST:PORT")
    return url.rstrip("/")


def is_variable(given: str) -> bool:
    """Whether it looks like the name of an environment variable, and not like what it holds."""
    return _VARIABLE.match(given) is not None and not _LIKE_A_KEY.search(given)


def variable(given: str) -> str:
    """The name of a variable. What is none may be a secret: it is not repeated."""
    if given and not is_variable(given):
        raise ValueError(f"write {NOT_A_VALUE}")
    return given


def variables(given: Mapping[str, str]) -> Mapping[str, str]:
    """The same by name."""
    for name, one in given.items():
        if not is_variable(one):
            raise ValueError(f"{name[:60]!r}: write {NOT_A_VALUE}")
    return given


def origin(url: str) -> str:
    url = http_url(url)
    if not re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[^/:?#@\[\]\s]+)(:\d{1,5})?", url):
        raise ValueError(
            "write where the page is, without a path: https://HOST or http://HOST:PORT"
        )
    return url


def function(given: str) -> str:
    """`module:function`, as Python names them."""
    module, _, name = given.partition(":")
    if given and not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError("write MODULE:FUNCTION, such as my_agents:research")
    return given


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


Variable = Annotated[str, AfterValidator(variable)]
Variables = Annotated[Mapping[str, str], AfterValidator(variables)]
Texts = Annotated[tuple[str, ...], BeforeValidator(texts)]
Seconds = Annotated[float, BeforeValidator(_seconds)]


def rate(given: str) -> str:
    if given and not re.fullmatch(r"\s*[1-9][0-9]{0,8}\s*/\s*(second|minute|hour|day)\s*", given):
        raise ValueError("write a rate such as 600/minute")
    return given
