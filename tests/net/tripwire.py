"""Sees every connection that this process makes, whichever library makes it."""

import ipaddress
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

Seen = list[tuple[str, int]]
_watching: list[Seen] = []
_barring: list[object] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and _watching and isinstance(args[1], tuple):
        host, port = cast("tuple[Any, ...]", args[1])[:2]
        for seen in _watching:
            seen.append((str(host), int(port)))
        if _barring:
            raise ConnectionRefusedError


# A hook stays as long as the process; without anybody watching it does nothing.
sys.addaudithook(_hook)


@contextmanager
def tripwire() -> Generator[Seen]:
    """The addresses that something connects to meanwhile."""
    seen: Seen = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


@contextmanager
def barred() -> Generator[Seen]:
    """The same, and nothing leaves: what connects is told that nobody is there."""
    with tripwire() as seen:
        _barring.append(seen)
        try:
            yield seen
        finally:
            _barring.remove(seen)


def hosts(seen: Seen) -> set[str]:
    """Of these the addresses, each in one notation."""
    return {str(ipaddress.ip_address(host)) for host, _port in seen}
