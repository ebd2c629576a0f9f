"""A server whose keys another process revokes: the next request finds out, however it is sent."""

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.house import open_gate
from tests.server.serving import Answer, Serving
from toolgate import Toolgate
from toolgate.tenancy.keys import FreshKey, Role

pytestmark = pytest.mark.req("G1", "V3")
TOOLS = """\
tools:
  - {name: mark, config: {module: marking, function: mark}, effect: irreversible}
  - name: grave
    config: {module: marking, function: mark}
    effect: irreversible
    requires_approval: true
"""
MODULE = """\
from pathlib import Path


def mark() -> None:
    with Path(__file__).with_name("marks").open("a") as file:
        file.write("x")
"""
# It hears of nothing by itself: what it finds out, it has looked for.
DEAF = "import toolgate.upkeep as upkeep; upkeep._REFRESH = 600; "
NO_LOOK = DEAF + "import toolgate.gate.book as book; book.is_let_in = lambda *_: True; "
NO_WORD = (
    DEAF
    + "import asyncio; from toolgate.server.request import Request; "
    + "Request.confirm = lambda self: asyncio.sleep(0); "
)


@contextmanager
def serving(root: Path, before: str = DEAF) -> Generator[Serving]:
    (root / "tools").mkdir()
    (root / "tools" / "marking.yaml").write_text(TOOLS, "utf-8")
    (root / "marking.py").write_text(MODULE, "utf-8")
    with Serving(root, before=before) as server:
        yield server


@pytest.fixture
async def other(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    """This process, on the server's store."""
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.set_agent("acme", "billing")
        yield gate


async def key_of(gate: Toolgate, role: Role) -> FreshKey:
    agent = "billing" if role is Role.AGENT else ""
    return await gate.tenancy.add_key(role, tenant="acme", agent=agent)


def marks(root: Path) -> int:
    file = root / "marks"
    return len(file.read_text()) if file.exists() else 0


def call(server: Serving, key: FreshKey, tool: str = "mark") -> Answer:
    return server.ask("POST", "/v1/call", key=key.secret, body={"tool": tool})


async def test_a_call_by_a_revoked_key_does_nothing(other: Toolgate, tmp_path: Path) -> None:
    keys = [await key_of(other, Role.AGENT) for _ in range(4)]
    with serving(tmp_path) as server:
        for number, key in enumerate(keys, 1):
            assert call(server, key).status == 200, "the positive control"
            await other.tenancy.revoke_key(key.key.id)
            answer = call(server, key)
            assert answer.status == 401
            assert answer.body["type"] == "urn:toolgate:error:unauthenticated"
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.body["detail"] == server.get("/v1/tools", "tg_none").body["detail"]
            assert marks(tmp_path) == number


async def test_without_the_look_at_the_key_it_would(other: Toolgate, tmp_path: Path) -> None:
    """The guard-off control."""
    key = await key_of(other, Role.AGENT)
    with serving(tmp_path, NO_LOOK) as server:
        assert call(server, key).status == 200
        await other.tenancy.revoke_key(key.key.id)
        assert call(server, key).status == 200
        assert marks(tmp_path) == 2


async def test_the_key_of_a_removed_agent_does_nothing(other: Toolgate, tmp_path: Path) -> None:
    await other.tenancy.set_agent("acme", "billing", "listed")
    key = await key_of(other, Role.AGENT)
    with serving(tmp_path) as server:
        assert call(server, key).status == 404, "it may nothing"
        await other.tenancy.remove_agent("acme", "billing")
        assert call(server, key).status == 401
        assert marks(tmp_path) == 0


def say(server: Serving, key: FreshKey, approval: str) -> list[int]:
    """What an operator does: another key, and a word on a call that waits."""
    new = {"role": "admin", "tenant": "acme"}
    made = server.ask("POST", "/v1/admin/keys", key=key.secret, body=new)
    word = server.ask("POST", f"/v1/approvals/{approval}/approve", key=key.secret, body={})
    return [made.status, word.status]


async def waiting(server: Serving, gate: Toolgate, agent: FreshKey) -> str:
    answer = call(server, agent, "grave")
    assert answer.body["status"] == "pending_approval"
    [asked] = await gate.approvals.list("acme")
    return asked.id


async def test_an_operators_revoked_key_changes_nothing(other: Toolgate, tmp_path: Path) -> None:
    agent, admin = await key_of(other, Role.AGENT), await key_of(other, Role.ADMIN)
    second = await key_of(other, Role.ADMIN)
    with serving(tmp_path) as server:
        asked = await waiting(server, other, agent)
        await other.tenancy.revoke_key(admin.key.id)
        assert say(server, admin, asked) == [401, 401]
        await other.tenancy.refresh()
        assert {key.id for key in other.tenancy.world.keys.values()} == {
            agent.key.id,
            second.key.id,
        }
        assert [one.id for one in await other.approvals.list("acme")] == [asked], "it waits"
        assert say(server, second, asked) == [200, 200], "the positive control"


async def test_without_the_look_an_operators_revoked_key_would(
    other: Toolgate, tmp_path: Path
) -> None:
    """The guard-off control."""
    agent, admin = await key_of(other, Role.AGENT), await key_of(other, Role.ADMIN)
    with serving(tmp_path, NO_WORD) as server:
        asked = await waiting(server, other, agent)
        await other.tenancy.revoke_key(admin.key.id)
        # Its own change has made the server see what was revoked.
        assert say(server, admin, asked)[0] == 200
