"""A caller that came by a key may nothing from the moment that the key is revoked, on any node."""

import asyncio
import sqlite3
from collections import UserDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.gate.pair import Pair, opened, ran
from tests.gate.unguarded import begun_in_any_world
from tests.store.places import FILE, SHARED
from toolgate import Caller, Context, Output
from toolgate.errors import InvalidRequest, Unauthenticated
from toolgate.executor.recording.twins import Twins
from toolgate.gate import book
from toolgate.tenancy.keys import Key, Living, Role

pytestmark = pytest.mark.req("G1", "V3")
WARM_AND_COLD = pytest.mark.parametrize("warm", [1, 0], ids=["warm", "cold"])
Revoke = Callable[[], Awaitable[None]]


@pytest.fixture(params=SHARED)
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Pair]:
    async with opened(request, tmp_path, request.param, monkeypatch) as found:
        await found.here.tenancy.set_agent("acme", "billing")
        yield found


def anybody(*_: object) -> bool:
    """The look at the key, taken out."""
    return True


async def let_in(pair: Pair) -> tuple[Caller, Revoke]:
    """A caller with a key of its own, and how the other node takes it away."""
    fresh = await pair.here.tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
    caller = Caller(tenant="acme", agent="billing", key=fresh.key.id)

    async def revoke() -> None:
        await pair.there.tenancy.revoke_key(fresh.key.id)

    return caller, revoke


async def approved(pair: Pair, *, revoked: bool) -> Output:
    """A call that waits for a person, who agrees; by then its key may be revoked."""
    me, revoke = await let_in(pair)
    waiting = asyncio.create_task(pair.here.call("grave", caller=me, wait_s=15))
    while not (asked := await pair.there.approvals.list("acme")):  # noqa: ASYNC110  the store is asked
        await asyncio.sleep(0.01)
    if revoked:
        await revoke()
    await pair.there.approvals.approve(asked[0].id, by="boss")
    return await waiting


@WARM_AND_COLD
async def test_what_another_node_revokes_makes_no_side_effect_here(pair: Pair, warm: int) -> None:
    me, revoke = await let_in(pair)
    if warm:
        assert (await pair.here.call("effect", caller=me)).ok, "the positive control"
        ran.clear()
    await revoke()
    rows = await pair.here.journal.entries("acme")
    for caller in (me, me.delegate("helper"), msgspec.structs.replace(me, session="s")):
        with pytest.raises(Unauthenticated, match="needs a valid key"):
            await pair.here.call("effect", caller=caller)
    assert ran == []
    assert await pair.here.journal.entries("acme") == rows
    with pytest.raises(Unauthenticated):
        await pair.here.discover(me)
    assert pair.here.gate.known(me, "effect") is None


