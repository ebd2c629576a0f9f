"""What a program may touch, as one value. What is not named is not there."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

MEGABYTE = 1024 * 1024


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The roots a program reads and writes, where it may connect, and how much it may use.

    `hosts` are reached through a proxy of ours, by name; without any there is no network at all.
    `system` shows the programs and libraries of this machine, read only.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    system: bool = True
    hosts: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    memory: int = 512 * MEGABYTE
    # Seconds of computing, and of waiting; 0: as long as whoever started it lets it.
    cpu: float = 60.0
    seconds: float = 60.0
    processes: int = 64
    open_files: int = 256
    file_size: int = 64 * MEGABYTE
    # Bytes of output that are kept; a program that goes on writing is ended.
    output: int = MEGABYTE
