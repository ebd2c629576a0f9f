"""Selectors, compiled: a name, `group:read`, `category:data`, `category:data!web`, `mail.*`."""

from functools import lru_cache
from typing import NamedTuple

from toolgate.gate.groups import categories_of
from toolgate.spec.tool import ToolSpec


class Glob(NamedTuple):
    """A name with stars. Matched from left to right without ever going back."""

    first: str
    between: tuple[str, ...]
    last: str

    def takes(self, name: str) -> bool:
        """Whether the parts stand in the name, in their order and apart."""
        end = len(name) - len(self.last)
        at = len(self.first)
        if at > end or not name.startswith(self.first) or not name.endswith(self.last):
            return False
        for part in self.between:
            at = name.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True


class Selection(NamedTuple):
    """What a list of selectors takes. An empty one takes nothing."""

    names: frozenset[str]
    groups: frozenset[str]
    categories: frozenset[str]
    # Of these categories only what does not reach the web.
    offline: frozenset[str]
    globs: tuple[Glob, ...]

    def has(self, spec: ToolSpec, groups: frozenset[str]) -> bool:
        """Whether it takes this tool."""
        if spec.name in self.names or not self.groups.isdisjoint(groups):
            return True
        if self.categories or self.offline:
            own = categories_of(spec)
            if own & self.categories or (own & self.offline and "web" not in groups):
                return True
        return any(glob.takes(spec.name) for glob in self.globs)


# Callers can send lists of their own: not more of them are kept than memory has room for.
@lru_cache(maxsize=512)
def selection(selectors: tuple[str, ...]) -> Selection:
    """The same list is compiled once."""
    names: set[str] = set()
    groups: set[str] = set()
    categories: set[str] = set()
    offline: set[str] = set()
    globs: list[Glob] = []
    for selector in selectors:
        kind, _, rest = selector.partition(":")
        if kind == "group":
            groups.add(rest)
        elif kind == "category" and rest.endswith("!web"):
            offline.add(rest.removesuffix("!web"))
        elif kind == "category":
            categories.add(rest)
        elif "*" in selector:
            first, *between, last = selector.split("*")
            globs.append(Glob(first, tuple(part for part in between if part), last))
        else:
            names.add(selector)
    return Selection(
        frozenset(names),
        frozenset(groups),
        frozenset(categories),
        frozenset(offline),
        tuple(globs),
    )
