"""One server a session, with two tenants, their keys, and tools that fail in every way."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.house import open_gate
from tests.server.raw import IMPATIENT, PATIENT
from tests.server.serving import Serving
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.keys import Role

CANARY = "canary-5ea1"
MODULE = '''\
"""Functions that the served tools name."""

from toolgate import ToolError


def fails_on_purpose() -> None:
    raise ToolError("There are only three left.", left=3)


def breaks() -> None:
    raise ValueError("SELECT * FROM secrets -- CANARY in /etc/passwd")


def odd() -> object:
    return object()


def secretive(text: str) -> str:
    return text
'''.replace("CANARY", CANARY)
TOOLS = """\
tools:
  - name: fails_on_purpose
    config: {module: served_tools, function: fails_on_purpose}
    effect: pure
  - {name: breaks, config: {module: served_tools, function: breaks}, effect: irreversible}
  - {name: odd, config: {module: served_tools, function: odd}, effect: pure}
  - {name: careful, config: {module: served_tools, function: odd}, requires_approval: true}
  - {name: reserved, config: {module: served_tools, function: odd}, enabled: false}
  - {name: cannot_run, config: {module: nowhere_to_be_found, function: odd}}
  - name: secretive
    description: Only acme has it.
    enabled: false
    config: {module: served_tools, function: secretive, token_env: CANARY_TOKEN}
    effect: pure
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
"""


class Keys(NamedTuple):
    admin: str
    agent: str
    intern: str
    other: str
    revoked: str


class Served(NamedTuple):
    server: Serving
    keys: Keys


async def _prepare(root: Path) -> Keys:
    async with open_gate(root) as gate:
        tenancy = gate.tenancy
        for tenant, agent in (("acme", "billing"), ("umbrella", "billing")):
            await tenancy.set_agent(tenant, agent)
        await tenancy.set_agent("acme", "intern", Mode.LISTED)
        await tenancy.set_tenant_tool("acme", "secretive", enabled=True)
        await tenancy.set_tenant_tool("umbrella", "echo", enabled=False)
        admin = await tenancy.add_key(Role.ADMIN, tenant="acme")
        agent_key = await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
        intern = await tenancy.add_key(Role.AGENT, tenant="acme", agent="intern")
        other = await tenancy.add_key(Role.AGENT, tenant="umbrella", agent="billing")
        revoked = await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
        await tenancy.revoke_key(revoked.key.id)
        made = (admin, agent_key, intern, other, revoked)
        return Keys(*(fresh.secret for fresh in made))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    root = tmp_path_factory.mktemp("served")
    (root / "tools").mkdir()
    (root / "tools" / "served.yaml").write_text(TOOLS, "utf-8")
    (root / "served_tools.py").write_text(MODULE, "utf-8")
    (root / "toolgate.toml").write_text(
        "[tools]\nbuiltin = ['echo', 'read_output', 'timestamp']\n", "utf-8"
    )
    keys = asyncio.run(_prepare(root))
    with Serving(root) as server:
        yield Served(server, keys)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with Serving(tmp_path_factory.mktemp("impatient"), before=IMPATIENT) as server:
        yield server


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with Serving(tmp_path_factory.mktemp("patient"), before=PATIENT) as server:
        yield server
