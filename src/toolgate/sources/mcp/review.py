"""What an operator sees of MCP servers, and agrees to."""

from collections.abc import Mapping
from typing import Any

from toolgate.errors import InvalidRequest
from toolgate.settings.outward import McpServer
from toolgate.sources.mcp.definition import described, differences
from toolgate.sources.mcp.servers import Servers
from toolgate.sources.mcp.source import McpSource
from toolgate.sources.mcp.suspicion import shown
from toolgate.tenancy.names import nearest
from toolgate.tenancy.tenancy import Tenancy

# How long a server gets to say what it has, when somebody waits for that.
PATIENCE = 20.0


class Desk:
    """The operators' side of the servers."""

    def __init__(self, servers: Servers, tenancy: Tenancy) -> None:
        self._servers = servers
        self._tenancy = tenancy

    def rows(self) -> list[dict[str, Any]]:
        """Every server, in use or not, by name."""
        added = self._tenancy.world.servers.added
        listed = {
            **dict.fromkeys(added, "store"),
            **dict.fromkeys(self._servers.settings, "settings"),
        }
        wanted = self._servers.wanted()
        return [
            _row(name, listed[name], wanted.get(name), self._servers) for name in sorted(listed)
        ]

    async def tested(self, name: str) -> dict[str, Any]:
        """Ask a server now, and say how it is. Only one that is in use is ever reached."""
        source = await self._servers.look(name, PATIENCE)
        told = source.member.upstream.server_info
        return {
            "name": name,
            "ok": source.member.is_checked,
            "problem": source.problem,
            "server": {key: shown(str(told[key])) for key in ("name", "version") if key in told},
            "tools": len(source.judged.known),
            "held": sorted(source.judged.held),
        }

    async def waiting(self, name: str) -> list[dict[str, Any]]:
        """What of a server waits: why, and what is different from what was agreed to.

        All of it is written out, so that it can be looked at.
        """
        source = await self._servers.look(name, PATIENCE)
        agreed = await self._tenancy.pinned(name)
        return [_waits(own, source, agreed.get(own)) for own in sorted(source.judged.held)]

    async def approve(self, by: Tenancy, name: str, tools: Mapping[str, str]) -> list[str]:
        """Agree to tools as they were shown, each by its fingerprint; they can be called then.

        A tool that has changed since then is not what was looked at: `InvalidRequest`.
        """
        source = self._servers.source(name)
        held = source.judged.held
        for own, fingerprint in tools.items():
            if own not in held:
                raise InvalidRequest(
                    f"{own[:80]!r} of {name!r} does not wait for anybody; nothing was changed."
                    + nearest(own, held)
                )
            if held[own].pin.fingerprint != fingerprint:
                raise InvalidRequest(
                    f"{own[:80]!r} of {name!r} has changed since it was looked at; nothing was "
                    f"changed. Look again: toolgate servers diff {name}"
                )
        await by.pin_tools(name, {own: held[own].pin for own in tools})
        await self._servers.follow()
        return sorted(tools)

    async def add(self, by: Tenancy, name: str, given: McpServer) -> None:
        """Use another server from now on."""
        if name in self._servers.settings:
            raise InvalidRequest(
                f"The settings have a server {name!r}; nothing was changed. Use another name."
            )
        why = self._servers.admission.refusal(given)
        if why:
            raise InvalidRequest(f"{why} Nothing was changed.")
        await by.add_server(name, given)
        await self._servers.follow()

    async def remove(self, by: Tenancy, name: str) -> None:
        """Use a server no more that was added."""
        await by.remove_server(name)
        await self._servers.follow()


def _row(name: str, origin: str, wanted: McpServer | None, servers: Servers) -> dict[str, Any]:
    source = servers.sources.get(name)
    given = wanted or servers.settings.get(name)
    where = "" if given is None else given.url or " ".join((*given.command, *given.args))
    state = "off" if source is None else "up" if source.member.is_checked else "away"
    return {
        "name": name,
        "origin": origin,
        "where": shown(where, 200),
        "state": state,
        "tools": 0 if source is None else len(source.judged.known),
        "held": 0 if source is None else len(source.judged.held),
        "problem": "" if source is None else source.problem,
    }


def _waits(own: str, source: McpSource, agreed: Mapping[str, Any] | None) -> dict[str, Any]:
    held = source.judged.held[own]
    now = held.pin.definition
    return {
        "tool": own,
        "shown": shown(own),
        "reason": held.reason,
        "fingerprint": held.pin.fingerprint,
        "is_new": agreed is None,
        "lines": described(now) if agreed is None else differences(agreed, now),
    }
