"""What the fleet of the tests serves: tools that leave marks, tenants, and their keys."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from tests.fleet.nodes import Fleet
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.keys import Role

MODULE = '''\
"""Tools that leave marks, and that wait until they are let go."""

import asyncio
import os
from pathlib import Path

from toolgate import Call, Question

MARKS = Path("@MARKS@")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
NAME = Question(
    "elicitation/create", {"mode": "form", "message": "Who?", "requestedSchema": FORM}
)


def leave(text):
    with MARKS.open("ab") as file:
        file.write(f"{text} {os.getpid()}\\n".encode())


async def until(text):
    gate = MARKS.with_name(f"go-{text}")
    while not gate.exists():
        await asyncio.sleep(0.02)


async def mark(text: str) -> dict:
    leave(text)
    return {"marked": text, "node": os.getpid()}


async def unmark(text: str) -> str:
    leave(f"undone-{text}")
    return text


async def pay(to: str) -> str:
    leave(f"paid-{to}")
    return to


def look(text: str) -> dict:
    return {"seen": text, "node": os.getpid()}


async def slow(text: str, call: Call) -> dict:
    call.progress(1, 2, "half way")
    await until(text)
    return {"seen": text}


async def send(text: str, call: Call) -> dict:
    leave(f"began-{text}")
    call.progress(1, 2, "half way")
    await until(text)
    leave(f"sent-{text}")
    return {"sent": text}


async def greet(call: Call) -> str:
    said = await call.ask({"who": NAME})
    return str(said["who"]["content"]["name"])


async def late(text: str, call: Call) -> str:
    await until(text)
    said = await call.ask({"who": NAME})
    leave(f"greeted-{text}")
    return str(said["who"]["content"]["name"])
'''
_TEXT = "{type: object, properties: {text: {type: string}}, required: [text]}"


def _tool(name: str, effect: str, more: str = "", schema: str = _TEXT) -> str:
    return f"""\
  - name: {name}
    config: {{module: fleet_tools, function: {name}}}
    effect: {effect}
    input_schema: {schema}
{more}"""


TOOLS = "tools:\n" + "".join(
    (
        _tool("look", "pure"),
        _tool(
            "mark",
            "compensatable",
            "    compensation: {tool: unmark, args: {text: $result.marked}}\n",
        ),
        _tool("unmark", "idempotent"),
        _tool(
            "pay",
            "irreversible",
            "    requires_approval: true\n",
            _TEXT.replace("text", "to"),
        ),
        _tool("slow", "pure"),
        _tool("send", "irreversible"),
        _tool("greet", "pure", schema="{type: object}"),
        _tool("late", "irreversible"),
    )
)
NAMES = (
    *("look", "mark", "unmark", "pay", "slow", "send", "greet", "late"),
    *("echo", "read_output"),
)
EXECUTES = "tool:{tool}#executor@{who}"
FILES = {"tools/fleet.yaml": TOOLS, "fleet_tools.py": MODULE}


class Keys(NamedTuple):
    """Who runs the house; of acme an agent that acts for ann, and another; and one of umbrella."""

    admin: str
    ann: str
    other: str
    stranger: str


def people(fleet: Fleet) -> Keys:
    """Tenants, agents and keys; and all tools for all of them."""
    keys = asyncio.run(_people(fleet))
    relate(fleet, keys, "acme", add=[EXECUTES.format(tool=one, who="user:ann") for one in NAMES])
    relate(fleet, keys, "acme", add=[EXECUTES.format(tool=one, who="agent:robot") for one in NAMES])
    theirs = [EXECUTES.format(tool=one, who="agent:billing") for one in NAMES]
    relate(fleet, keys, "umbrella", add=theirs)
    return keys


def relate(fleet: Fleet, keys: Keys, tenant: str, **changes: Sequence[str]) -> None:
    """Say by one of the nodes who may execute what."""
    body = {"tenant": tenant, **changes}
    answer = fleet.ask("POST", "/v1/admin/relations", key=keys.admin, body=body)
    assert answer.status == 200, answer.text


async def _people(fleet: Fleet) -> Keys:
    async with fleet.gate() as gate:
        tenancy = gate.tenancy.by("test")
        for tenant, agent in (("acme", "billing"), ("acme", "robot"), ("umbrella", "billing")):
            await tenancy.add_tenant(tenant)
            await tenancy.set_agent(tenant, agent, Mode.ALL)
        made = (
            await tenancy.add_key(Role.ADMIN, tenant="acme"),
            await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing", user="ann"),
            await tenancy.add_key(Role.AGENT, tenant="acme", agent="robot"),
            await tenancy.add_key(Role.AGENT, tenant="umbrella", agent="billing"),
        )
        return Keys(*(one.secret for one in made))


def let_go(fleet: Fleet, text: str) -> None:
    """What waits for this goes on, at whichever node."""
    fleet.marks.with_name(f"go-{text}").touch()
