"""A persona: what it is kept from, with the reason, and whether it may add tools."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class Restriction(msgspec.Struct, frozen=True):
    """One tool for one persona. A yes adds nothing; it only takes the place of a no."""

    allowed: bool
    reason: str = ""


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """`can_add_tools` is `None` where nobody has said."""

    can_add_tools: bool | None = None
    restrictions: Mapping[str, Restriction] = MappingProxyType({})


UNLISTED = Persona()
