"""What a tool does to the world, in the words that steer the executor."""

from enum import StrEnum


class Effect(StrEnum):
    """How far a call can be repeated or taken back. It decides retry, cancel, approval and undo."""

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    COMPENSATABLE = "compensatable"
    IRREVERSIBLE = "irreversible"

    @property
    def repeatable(self) -> bool:
        """Running it twice equals running it once."""
        return self in {Effect.PURE, Effect.IDEMPOTENT}

    def is_weaker_than(self, other: "Effect") -> bool:
        """Whether it asks for less care. They are listed in that order."""
        order = list(Effect)
        return order.index(self) < order.index(other)


class SideEffect(StrEnum):
    """What a tool touches while it runs."""

    LOCAL_EXEC = "local_exec"
    CALLS_LLM = "calls_llm"
    MODIFIES_FILES = "modifies_files"
    NETWORK_ACCESS = "network_access"
    SYSTEM_STATE = "system_state"
    READ_ONLY = "read_only"


CHANGES_STATE = frozenset({SideEffect.MODIFIES_FILES, SideEffect.SYSTEM_STATE})
# What brings back words that others wrote: other machines, programs, models.
BRINGS_WORDS = frozenset({SideEffect.NETWORK_ACCESS, SideEffect.LOCAL_EXEC, SideEffect.CALLS_LLM})


class Permission(StrEnum):
    """What a tool needs from its host."""

    NETWORK = "network"
    FILESYSTEM = "filesystem"
    SHELL = "shell"
    COMPUTE = "compute"


# The same, by what a tool needs: what stands in files, too.
REACHES_WORDS = frozenset({Permission.NETWORK, Permission.FILESYSTEM, Permission.SHELL})


class Execution(StrEnum):
    """Where a call runs: in the process that was asked, or in a worker, from a queue."""

    INLINE = "inline"
    QUEUED = "queued"


class CallerKind(StrEnum):
    """How a call arrives: by itself, or as a step of a chain."""

    DIRECT = "direct"
    CHAIN = "chain"
