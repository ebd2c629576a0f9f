"""One address of this door: what answers it, for whom, and how a path is matched with it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from toolgate.runtime import Runtime
from toolgate.server.fields import Nothing
from toolgate.server.request import Request
from toolgate.tenancy.keys import Key, Role

EVERY_ROLE = frozenset(Role)
# `{+name}` holds slashes too, as in RFC 6570.
_GREEDY = "{+"


class Route(NamedTuple):
    """A row of the table. `path` is a template such as `/v1/tools/{+name}`.

    `answer` takes a Request; `shown` answers who needs no key: everybody where `roles` is empty,
    else whoever is on this machine, if nobody else can be.
    `query` and `body` are the fields that it takes, `gives` the shape of what it answers, `codes`
    the problems that are its own.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Request], Awaitable[Any]]
    shown: Callable[[Runtime], Awaitable[Any]] | None = None
    query: type[msgspec.Struct] = Nothing
    body: Any = None
    gives: Any = None
    roles: frozenset[Role] = EVERY_ROLE
    codes: tuple[str, ...] = ()
    # Whether a client can keep the answer and ask whether it has changed.
    tagged: bool = False
    # Whether it needs a body; without one, an empty one will do.
    needs_body: bool = True
    # Whether it can also answer with a stream of events.
    streams: bool = False
    # Whether it looks at its query by itself.
    reads_query: bool = False

    def lets_in(self, key: Key) -> bool:
        """Whether it is for a key like this one."""
        return key.role in self.roles

    @property
    def takes(self) -> tuple[str, ...]:
        """The fields of the query."""
        return self.query.__struct_fields__

    @property
    def params(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(_name(part) for part in self.path.split("/") if part.startswith("{"))

    @property
    def address(self) -> str:
        """The path as OpenAPI writes it."""
        return self.path.replace(_GREEDY, "{")


class Found(NamedTuple):
    """What there is at a path, by method, and the names in it."""

    methods: Mapping[str, Route]
    names: tuple[str, ...] = ()


NOWHERE = Found(MappingProxyType({}))


class Table:
    """Paths to routes: whole paths by a look-up, templates part by part."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._exact: dict[str, Found] = {}
        self._templates: dict[tuple[str, ...], list[_Template]] = {}
        by_path: dict[str, dict[str, Route]] = {}
        for route in self.routes:
            methods = by_path.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"{route.method} {route.path} stands in the table twice")
            methods[route.method] = route
            if route.method == "GET":
                # The same answer, of which the server sends the head only.
                methods["HEAD"] = route
        for path, methods in by_path.items():
            if "{" not in path:
                self._exact[path] = Found(methods)
                continue
            template = _Template(path, methods)
            self._templates.setdefault(template.fixed, []).append(template)
        for templates in self._templates.values():
            # The one that says more about a path comes first.
            templates.sort(key=lambda one: (one.greedy is not None, -len(one.parts)))
        self._depths = sorted({len(fixed) for fixed in self._templates}, reverse=True)

    def find(self, scope: MutableMapping[str, Any]) -> Found:
        """What this request's path leads to."""
        found = self._exact.get(scope["path"])
        return found if found is not None else self._matched(_parts(scope))

    def _matched(self, parts: list[str]) -> Found:
        for depth in self._depths:
            for template in self._templates.get(tuple(parts[:depth]), ()):
                names = template.names(parts)
                if names is not None:
                    return Found(template.methods, names)
        return NOWHERE


class _Template:
    """A path with names in it; at most one of them holds slashes."""

    def __init__(self, path: str, methods: Mapping[str, Route]) -> None:
        self.methods = methods
        self.parts = path[1:].split("/")
        first = next(index for index, part in enumerate(self.parts) if part.startswith("{"))
        self.fixed = tuple(self.parts[:first])
        greedy = [index for index, part in enumerate(self.parts) if part.startswith(_GREEDY)]
        self.greedy = greedy[0] if greedy else None

    def names(self, parts: list[str]) -> tuple[str, ...] | None:
        more = len(parts) - len(self.parts)
        if more < 0 or (more and self.greedy is None):
            return None
        if more and self.greedy is not None:
            end = self.greedy + more + 1
            parts = [*parts[: self.greedy], "/".join(parts[self.greedy : end]), *parts[end:]]
        names: list[str] = []
        for mine, given in zip(self.parts, parts, strict=True):
            if mine.startswith("{"):
                if not given:
                    return None
                names.append(given)
            elif mine != given:
                return None
        return tuple(names)


def _name(part: str) -> str:
    return part.strip("{+}")


def _parts(scope: MutableMapping[str, Any]) -> list[str]:
    """The parts of a path. An encoded slash belongs to a name and parts nothing."""
    raw: bytes = scope.get("raw_path") or b""
    if not raw.startswith(b"/"):
        return scope["path"][1:].split("/")
    return [unquote(part) for part in raw[1:].decode("ascii", "replace").split("/")]
