"""What a program may touch, as one value. What is not named is not there."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

MEGABYTE = 1024 * 1024
# Where neither a policy nor the settings say how much.
MEMORY = 512 * MEGABYTE
PROCESSES = 64


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The roots a program reads and writes, where it may connect, and how much it may use.

    `hosts` are reached through a proxy of ours, by name; without any there is no network at all.
    `system` shows the programs and libraries of this machine, read only. What is `protected` cannot
    be written, wherever it lies and though it is not there yet; a folder that is `hidden` cannot be
    read either. `agreed` says of a root where it led when it was named; it leads nowhere else.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    agreed: Mapping[str, str] = MappingProxyType({})
    system: bool = True
    hosts: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    # Bytes, and processes at a time; 0: what the settings say.
    memory: int = 0
    processes: int = 0
    # Seconds of computing, and of waiting; 0: as long as whoever started it lets it.
    cpu: float = 60.0
    seconds: float = 60.0
    open_files: int = 256
    file_size: int = 64 * MEGABYTE
    # Of all that it puts into its writable folders; 0: as much as there is room for.
    written: int = 1024 * MEGABYTE
    files: int = 100_000
    # Bytes of output that are kept; a program that goes on writing is ended.
    output: int = MEGABYTE


def at_most(policy: Policy, *, memory: int, processes: int) -> Policy:
    """With nothing left open, and no more than this."""
    return msgspec.structs.replace(
        policy,
        memory=min(policy.memory or memory, memory),
        processes=min(policy.processes or processes, processes),
    )