@WARM_AND_COLD
async def test_without_the_look_at_the_key_it_would_run(
    pair: Pair, warm: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(book, "is_let_in", anybody)
    me, revoke = await let_in(pair)
    if warm:
        await pair.here.call("effect", caller=me)
        ran.clear()
    await revoke()
    assert (await pair.here.call("effect", caller=me)).ok
    assert len(ran) == 1


@WARM_AND_COLD
async def test_what_is_revoked_between_decision_and_claim_does_not_begin(
    pair: Pair, warm: int
) -> None:
    me, revoke = await let_in(pair)
    if warm:
        assert (await pair.here.call("effect", caller=me)).ok, "the positive control"
        ran.clear()
    pair.between.happens = revoke
    with pytest.raises(Unauthenticated):
        await pair.here.call("effect", caller=me)
    assert pair.between.happens is None
    assert ran == []


async def test_without_the_condition_of_the_claim_it_would_begin(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(Twins, "_begun", begun_in_any_world)
    me, revoke = await let_in(pair)
    pair.between.happens = revoke
    assert (await pair.here.call("effect", caller=me)).ok
    assert len(ran) == 1


async def test_a_call_that_waits_for_a_person_does_not_run(pair: Pair) -> None:
    with pytest.raises(Unauthenticated):
        await approved(pair, revoked=True)
    assert ran == []


async def test_a_call_that_waits_runs_while_its_key_is_valid(pair: Pair) -> None:
    """The positive control."""
    assert (await approved(pair, revoked=False)).ok
    assert len(ran) == 1


async def test_without_the_look_at_the_key_a_call_that_waits_would_run(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    monkeypatch.setattr(book, "is_let_in", anybody)
    assert (await approved(pair, revoked=True)).ok
    assert len(ran) == 1


async def test_several_calls_and_an_undo_do_nothing_either(pair: Pair) -> None:
    me, revoke = await let_in(pair)
    paid = await pair.here.call("pay", caller=me)
    assert paid.ok
    await revoke()
    batch = await pair.here.batch([{"tool": "effect"}], caller=me)
    [output] = batch.outputs
    assert output.error is not None
    assert output.error.code == "unauthenticated"
    report = await pair.here.undo(caller=me, call_id=paid.call_id)
    assert [item.result for item in report.items] == ["refused"]
    assert ran == ["pay"]
    other, _revoke = await let_in(pair)
    report = await pair.here.undo(caller=other, call_id=paid.call_id)
    assert [item.result for item in report.items] == ["undone"], "the positive control"
    assert ran == ["pay", "refund"]


async def test_another_key_of_the_same_agent_and_who_has_none_go_on(pair: Pair) -> None:
    me, revoke = await let_in(pair)
    other, _revoke = await let_in(pair)
    nobodys = Caller(tenant="acme", agent="billing")
    for caller in (me, other, nobodys):
        assert (await pair.here.call("effect", caller=caller)).ok
    await revoke()
    for caller in (other, nobodys):
        assert (await pair.here.call("effect", caller=caller)).ok
    assert len(ran) == 5


async def test_a_change_of_others_keys_leaves_what_was_decided(pair: Pair) -> None:
    me, _revoke = await let_in(pair)
    await pair.here.call("effect", caller=me)
    kept = pair.here.gate._books.kept[me]  # pyright: ignore[reportPrivateUsage]
    await let_in(pair)
    assert (await pair.here.call("effect", caller=me)).ok
    assert pair.here.gate._books.kept[me] is kept  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("key", ["key_made_up", "0"])
async def test_a_key_that_never_was_opens_nothing(pair: Pair, key: str) -> None:
    with pytest.raises(Unauthenticated):
        await pair.here.call("effect", caller=Caller(tenant="acme", agent="billing", key=key))
    with pytest.raises(InvalidRequest, match="'key' of a Caller is a text"):
        Caller(tenant="acme", key=7)  # pyright: ignore[reportArgumentType]
    assert ran == []


async def test_no_record_of_a_call_holds_the_key(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(request, tmp_path, FILE, monkeypatch) as pair:
        await pair.here.tenancy.set_agent("acme", "billing")
        me, _revoke = await let_in(pair)
        narrowed = msgspec.structs.replace(me, roles=("worker",), context=Context(no_web=True))
        for caller in (me, narrowed, me.delegate("helper")):
            output = await pair.here.call("pay", caller=caller)
            assert output.ok
            assert me.key not in str(output.to_machine())
            await pair.here.call("grave", caller=caller)
    with closing(sqlite3.connect(tmp_path / "toolgate.db")) as connection:
        lines = list(connection.iterdump())
    held = [line for line in lines if me.key in line]
    assert held, "the key itself is there"
    # What an operator did with it is in the audit.
    assert all('INTO "api_keys"' in line or "add_key" in line for line in held)


def test_ids_are_gathered_once_for_each_mapping_of_keys() -> None:
    looked = 0

    class Keys(UserDict[str, Key]):
        def __iter__(self) -> Iterator[str]:
            nonlocal looked
            looked += 1
            return super().__iter__()

    living, keys = Living(), Keys(a=Key(id="key_a", digest="a", role=Role.AGENT))
    for _ in range(100):
        assert living.end_ns("key_a", keys) == 0
        assert living.end_ns("a", keys) is None
    assert looked == 1
    assert living.end_ns("key_a", {}) is None
