"""Layers: what a role, a task or a delegation leaves of a set of tools. None can add one."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolgate.errors import InvalidRequest

GROUPS = ("read", "write", "code", "data", "web", "math", "all")
_SELECTOR = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}\Z")
_CATEGORY = re.compile(r"category:[^\s!]{1,64}(!web)?\Z")


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Allow intersects (`None` leaves all), deny always wins.

    Both hold selectors: a tool's name, `group:read`, `category:data`, `category:data!web` (those of
    it that do not reach the web), or a name with `*`.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    reason: str = ""


class Permissions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A role's flat permissions: categories, web access, an allow and a forbid list."""

    allowed_categories: tuple[str, ...] = ()
    web_access: bool = False
    allowed_tools: tuple[str, ...] = ()
    forbidden_tools: tuple[str, ...] = ()

    def layer(self, reason: str = "") -> Layer:
        """The layer that allows the same."""
        categories = (
            f"category:{category}" if self.web_access else f"category:{category}!web"
            for category in self.allowed_categories
        )
        return Layer(
            allow=(*self.allowed_tools, *categories), deny=self.forbidden_tools, reason=reason
        )


def checked(layer: Layer) -> Layer:
    """The layer, or `InvalidRequest`: a selector that means nothing would be believed to hold."""
    for selector in (*(layer.allow or ()), *layer.deny):
        check_selector(selector)
    return layer


def check_selector(selector: str) -> None:
    """`InvalidRequest` where it cannot select anything."""
    kind, colon, rest = selector.partition(":")
    if colon and kind == "group" and rest not in GROUPS:
        raise InvalidRequest(
            f"There is no group {rest[:40]!r}; there are {', '.join(GROUPS)}. Nothing was changed."
        )
    if colon and kind == "category" and not _CATEGORY.match(selector):
        raise InvalidRequest(f"{selector[:80]!r} is no selector; write category:NAME.")
    if not _SELECTOR.match(selector):
        raise InvalidRequest(
            f"{selector[:80]!r} is no selector; write a tool's name, group:read, category:data or "
            "a name with *."
        )


def is_name(selector: str) -> bool:
    """Whether it selects one tool, by its name."""
    return selector.partition(":")[0] not in {"group", "category"} and "*" not in selector


LayerKey = tuple[str, str]
"""The role (empty: everybody) and the layer's own name."""
Layers = Mapping[LayerKey, Layer]


def row_of(tenant: str, role: str, name: str, layer: Layer) -> dict[str, Any]:
    """A layer and whose it is, as operators are shown it."""
    return {"tenant": tenant, "role": role, "name": name} | msgspec.to_builtins(layer)


def rows_of(tenant: str, layers: Layers) -> list[dict[str, Any]]:
    """All of a tenant's, by role and name."""
    return [row_of(tenant, *key, layer) for key, layer in sorted(layers.items())]


def role_rows(tenant: str, layers: Layers) -> list[dict[str, Any]]:
    """Its roles by name, and how many layers each has."""
    return [
        {"role": role, "tenant": tenant, "layers": sum(whose == role for whose, _ in layers)}
        for role in sorted(roles_of(layers))
    ]


def roles_of(layers: Iterable[LayerKey]) -> frozenset[str]:
    """The roles that are on record."""
    return frozenset(role for role, _name in layers if role)
