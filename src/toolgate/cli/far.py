"""A running server, as commands ask it: the same questions that they ask the local store."""

import os
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote

import typer

from toolgate.client.address import is_here, read_address
from toolgate.client.reading import Pages
from toolgate.client.wire import Wire
from toolgate.errors import InvalidRequest, Unauthenticated

T = TypeVar("T")
KEY = "TOOLGATE_KEY"
URL = "TOOLGATE_URL"
NO_KEY = f"A server is asked with a key: set {KEY}, or name a file with it: --key-file PATH"
# The servers that this command has asked: what they say can have any shape.
HEARD: set[str] = set()
_ADMIN = "/v1/admin"
_MOST_KEY_FILE = 16_384
_MOST_PAGES = 1_000_000
# A call may take as long as its tool does, and wait for a person besides.
_PATIENCE = 900.0

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar=URL,
        show_envvar=False,
        help=f"A running server instead of the local store; or {URL}. Its key comes by {KEY}.",
    ),
]
# Never the key itself: whoever lists processes would see it.
KeyFile = Annotated[
    Path | None, typer.Option("--key-file", help=f"A file with the server's key, instead of {KEY}.")
]


class Place(NamedTuple):
    """Where a command works: on the store that the settings name, or on a running server."""

    config: Path | None
    url: str = ""
    key_file: Path | None = None

    @property
    def is_far(self) -> bool:
        """Whether it is a running server."""
        return bool(self.url)

    @property
    def typed(self) -> str:
        """The options that name it, to be typed again; what a variable says needs none."""
        told = "" if self.config is None else f" --config {shlex.quote(str(self.config))}"
        if self.url and self.url != os.environ.get(URL):
            told += f" --url {shlex.quote(self.url)}"
        return (
            told
            if self.key_file is None
            else f"{told} --key-file {shlex.quote(str(self.key_file))}"
        )

    @property
    def has_key(self) -> bool:
        """Whether a key was given for it, be it a good one or not."""
        return self.key_file is not None or bool(os.environ.get(KEY, "").strip())


class Server:
    """One running server. What is left empty is not sent."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def url(self) -> str:
        """Where it is."""
        return self._wire.url

    async def get(self, path: str, *names: str, **query: Any) -> Any:
        """`GET` below `/v1/admin`."""
        return await self._wire.request("GET", _path(path, names), query=_given(query))

    async def each(
        self, path: str, field: str | None = None, *, most: int | None = None, **query: Any
    ) -> list[Any]:
        """A list below `/v1/admin`, page by page; so many at the most."""
        found: list[Any] = []
        async with aclosing(self.pages(path, **query)) as pages:
            async for page in pages:
                found += page[field or path]
                if most is not None and len(found) >= most:
                    break
        return found[:most]

    async def pages(self, path: str, **query: Any) -> AsyncGenerator[Any]:
        """The same, a page at a time: what is written out at once may be long."""
        cursor, known = "", Pages(_MOST_PAGES)
        while True:
            page = await self.get(path, cursor=cursor, **query)
            yield page
            cursor = known.following(page)
            if not cursor:
                return

    async def put(self, path: str, *names: str, **body: Any) -> Any:
        """`PUT` below `/v1/admin`."""
        return await self._wire.request("PUT", _path(path, names), body=body)

    async def post(self, path: str, *names: str, **body: Any) -> Any:
        """`POST` below `/v1/admin`."""
        return await self._wire.request("POST", _path(path, names), body=body, seconds=_PATIENCE)

    async def delete(self, path: str, *names: str, **query: Any) -> Any:
        """`DELETE` below `/v1/admin`."""
        return await self._wire.request("DELETE", _path(path, names), query=_given(query))

    async def ask(self, method: str, path: str, *names: str, body: Any = None, **query: Any) -> Any:
        """Anything else below `/v1`."""
        target = "/".join([f"/v1/{path}", *(quote(name, safe="") for name in names)])
        return await self._wire.request(
            method, target, query=_given(query), body=body, seconds=_PATIENCE
        )

    async def look(self, path: str) -> Any:
        """What needs no key, such as `/readyz`."""
        return await self._wire.request("GET", path)


Far = Callable[[Server], Awaitable[T]]


async def reach(place: Place, work: Far[T]) -> T:
    """Do the work on the server; `InvalidRequest` where there is no key for it."""
    _not_in_the_clear(place.url)
    async with Wire(place.url, _key(place)) as wire:
        HEARD.add(place.url)
        try:
            return await work(Server(wire))
        except Unauthenticated:
            raise Unauthenticated(
                f"The server takes no such key: set a valid one in {KEY}, or name a file with it: "
                "--key-file PATH."
            ) from None


def _not_in_the_clear(url: str) -> None:
    """The library can be told that a network is secret; a command that is pasted cannot."""
    address = read_address(url, allow_http=True)
    if not address.is_encrypted and not is_here(address.host):
        raise InvalidRequest(
            f"A key would cross the network in the clear to {address.host!r}. Use https://, or a "
            "tunnel to this machine, such as ssh -L, and its address here."
        )


def _key(place: Place) -> str:
    if place.key_file is None:
        key = os.environ.get(KEY, "").strip()
        if not key:
            raise InvalidRequest(NO_KEY)
        return key
    try:
        with place.key_file.open(encoding="utf-8") as file:
            return file.read(_MOST_KEY_FILE).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidRequest(f"The key file {place.key_file} cannot be read ({why}).") from None


def _path(path: str, names: tuple[str, ...]) -> str:
    return "/".join([f"{_ADMIN}/{path}", *(quote(name, safe="") for name in names)])


def _given(query: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value not in ("", None, False)}
