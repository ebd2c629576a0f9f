"""Calls whose owner is gone: run again, asked about or parked, as their tool allows."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.undo.shop import GROUP, ME, Shop, entry_of, lost, state_of
from toolgate import Caller, Toolgate, tool
from toolgate.errors import InProgress, StoreUnavailable
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.runtime import Runtime
from toolgate.settings.execution import Approvals, Toolbox
from toolgate.settings.settings import Settings
from toolgate.tenancy.layer import Layer
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.ledger import MemoryLedger


async def made(house: Runtime, tool: str, args: dict[str, Any]) -> str:
    output = await house.call(tool, args, caller=ME, turn=GROUP)
    assert output.ok, output
    return output.call_id


@pytest.mark.req("S3")
async def test_an_idempotent_one_is_run_again_under_its_own_id(house: Runtime, shop: Shop) -> None:
    one = await made(house, "label", {"text": "x"})
    before = await lost(house, one)
    await house.recovery.sweep()
    assert shop.effects == [("label", "x")] * 2
    entry = await entry_of(house, one)
    assert (entry.state, entry.fence) == ("succeeded", before.fence + 1)
    replayed = await house.call("label", {"text": "x"}, caller=ME, turn=GROUP)
    assert (replayed.cached, replayed.data, replayed.call_id) == (True, "x", one)
    await house.recovery.sweep()
    assert len(shop.effects) == 2


@pytest.mark.req("S3")
async def test_a_keyed_one_is_run_again_with_the_same_key(house: Runtime, shop: Shop) -> None:
    one = await made(house, "charge", {"amount": 5})
    await lost(house, one)
    await house.recovery.sweep()
    assert len(shop.keys) == 2
    assert len(set(shop.keys)) == 1
    assert shop.keys[0]
    assert await state_of(house, one) == "succeeded"


@pytest.mark.req("S3")
async def test_one_that_nobody_can_tell_about_is_parked_and_never_run_again(
    house: Runtime, shop: Shop
) -> None:
    one = await made(house, "mail", {"to": "ann"})
    two = await made(house, "pay", {"amount": 1})
    await lost(house, one)
    await lost(house, two)
    for _ in range(3):
        await house.recovery.sweep()
    assert [await state_of(house, call_id) for call_id in (one, two)] == ["unknown"] * 2
    again = await house.call("mail", {"to": "ann"}, caller=ME, turn=GROUP)
    assert again.status == "unknown"
    assert shop.effects == [("mail", "ann"), ("pay", 1)]


@pytest.mark.req("S3")
async def test_a_probe_that_says_yes_ends_it_with_its_result_and_its_plan(
    house: Runtime, shop: Shop
) -> None:
    one = await made(house, "wire", {"amount": 7})
    await lost(house, one)
    await house.recovery.sweep()
    assert shop.effects == [("wire", 7)]
    assert shop.asked == shop.keys
    replayed = await house.call("wire", {"amount": 7}, caller=ME, turn=GROUP)
    assert (replayed.cached, replayed.data) == (True, {"payment": "w7"})
    assert (await house.undo(caller=ME, call_id=one)).ok
    assert shop.effects == [("wire", 7), ("refund", "w7")]


@pytest.mark.req("S3")
async def test_a_probe_that_says_no_gives_the_key_back(house: Runtime, shop: Shop) -> None:
    one = await made(house, "wire", {"amount": 7})
    await lost(house, one)
    shop.effects.clear()
    shop.found = False
    await house.recovery.sweep()
    entry = await entry_of(house, one)
    assert (entry.state, entry.error_code) == ("failed", "not_happened")
    retried = await house.call("wire", {"amount": 7}, caller=ME, turn=GROUP)
    assert (retried.ok, retried.cached) == (True, False)
    assert shop.effects == [("wire", 7)]
    assert len(set(shop.keys)) == 1, "the far side knows it by the same key"


@pytest.mark.req("S3")
@pytest.mark.parametrize("said", ["yes", 1, None, "broken"])
async def test_a_probe_that_says_anything_else_settles_nothing(
    house: Runtime, shop: Shop, said: object
) -> None:
    one = await made(house, "wire", {"amount": 7})
    await lost(house, one)
    if said == "broken":
        shop.broken = {"find"}
    shop.found = said
    await house.recovery.sweep()
    assert await state_of(house, one) == "unknown"
    # It is not asked again at once.
    await house.recovery.sweep()
    assert len(shop.asked) == 1


@pytest.mark.req("S3")
async def test_a_call_that_was_given_up_here_is_asked_about_a_lease_later(
    house: Runtime, shop: Shop
) -> None:
    shop.broken = {"wire!"}
    output = await house.call("wire", {"amount": 7}, caller=ME, turn=GROUP)
    assert await state_of(house, output.call_id) == "unknown"
    await house.recovery.sweep()
    assert shop.asked == [], "what is on its way can still arrive"
    await lost(house, output.call_id, state=State.UNKNOWN, lease_ns=None, ended_ns=1)
    await house.recovery.sweep()
    assert shop.asked == shop.keys
    assert await state_of(house, output.call_id) == "succeeded"


@pytest.mark.req("S3")
async def test_what_is_not_allowed_any_more_is_not_run_again(house: Runtime, shop: Shop) -> None:
    one = await made(house, "label", {"text": "x"})
    await lost(house, one)
    await house.tenancy.set_tenant_tool("acme", "label", enabled=False)
    await house.recovery.sweep()
    entry = await entry_of(house, one)
    assert (entry.state, entry.error_code) == ("unknown", "not_recovered")
    assert "not allowed any more (tool_not_found)" in entry.error_message
    assert shop.effects == [("label", "x")]


@pytest.mark.req("S3")
async def test_what_needs_a_person_today_is_not_run_again(house: Runtime, shop: Shop) -> None:
    one = await made(house, "label", {"text": "x"})
    await lost(house, one)
    await house.tenancy.activate("acme", "billing", "label", overrides={"requires_approval": True})
    await house.recovery.sweep()
    assert "needs a person" in (await entry_of(house, one)).error_message
    assert shop.effects == [("label", "x")]


@pytest.mark.req("S3", "S6")
async def test_where_a_person_is_asked_about_every_call_a_lost_one_is_not_run_again(
    tmp_path: Path, shop: Shop
) -> None:
    async with Toolgate.open(Settings(root=tmp_path)) as house:
        house.add(*shop.tools())
        ids = [await made(house, "label", {"text": text}) for text in ("x", "y")]
        for one in ids:
            await lost(house, one)
    strict = Settings(root=tmp_path, approvals=Approvals(mode="always"), toolbox=Toolbox(lease=600))
    async with Toolgate.open(strict) as house:
        house.add(*shop.tools())
        with pytest.raises(InProgress):
            await house.call("label", {"text": "x"}, caller=ME, turn=GROUP, wait_s=0)
        await house.recovery.sweep()
        for one in ids:
            entry = await entry_of(house, one)
            assert (entry.state, "needs a person" in entry.error_message) == ("unknown", True)
    assert len(shop.effects) == 2, "as often as it was called, and not once more"


@pytest.mark.req("S3")
async def test_what_is_not_on_record_as_it_was_is_not_run_again(house: Runtime, shop: Shop) -> None:
    large = await made(house, "label", {"text": "x" * 70_000})
    changed = await made(house, "label", {"text": "y"})
    often = await made(house, "label", {"text": "z"})
    await lost(house, large)
    await lost(house, changed, fingerprint="sha256:other")
    await lost(house, often, fence=6)
    await house.recovery.sweep()
    told = [(await entry_of(house, one)).error_message for one in (large, changed, often)]
    assert "arguments are not on record" in told[0]
    assert "is not what it was" in told[1]
    assert "too often" in told[2]
    assert len(shop.effects) == 3


class Unlucky(MemoryLedger):
    """The store is away, or one of its rows cannot be dealt with."""

    def __init__(self, journal: MemoryJournal) -> None:
        super().__init__(journal)
        self.away = 0
        self.bad = ""

    async def lost(
        self, limit: int, *, but: Collection[str] = (), busy: Collection[str] = ()
    ) -> Sequence[Entry]:
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")
        return await super().lost(limit, but=but, busy=busy)

    async def take(self, entry: Entry) -> Any:
        if entry.call_id == self.bad:
            raise RuntimeError("this row")
        return await super().take(entry)


@pytest.mark.req("S3")
async def test_one_that_cannot_be_looked_after_stops_none_of_the_others(shop: Shop) -> None:
    journal = MemoryJournal()
    ledger = Unlucky(journal)
    async with in_memory(*shop.tools(), journal=journal, ledger=ledger) as house:
        ids = [await made(house, "label", {"text": str(at)}) for at in range(30)]
        for one in ids:
            await lost(house, one)
        ledger.bad = ids[3]
        for _ in range(4):
            await house.recovery.sweep()
        states = [await state_of(house, one) for one in ids]
        assert states == ["succeeded"] * 3 + ["started"] + ["succeeded"] * 26


@pytest.mark.req("S3")
async def test_a_store_that_was_away_leaves_nothing_behind(shop: Shop) -> None:
    journal = MemoryJournal(lease=0.03)
    ledger = Unlucky(journal)
    async with in_memory(*shop.tools(), journal=journal, ledger=ledger) as house:
        one = await made(house, "label", {"text": "x"})
        await lost(house, one)
        ledger.away = 3
        recovery = type(house.recovery)(
            ledger,
            journal,
            decide=house.gate.decide,
            resume=house._resume,  # pyright: ignore[reportPrivateUsage]
            probing=None,  # pyright: ignore[reportArgumentType]
            undo=None,  # pyright: ignore[reportArgumentType]
            lease=0.03,
        )
        before = asyncio.all_tasks()
        recovery.start()
        await until(lambda: len(shop.effects) == 2)
        await recovery.close()
        assert ledger.away == 0
        # Once it is closed nothing is left that could take a call.
        assert asyncio.all_tasks() <= before


@pytest.mark.req("S3")
async def test_secrets_are_not_on_record_so_that_such_a_call_is_parked() -> None:
    seen: list[str] = []

    async def send(token: str, to: str) -> str:
        seen.append(token)
        return to

    schema = {
        "type": "object",
        "properties": {"token": {"type": "string", "secret": True}, "to": {"type": "string"}},
    }
    async with in_memory() as house:
        house.add(send, effect="idempotent", input_schema=schema)
        one = await made(house, "send", {"token": "s3cret-token", "to": "ann"})
        await lost(house, one)
        await house.recovery.sweep()
        entry = await entry_of(house, one)
        assert (entry.state, seen) == ("unknown", ["s3cret-token"])
        assert b"s3cret" not in entry.args


@pytest.mark.req("S3", "G5")
async def test_the_roles_and_the_delegation_of_then_are_what_today_decides_on(
    house: Runtime, shop: Shop
) -> None:
    clerk = Caller(tenant="acme", agent="billing", roles=("clerk",))
    handed_on = ME.delegate("helper", deny=("mail",))
    ids = [
        (await house.call("label", {"text": text}, caller=caller, turn=GROUP)).call_id
        for text, caller in (("x", clerk), ("y", handed_on))
    ]
    for one in ids:
        await lost(house, one)
    await house.tenancy.set_layer("kept", Layer(deny=("label",)), role="clerk", tenant="acme")
    await house.tenancy.activate("acme", "billing", "label", enabled=False)
    await house.recovery.sweep()
    # The role has lost it; and so has the agent that had handed its task on.
    assert [await state_of(house, one) for one in ids] == ["unknown"] * 2
    assert len(shop.effects) == 2


@pytest.mark.req("S3")
@pytest.mark.parametrize("effect", ["irreversible", "idempotent"])
async def test_what_runs_here_is_not_lost_though_this_process_stood_still_past_its_lease(
    house: Runtime, effect: Any
) -> None:
    begun, release = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    @tool(effect=effect)
    async def slow() -> str:
        ran.append("slow")
        begun.set()
        await release.wait()
        return "done"

    house.add(slow)
    running = asyncio.create_task(house.call("slow", caller=ME, turn=GROUP))
    await begun.wait()
    (entry,) = await house.journal.entries(ME.tenant)
    call_id = entry.call_id
    await lost(house, call_id, owner=entry.owner)
    twin = asyncio.create_task(house.call("slow", caller=ME, turn=GROUP))
    await house.recovery.sweep()
    assert (await entry_of(house, call_id)).state == "started"
    # It is kept alive also afterwards.
    assert await house.ledger.renew() == 1
    release.set()
    assert (await running).data == "done"
    assert (await twin).cached
    assert ran == ["slow"]
    assert await state_of(house, call_id) == "succeeded"
