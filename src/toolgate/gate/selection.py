"""Selectors, compiled: a name, `group:read`, `category:data`, `category:data!web`, `mail.*`."""

import re
from functools import lru_cache
from typing import NamedTuple

from toolgate.gate.groups import categories_of
from toolgate.spec.tool import ToolSpec


class Selection(NamedTuple):
    """What a list of selectors takes. An empty one takes nothing."""

    names: frozenset[str]
    groups: frozenset[str]
    categories: frozenset[str]
    # Of these categories only what does not reach the web.
    offline: frozenset[str]
    pattern: re.Pattern[str] | None

    def has(self, spec: ToolSpec, groups: frozenset[str]) -> bool:
        """Whether it takes this tool."""
        if spec.name in self.names or not self.groups.isdisjoint(groups):
            return True
        if self.categories or self.offline:
            own = categories_of(spec)
            if own & self.categories or (own & self.offline and "web" not in groups):
                return True
        return self.pattern is not None and self.pattern.fullmatch(spec.name) is not None


@lru_cache(maxsize=4_096)
def selection(selectors: tuple[str, ...]) -> Selection:
    """The same list is compiled once."""
    names: set[str] = set()
    groups: set[str] = set()
    categories: set[str] = set()
    offline: set[str] = set()
    globs: list[str] = []
    for selector in selectors:
        kind, _, rest = selector.partition(":")
        if kind == "group":
            groups.add(rest)
        elif kind == "category" and rest.endswith("!web"):
            offline.add(rest.removesuffix("!web"))
        elif kind == "category":
            categories.add(rest)
        elif "*" in selector:
            globs.append(".*".join(re.escape(part) for part in selector.split("*")))
        else:
            names.add(selector)
    return Selection(
        frozenset(names),
        frozenset(groups),
        frozenset(categories),
        frozenset(offline),
        re.compile("|".join(globs), re.DOTALL) if globs else None,
    )
