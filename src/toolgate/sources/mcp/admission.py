"""What a server that was added may use of this machine: what the settings list, and no more.

Whoever may add servers need not be who may read this machine's variables and files, or who may let
its programs out.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from toolgate.net.errors import NotAllowed, NotSent
from toolgate.net.guard import Guard
from toolgate.settings.outward import McpServer

# Seconds that whoever knows the name of its host may take.
_LOOK_UP = 3.0


class Admission(NamedTuple):
    """Variables, folders and hosts for servers that were added."""

    env: Collection[str]
    roots: Sequence[str]
    hosts: Collection[str]
    path: Callable[[str], Path]
    guard: Guard
    # Folders that tools write.
    written: Sequence[str] = ()

    def refusal(self, given: McpServer) -> str:
        """What it asks for that is not listed, and what to write; empty where all is."""
        for name in (*given.headers_env.values(), *given.secrets_env.values()):
            if name not in self.env:
                return (
                    f"Servers that are added may not use the variable {name[:80]!r}. An operator "
                    f"of this machine can list it: [mcp] added_env = [{name[:80]!r}]"
                )
        if given.oauth.client_id:
            return (
                "Servers that are added may not name secrets for oauth. An operator of this "
                "machine can write the server into toolgate.toml."
            )
        for host in given.hosts:
            if not self._is_listed(host):
                return (
                    f"Servers that are added may not reach {host[:80]!r}. An operator of this "
                    f"machine can list it: [mcp] added_hosts = [{host[:80]!r}]"
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
        overlay = self.path(given.overlay).resolve() if given.overlay else None
        if overlay and any(overlay.is_relative_to(root) for root in self.written):
            return (
                f"The overlay {given.overlay[:80]!r} lies in a folder that tools write ([tools] "
                "roots), and it says what they may do. Put it elsewhere."
            )
        return ""

    async def unreachable(self, given: McpServer) -> str:
        """Why its address may not be reached; empty where it may, or where nobody knows yet. It is
        looked at again with every connection: a name can lead elsewhere tomorrow.
        """
        if not given.url:
            return ""
        try:
            async with asyncio.timeout(_LOOK_UP):
                await self.guard.check(given.url)
        except NotAllowed as error:
            return error.message
        except (NotSent, TimeoutError):
            # A name that is not found now may be later.
            return ""
        return ""

    def _is_listed(self, host: str) -> bool:
        """By the letter, or below a domain that is listed as `*.DOMAIN`; so are patterns."""
        asked = host.casefold()
        for one in self.hosts:
            listed = one.casefold()
            if asked == listed or (listed.startswith("*.") and asked.endswith(listed[1:])):
                return True
        return False
