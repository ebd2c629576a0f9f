"""Keys that end: at every door, and for calls that are on their way."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.auth.skew import SKEWED, put_forward
from tests.house import open_gate
from tests.server.serving import Answer, Serving
from tests.server.test_revoked_keys import DEAF, MODULE, TOOLS, marks
from toolgate import Toolgate, clock
from toolgate.errors import InvalidRequest
from toolgate.tenancy import lasting
from toolgate.tenancy.keys import FreshKey, Living, Role, make
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("G1", "V3")
SECOND = 1_000_000_000
LOOKS = "import toolgate.upkeep as upkeep; upkeep._REFRESH = 0.1\n"
NO_END = "import toolgate.gate.book as book; book.end_of = lambda *_: 0\n"
NO_LOOK = (
    "from toolgate.tenancy.keys import Key; Key.is_over = lambda key, now_ns: False\n"
    "import toolgate.gate.book as book; book.is_let_in = lambda *_: True\n" + NO_END
)


@contextmanager
def serving(root: Path, before: str = "") -> Generator[Serving]:
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools" / "marking.yaml").write_text(TOOLS, "utf-8")
    (root / "marking.py").write_text(MODULE, "utf-8")
    with Serving(root, before=f"{SKEWED}{DEAF}\n{before}") as server:
        yield server


@pytest.fixture
async def other(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    """This process, on the server's store, with a clock of its own."""
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.set_agent("acme", "billing")
        yield gate


async def key_of(gate: Toolgate, expires: str = "2h", role: Role = Role.AGENT) -> FreshKey:
    agent = "billing" if role is Role.AGENT else ""
    return await gate.tenancy.add_key(role, tenant="acme", agent=agent, expires=expires)


def call(server: Serving, key: FreshKey, tool: str = "mark") -> Answer:
    return server.ask("POST", "/v1/call", key=key.secret, body={"tool": tool})


async def test_an_expired_key_looks_like_one_that_never_was(
    other: Toolgate, tmp_path: Path
) -> None:
    ends, lasts, gone = await key_of(other), await key_of(other, ""), await key_of(other)
    await other.tenancy.revoke_key(gone.key.id)
    with serving(tmp_path) as server:
        assert call(server, ends).status == 200, "the positive control"
        put_forward(tmp_path, 3)
        assert call(server, lasts).status == 200
        secrets = (ends.secret, gone.secret, "tg_agent_none", f"{lasts.secret}x", lasts.secret[:-1])
        for path in ("/v1/tools", "/v1/ledger", "/v1/admin/keys"):
            told = [server.get(path, secret) for secret in secrets]
            told.append(server.get(path))
            assert {(one.status, one.text) for one in told} == {(401, told[0].text)}
            assert {tuple(sorted(_fixed(one))) for one in told} == {tuple(sorted(_fixed(told[0])))}
        assert marks(tmp_path) == 2


def _fixed(answer: Answer) -> list[tuple[str, str]]:
    return [(name, value) for name, value in answer.headers.items() if name != "date"]


async def test_without_the_look_at_its_end_it_would_open(other: Toolgate, tmp_path: Path) -> None:
    """The guard-off control."""
    ends = await key_of(other)
    with serving(tmp_path, NO_LOOK) as server:
        put_forward(tmp_path, 3)
        assert call(server, ends).status == 200


def lets_in(server: Serving, key: FreshKey) -> bool:
    """A server that looks now and then has seen the key."""
    return any(server.get("/v1/tools", key.secret).status == 200 for _ in range(1_000))


async def waited(server: Serving, other: Toolgate, key: FreshKey, tmp_path: Path) -> Answer:
    """A call that waits for a person, who agrees when its key has ended."""
    admin = await key_of(other, "", Role.ADMIN)
    assert await asyncio.to_thread(lets_in, server, admin)
    body = {"tool": "grave", "wait_s": 20}
    asking = asyncio.create_task(
        asyncio.to_thread(server.ask, "POST", "/v1/call", key=key.secret, body=body)
    )
    while not (listed := await other.approvals.list("acme")):  # noqa: ASYNC110  another process's
        await asyncio.sleep(0.01)
    # Long enough for the key, and not for what was asked.
    put_forward(tmp_path, 0.1)
    path = f"/v1/approvals/{listed[0].id}/approve"
    word = await asyncio.to_thread(server.ask, "POST", path, key=admin.secret, body={})
    assert word.status == 200, word.text
    return await asking


async def test_a_call_that_waited_longer_than_its_key_lasts_does_nothing(
    other: Toolgate, tmp_path: Path
) -> None:
    key = await key_of(other, "5m")
    with serving(tmp_path, LOOKS) as server:
        answer = await waited(server, other, key, tmp_path)
        assert (answer.status, answer.body["code"]) == (401, "unauthenticated")
        assert marks(tmp_path) == 0


async def test_without_the_end_in_its_grant_it_would(other: Toolgate, tmp_path: Path) -> None:
    """The guard-off control."""
    key = await key_of(other, "5m")
    off = f"{LOOKS}import toolgate.gate.book as book; book.is_let_in = lambda *_: True\n{NO_END}"
    with serving(tmp_path, off) as server:
        answer = await waited(server, other, key, tmp_path)
        assert answer.status == 200
        assert marks(tmp_path) == 1


async def test_the_end_of_a_key_is_held_where_it_is_looked_up() -> None:
    now = clock.unix_ns()
    ends = make(Role.AGENT, tenant="acme", agent="a", expires_ns=now + 3_600 * SECOND).key
    over = make(Role.AGENT, tenant="acme", agent="a", expires_ns=now - 1).key
    lasts = make(Role.AGENT, tenant="acme", agent="a").key
    keys = {key.digest: key for key in (ends, over, lasts)}
    living = Living()
    assert living.end_ns(ends.id, keys) == ends.expires_ns
    assert living.end_ns(over.id, keys) is None
    assert living.end_ns(lasts.id, keys) == 0
    assert living.end_ns("key_none", keys) is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("24h", 86_400), ("30d", 2_592_000), ("0", 0)]
)
def test_a_span_is_read(text: str, seconds: int) -> None:
    assert lasting.span(text, "overlap") == seconds * SECOND


@pytest.mark.parametrize("text", ["", "1", "h", "-1h", "1.5h", "1y", "1h ", "٣h", "9999999d"])
def test_what_is_no_span_is_told(text: str) -> None:
    with pytest.raises(InvalidRequest, match="no time"):
        lasting.span(text, "overlap")


def test_an_end_is_a_span_or_a_moment_to_come() -> None:
    assert lasting.end("") == 0
    assert abs(lasting.end("1h") - clock.unix_ns() - 3_600 * SECOND) < 60 * SECOND
    assert lasting.shown(lasting.end("2099-01-31T08:00Z")) == "2099-01-31T08:00:00Z"
    assert lasting.end("2099-01-31T09:00+01:00") == lasting.end("2099-01-31T08:00")
    for wrong in ("2020-01-01T00:00Z", "tomorrow", "2099-13-01", "0001-01-01T00:00+23:59"):
        with pytest.raises(InvalidRequest):
            lasting.end(wrong)


async def test_no_key_is_made_that_has_ended_already() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.add_tenant("acme")
    with pytest.raises(InvalidRequest, match="past"):
        await tenancy.add_key(Role.ADMIN, tenant="acme", expires="2020-01-01")
    assert not tenancy.world.keys
