"""A capsule: an agent's own set of tools, and where it asks for more care than the tool does."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgspec

NO_OVERRIDES: Mapping[str, Any] = MappingProxyType({})


class Mode(StrEnum):
    """Whether a capsule starts from everything its tenant has, or from nothing."""

    ALL = "all"
    LISTED = "listed"


class NewerMessages(StrEnum):
    """What an agent does when newer messages wait before a call that cannot be taken back."""

    SUPERSEDE = "supersede"  # nothing runs; the newer turn takes its place
    ABSORB = "absorb"  # the turn takes them in, and goes on
    FORCE_COMPLETE = "force_complete"  # the turn goes on
    QUEUE = "queue"  # the turn goes on; they are a turn of their own, with a group of its own


class Activation(msgspec.Struct, frozen=True):
    """One tool in one capsule: switched on or off, with the agent's overrides."""

    enabled: bool = True
    overrides: Mapping[str, Any] = NO_OVERRIDES


class Capsule(msgspec.Struct, frozen=True):
    """What one agent may use. Without a capsule of its own, an agent has what its tenant has."""

    mode: Mode = Mode.ALL
    activations: Mapping[str, Activation] = MappingProxyType({})
    newer_messages: NewerMessages = NewerMessages.SUPERSEDE

    def has(self, tool: str) -> bool:
        """Whether this tool is in the capsule."""
        activation = self.activations.get(tool)
        if activation is None:
            return self.mode is Mode.ALL
        return activation.enabled

    def overrides(self, tool: str) -> Mapping[str, Any]:
        """What this agent asks for beyond the tool's own policy."""
        activation = self.activations.get(tool)
        return NO_OVERRIDES if activation is None else activation.overrides


EVERYTHING = Capsule()
NOTHING = Capsule(Mode.LISTED)
