"""Capsules of agents, as a server tells of them."""

from typing import Any

from toolgate.cli.far import Server
from toolgate.tenancy.capsule import EVERYTHING, Activation, Capsule, Mode, NewerMessages


def capsule_of(agent: dict[str, Any]) -> Capsule:
    """The capsule of an agent that a server has listed."""
    tools: dict[str, dict[str, Any]] = agent.get("tools", {})
    return Capsule(
        Mode(agent["mode"]),
        {name: Activation(one["enabled"], one["overrides"]) for name, one in tools.items()},
        NewerMessages(agent["newer_messages"]),
    )


async def capsules_there(server: Server, tenant: str) -> dict[str, Capsule]:
    """Those of a tenant, by agent."""
    agents: list[dict[str, Any]] = await server.each("agents", tenant=tenant)
    return {agent["id"]: capsule_of(agent) for agent in agents}


async def capsule_there(server: Server, tenant: str, agent: str) -> Capsule:
    """That of one agent; one that is not on record begins as one that never was."""
    return (await capsules_there(server, tenant)).get(agent, EVERYTHING)
