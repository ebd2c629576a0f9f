"""What a server that was added may use of this machine: what the settings list, and no more.

Whoever may add servers need not be who may read this machine's variables and files.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from toolgate.settings.outward import McpServer


class Admission(NamedTuple):
    """Variables and folders for servers that were added."""

    env: Collection[str]
    roots: Sequence[str]
    path: Callable[[str], Path]

    def refusal(self, given: McpServer) -> str:
        """What it asks for that is not listed, and what to write; empty where all is."""
        for name in (*given.headers_env.values(), *given.secrets_env.values()):
            if name not in self.env:
                return (
                    f"Servers that are added may not use the variable {name[:80]!r}. An operator "
                    f"of this machine can list it: [mcp] added_env = [{name[:80]!r}]"
                )
        roots = [self.path(root).resolve() for root in self.roots]
        files = (given.overlay,) if given.overlay else ()
        for place in (*given.readable, *given.writable, *files):
            found = self.path(place).resolve()
            if not any(found.is_relative_to(root) for root in roots):
                return (
                    f"Servers that are added may not use {place[:80]!r}. An operator of this "
                    "machine can list its folder: [mcp] added_roots = ['FOLDER']"
                )
        return ""
