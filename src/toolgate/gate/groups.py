"""Which groups a tool belongs to, from what it says about itself."""

from toolgate.spec.effect import CHANGES_STATE, Effect, Permission, SideEffect
from toolgate.spec.tool import ToolSpec

_CODE = frozenset({"code"})
_DATA = frozenset({"data"})
_WEB = frozenset({"web"})
_MATH = frozenset({"math", "native_math", "native-math"})


def groups_of(spec: ToolSpec) -> frozenset[str]:
    """Of `tenancy.layer.GROUPS`, those that this tool is in.

    What may change something is in `write`, and so is what does not say; everything else is `read`.
    """
    categories = categories_of(spec)
    effects = frozenset(spec.side_effects)
    writes = spec.effect is not Effect.PURE or spec.destructive or bool(effects & CHANGES_STATE)
    found = {"all", "write" if writes else "read"}
    if (
        categories & _CODE
        or Permission.SHELL in spec.permissions
        or SideEffect.LOCAL_EXEC in effects
    ):
        found.add("code")
    if categories & _DATA:
        found.add("data")
    if (
        categories & _WEB
        or Permission.NETWORK in spec.permissions
        or SideEffect.NETWORK_ACCESS in effects
    ):
        found.add("web")
    if categories & _MATH:
        found.add("math")
    return frozenset(found)


def categories_of(spec: ToolSpec) -> frozenset[str]:
    """All that it is filed under."""
    return frozenset((spec.category, *spec.categories)) - {""}
