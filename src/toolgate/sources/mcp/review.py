"""What an operator sees of MCP servers, and agrees to."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from toolgate.errors import InvalidRequest
from toolgate.settings.outward import McpServer
from toolgate.sources.mcp.definition import described, differences
from toolgate.sources.mcp.judging import LOOK, Judged
from toolgate.sources.mcp.servers import Servers
from toolgate.sources.mcp.source import McpSource
from toolgate.tenancy.names import nearest
from toolgate.tenancy.tenancy import Tenancy
from toolgate.upstreams.suspicion import shown

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
            **dict.fromkeys(self._servers.beside(), "plugin"),
            **dict.fromkeys(added, "store"),
            **dict.fromkeys(self._servers.settings, "settings"),
        }
        wanted = self._servers.wanted()
        return [
            _row(name, listed[name], wanted.get(name), self._servers) for name in sorted(listed)
        ]

    async def follow(self) -> None:
        """Use those that there are now."""
        await self._servers.follow()

    async def tested(self, name: str) -> dict[str, Any]:
        """Ask a server now, and say how it is. Only one that is in use is ever reached."""
        source = await self._servers.look(name, PATIENCE)
        return {
            "name": name,
            "ok": source.member.is_checked,
            "problem": source.problem,
            "server": _itself(source.member.upstream.server_info),
            "tools": len(source.judged.known),
            "held": sorted(source.judged.held),
        }

    async def shown(self, name: str) -> dict[str, Any]:
        """One server as it is now, with the last lines that its program complained with. In a house
        that asks none this one is asked, by a connection for this alone.
        """
        rows = {row["name"]: row for row in self.rows()}
        if name not in rows:
            raise InvalidRequest(f"There is no MCP server {name[:80]!r}." + nearest(name, rows))
        source = self._servers.sources.get(name)
        if source is None:
            return rows[name] | {"server": {}, "waiting": [], "last_words": []}
        if not self._servers.asks:
            one = await self._servers.tried(name, PATIENCE)
            now = {"state": "up" if one.answers else "away", "problem": one.problem}
            return rows[name] | now | _more(one.judged, one.info, one.last_words)
        upstream = source.member.upstream
        return rows[name] | _more(source.judged, upstream.server_info, upstream.last_words)

    async def examined(self) -> list[dict[str, Any]]:
        """Every server that is switched on, asked by a connection for this alone; nothing of it is
        agreed to.
        """
        wanted = self._servers.wanted()
        found = await asyncio.gather(*(self._servers.tried(one, PATIENCE) for one in wanted))
        return [
            {
                "name": name,
                "origin": self._origin(name),
                "is_program": bool(given.command),
                "ok": one.answers,
                "problem": one.problem,
                "server": _itself(one.info),
                "tools": len(one.judged.known),
                "held": sorted(one.judged.held),
            }
            for (name, given), one in zip(wanted.items(), found, strict=True)
        ]

    def _origin(self, name: str) -> str:
        if name in self._servers.settings:
            return "settings"
        return "store" if name in self._tenancy.world.servers.added else "plugin"

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
        why = why or await self._servers.admission.unreachable(given)
        if why:
            raise InvalidRequest(f"{why} Nothing was changed.")
        await by.add_server(name, given)
        await self._servers.follow()

    async def remove(self, by: Tenancy, name: str) -> None:
        """Use a server no more that was added."""
        await by.remove_server(name)
        await self._servers.follow()


def _more(judged: Judged, info: Mapping[str, Any], last_words: Sequence[str]) -> dict[str, Any]:
    return {
        "tools": len(judged.known),
        "held": len(judged.held),
        "server": _itself(info),
        "waiting": sorted(judged.held),
        "last_words": list(last_words),
    }


def _itself(info: Mapping[str, Any]) -> dict[str, str]:
    """How a server calls itself, in characters that anybody sees."""
    return {key: shown(str(info[key])) for key in ("name", "version") if key in info}


def _row(name: str, origin: str, wanted: McpServer | None, servers: Servers) -> dict[str, Any]:
    source = servers.sources.get(name)
    given = wanted or servers.settings.get(name)
    where = "" if given is None else given.url or " ".join((*given.command, *given.args))
    if source is None:
        state = "off"
    elif not servers.asks:
        state = "not asked"
    else:
        state = "up" if source.member.is_checked else "away"
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
        # Who is told it looks at it.
        "reason": held.reason.partition(f"; {LOOK}")[0],
        "fingerprint": held.pin.fingerprint,
        "is_new": agreed is None,
        "lines": described(now) if agreed is None else differences(agreed, now),
    }
