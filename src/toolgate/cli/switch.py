"""Switching a tool on and off. The off switch works also when the definitions cannot be read."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import NamedTuple

import msgspec

from toolgate.bootstrap import Toolgate
from toolgate.caller import Caller
from toolgate.cli import show
from toolgate.cli.capsules import capsule_there, capsules_there
from toolgate.cli.despite import Opened, open_despite
from toolgate.cli.far import Place, Server
from toolgate.cli.operator import need, newcomers, signed
from toolgate.cli.session import at_place, load
from toolgate.errors import InvalidPolicy
from toolgate.gate.decision import Explanation
from toolgate.server.admin.tools import NoSuchTool, find
from toolgate.spec.names import EXPECTED, is_name
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.capsule import Capsule

_MOST_NAMED = 5
_UNCHECKED = (
    "The tool definitions cannot be read, so nobody checked that there is a tool of this name. "
    "What is wrong with them: toolgate doctor"
)
_UNRULED = (
    "The policies cannot be read, so nobody checked what they say about it. "
    "What is wrong with them: toolgate policy check"
)


class Switch(NamedTuple):
    """One tool, on or off, for everyone, for a tenant or for one agent."""

    tool: str
    enabled: bool
    tenant: str = ""
    agent: str = ""

    @property
    def whom(self) -> str:
        """For whom, in words."""
        if self.agent:
            return f"agent {self.agent} of {self.tenant}"
        return f"tenant {self.tenant}" if self.tenant else "everyone"


def turn(switch: Switch, place: Place, why: str, *, json: bool) -> list[str]:
    """Do it, and say what stands in its way elsewhere."""

    async def here() -> list[str]:
        async with AsyncExitStack() as stack:
            opened = await open_despite(load(place.config), stack)
            checked = _find(opened, switch.tool)
            before = opened.gate.tenancy.world
            if not switch.enabled:
                # Who misspells whom to keep from a tool must not believe that it was done.
                need(before, switch.tenant, switch.agent)
            await _put(opened.gate, switch, why)
            told = newcomers(before, opened.gate, switch.tenant, switch.agent)
            told += await _in_the_way(opened.gate, switch) if checked else [_UNCHECKED]
            if any(isinstance(one, InvalidPolicy) for one in opened.problems):
                told.append(_UNRULED)
            return [*told, *_elsewhere(_standing(opened.gate), switch)]

    return at_place(place, here, lambda server: _turned(server, switch, why), json=json)


def _find(opened: Opened, tool: str) -> bool:
    """Whether the tool is known to exist; `NoSuchTool` where it is known not to."""
    gate = opened.gate
    if opened.has_definitions or gate.catalog.current.get(tool) is not None:
        find(gate, tool)
        return True
    if not is_name(tool):
        raise NoSuchTool(f"No tool can be called that; write {EXPECTED}.")
    # Stands for the definition, so that its flag is not taken for a typo.
    gate.catalog.put("unread", [ToolSpec(name=tool)])
    return False


async def _put(gate: Toolgate, switch: Switch, why: str) -> None:
    tool, enabled, tenant, agent = switch
    tenancy = signed(gate, why)
    if agent:
        kept = gate.tenancy.world.capsule(tenant, agent).overrides(tool)
        await tenancy.activate(tenant, agent, tool, enabled=enabled, overrides=kept)
    elif tenant:
        await tenancy.set_tenant_tool(tenant, tool, enabled)
    else:
        await tenancy.set_tool(tool, enabled)


async def _in_the_way(gate: Toolgate, switch: Switch) -> list[str]:
    if not switch.enabled:
        return []
    reason = gate.catalog.current.unusable.get(switch.tool)
    if reason is not None:
        return [f"It still cannot run: {reason}."]
    if not switch.agent:
        return []
    caller = Caller(tenant=switch.tenant, agent=switch.agent)
    return _refusals(await gate.explain(switch.tool, caller=caller))


def _refusals(explained: Explanation) -> list[str]:
    return [
        f"It still may not be called: {verdict.reason}. To allow it: {verdict.remedy}"
        for verdict in explained.verdicts
        if not verdict.allowed
    ]


async def _turned(server: Server, switch: Switch, why: str) -> list[str]:
    """The same on a server, which knows its definitions and policies."""
    tool, enabled, tenant, agent = switch
    if agent:
        kept = (await capsule_there(server, tenant, agent)).overrides(tool)
        whose = {"tenant": tenant, "agent": agent, "overrides": dict(kept)}
        told = await server.put("activations", tool=tool, enabled=enabled, why=why, **whose)
    else:
        told = await server.put("flags", tool=tool, enabled=enabled, tenant=tenant, why=why)
    notes: list[str] = told.get("notes", [])
    if enabled:
        states = {row["name"]: row for row in await server.each("tools", q=tool)}
        if states.get(tool, {}).get("state") == "unusable":
            notes.append(f"It still cannot run: {states[tool]['reason']}.")
        elif agent:
            asked = await server.ask("GET", "tools", tool, "explain", tenant=tenant, agent=agent)
            notes += _refusals(msgspec.convert(asked, Explanation))
    return [*notes, *_elsewhere(await _far_standing(server, switch), switch)]


class _Tenant(NamedTuple):
    """What a tenant has to say about tools: its own flags, and its agents' capsules."""

    flags: Mapping[str, bool]
    capsules: Mapping[str, Capsule]


def _standing(gate: Toolgate) -> dict[str, _Tenant]:
    tenants = gate.tenancy.world.tenants
    return {name: _Tenant(one.flags, one.capsules) for name, one in tenants.items()}


async def _far_standing(server: Server, switch: Switch) -> dict[str, _Tenant]:
    if switch.agent:
        return {}
    flags = (await server.get("flags", tenant=switch.tenant))["tenants"]
    tenants = [row["id"] for row in await server.each("tenants")]
    found: dict[str, _Tenant] = {}
    for name in tenants:
        capsules: dict[str, Capsule] = {}
        if switch.enabled and name == (switch.tenant or name):
            capsules = await capsules_there(server, name)
        found[name] = _Tenant(flags.get(name, {}), capsules)
    return found


def _elsewhere(tenants: Mapping[str, _Tenant], switch: Switch) -> list[str]:
    """Who has a say of their own. A tenant's flag wins in both directions, an agent's only off."""
    tool, enabled, tenant, agent = switch
    said = sorted(tenants.items())
    told: list[str] = []
    if not tenant:
        others = [f"tenant {one}" for one, own in said if own.flags.get(tool, enabled) != enabled]
        if others:
            verb, word = ("disable", "on") if not enabled else ("enable", "off")
            told.append(
                f"It stays {word} for {_listed(others)}; a tenant's own flag wins: "
                f"toolgate tools {verb} {tool} --tenant NAME"
            )
    if enabled and not agent:
        without = [
            f"agent {one} of {whose}"
            for whose, own in said
            for one, capsule in sorted(own.capsules.items())
            if whose == (tenant or whose) and not capsule.has(tool)
        ]
        if without:
            told.append(
                f"It stays off for {_listed(without)}: "
                f"toolgate tools enable {tool} --tenant NAME --agent NAME"
            )
    return told


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {show.count(more, 'other')}" if more > 0 else shown
