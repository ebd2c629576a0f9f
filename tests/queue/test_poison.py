"""Messages that are made to stop a worker: each is dead by itself, and all others go their way."""

import asyncio
import logging
from collections.abc import Collection, Generator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard, over
from tests.servers.kafka import Kafka
from toolgate.queue.message import UnreadableError, carried, read_request
from toolgate.store.shipping import TableShipping

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
PRODUCER = """
[queue.producers.crm]
secret_env = "CRM_SECRET"
tenants = ["acme"]
"""
LARGE_ENDS = """

async def large(text: str, account: str = "") -> dict:
    raise ToolError("x" * 2_000_000, more=text)


async def half(text: str, account: str = "") -> dict:
    raise ToolError("a" + chr(0xD800) + "x" * 2_000_000, more="y" * 2_000_000)
"""
LARGE_TOOL = """\
  - name: {name}
    config: {{module: {module}, function: {name}}}
    execution: queued
    effect: irreversible
    input_schema: {{type: object, properties: {{text: {{type: string}}}}}}
"""


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    with Yard(tmp_path, kafka.address, queue='work = "always"', more=PRODUCER) as place:
        yield place


def asked(number: int, **more: Any) -> dict[str, Any]:
    caller = {"tenant": "acme", "agent": "billing"}
    args = {"text": f"f{number}"}
    return {
        "version": 1,
        "id": f"crm_{number:08}",
        "tool": "pay",
        "args": args,
        "caller": caller,
        **more,
    }


async def letters(wire: Wire, yard: Yard, many: int) -> list[str]:
    found = [orjson.loads(one.value)["why"] for one in await wire.records(yard.dead, many)]
    return sorted(why.removeprefix("it cannot be read: ") for why in found)


async def test_headers_that_hold_nothing_are_no_signature(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    one, none = b"1", None
    async with yard.gate() as gate, Wire(yard) as wire:
        with caplog.at_level(logging.ERROR, "toolgate.worker"):
            for headers in (
                {"toolgate-timestamp": none},
                {"toolgate-timestamp": none, "toolgate-signature": b"v1=00"},
                {"toolgate-timestamp": one, "toolgate-signature": none},
                {"toolgate-timestamp": one, "toolgate-signature": one, "toolgate-producer": none},
                {
                    "toolgate-timestamp": none,
                    "toolgate-signature": one,
                    "toolgate-producer": b"crm",
                },
            ):
                await wire.send(yard.requests, orjson.dumps(asked(1)), headers, partition=0)
            await wire.send(yard.requests, b"", partition=0)
            for number in range(6):
                assert (await gate.call("pay", {"text": f"p{number}"}, caller=ME)).ok
            whys = await letters(wire, yard, 6)
        assert whys[0] == "it is empty"
        assert whys[1].startswith("it is not of this house, and not signed")
        assert whys[5].startswith("its signature is not one of a producer")
        # Each with its own reason, and its place.
        for offset in range(6):
            assert f"the message {yard.requests}/0/{offset}@" in caplog.text
        assert "it is empty" in caplog.text
        assert yard.marks() == {f"p{number}": 1 for number in range(6)}


async def test_what_lies_where_something_dead_lay_before_is_told_of_too(yard: Yard) -> None:
    """A topic that is made anew counts from its beginning."""
    async with Wire(yard) as wire:
        for content in (b"{first", b""):
            async with yard.gate():
                await wire.send(yard.requests, content, partition=0)
                assert len(await letters(wire, yard, 1)) == 1
            await wire.unmake(yard.requests)
    async with yard.gate() as gate:
        dead = await gate.queue.dead.page("")
    assert {one.call_id.partition("@")[0] for one in dead} == {f"{yard.requests}/0/0"}
    assert len(dead) == 2


async def test_numbers_that_no_store_can_hold_are_dead(yard: Yard) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        for number, more in enumerate(
            (
                {"expires_ms": -9_000_000_000_000_000_000},
                {"expires_ms": 9_000_000_000_000_000_000},
                {"queued_ms": -1},
                {"tool": "x" * 300_000},
            )
        ):
            await wire.sign(yard.requests, asked(number, **more), SECRET, by="crm", partition=0)
        await wire.sign(yard.requests, asked(9), SECRET, by="crm", partition=0)
        await until(lambda: yard.marks() == {"f9": 1})
        whys = await letters(wire, yard, 4)
        assert sum("$.expires_ms" in why for why in whys) == 2
        assert sum("$.queued_ms" in why for why in whys) == 1
        assert (await gate.call("pay", {"text": "ours"}, caller=ME)).ok


async def test_whatever_goes_wrong_over_one_message_is_its_own_end(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt = TableShipping.adopt

    async def clumsy(self: TableShipping, items: Any) -> None:
        if any(item.tool == "clumsy" for item in items):
            raise OverflowError("what it holds")
        await adopt(self, items)

    monkeypatch.setattr(TableShipping, "adopt", clumsy)
    async with yard.gate(work="never"), Wire(yard) as wire:
        for number in range(3):
            tool = "clumsy" if number == 1 else "pay"
            await wire.sign(yard.requests, asked(number, tool=tool), SECRET, by="crm", partition=0)
    async with yard.gate(), Wire(yard) as wire:
        await until(lambda: yard.marks() == {"f0": 1, "f2": 1})
        assert await letters(wire, yard, 1) == ["OverflowError"]


async def test_what_was_claimed_runs_though_the_rest_of_its_batch_fails(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with yard.gate(work="never") as gate, Wire(yard) as wire:
        texts = [f"p{number}" for number in range(12)]
        outputs = [await gate.call("pay", {"text": one}, caller=ME, wait_s=0) for one in texts]
        await wire.read(yard.requests, len(texts))
        for partition in range(4):
            await wire.send(yard.requests, b'{"id": "poison_0001"}', partition=partition)
    known = TableShipping.known
    failed: list[int] = []

    async def away(self: TableShipping, call_ids: Collection[str]) -> Mapping[str, str]:
        if len(failed) < 3:
            failed.append(1)
            raise RuntimeError("not today")
        return await known(self, call_ids)

    monkeypatch.setattr(TableShipping, "known", away)
    async with yard.gate() as gate, Wire(yard) as wire:
        found = await over(gate, [one.call_id for one in outputs])
        assert {one.attempts for one in found} == {1}
        assert yard.marks() == dict.fromkeys(texts, 1)
        assert len(await letters(wire, yard, 4)) == 4
        assert len(failed) == 3


async def test_a_forgery_does_not_stand_in_the_way_of_the_call_that_is_signed(yard: Yard) -> None:
    async with yard.gate(work="never"), Wire(yard) as wire:
        await wire.send(yard.requests, b'{"id": "crm_00000001"}', partition=0)
        for _ in range(2):
            await wire.sign(yard.requests, asked(1), SECRET, by="crm", partition=0)
        await wire.send(yard.requests, b'{"id": "crm_00000001"}', partition=0)
    async with yard.gate() as gate, Wire(yard) as wire:
        await until(lambda: yard.marks() == {"f1": 1})
        await over(gate, ["crm_00000001"])
        assert "not signed" in (await letters(wire, yard, 1))[0]


async def test_what_no_client_can_read_is_passed_by_and_nothing_else(yard: Yard) -> None:
    async with yard.gate(work="never") as gate, Wire(yard) as wire:
        first = [
            await gate.call("pay", {"text": f"a{number}"}, caller=ME, wait_s=0)
            for number in range(12)
        ]
        await wire.read(yard.requests, 12)
        for partition in (0, 0, 2):
            await wire.send_unnamed(yard.requests, partition)
        await wire.send_unnamed(yard.results, 1)
        for partition in range(4):
            number = 100 + partition
            await wire.sign(yard.requests, asked(number), SECRET, by="crm", partition=partition)
    async with yard.gate() as gate, Wire(yard) as wire:
        await over(gate, [one.call_id for one in first])
        await over(gate, [f"crm_{100 + partition:08}" for partition in range(4)])
        for number in range(4):
            assert (await gate.call("pay", {"text": f"b{number}"}, caller=ME)).ok
        wanted = [*(f"a{n}" for n in range(12)), *(f"b{n}" for n in range(4))]
        assert yard.marks() == dict.fromkeys([*wanted, *(f"f{100 + n}" for n in range(4))], 1)
        found = [orjson.loads(one.value) for one in await wire.records(yard.dead, 3)]
        places = sorted(one["id"].rsplit("/", 1)[0] for one in found)
        assert places == [f"{yard.requests}/{partition}" for partition in (0, 0, 2)]
        assert all("UnicodeDecodeError" in one["why"] for one in found)
        assert (await gate.queue.calls.depth()).dead == 3


async def test_what_is_discarded_while_partitions_change_hands_does_not_come_back(
    yard: Yard,
) -> None:
    many = 60
    async with yard.gate() as gate, Wire(yard) as wire:
        calls = [
            gate.call("pay", {"text": f"p{number}"}, caller=ME, wait_s=0) for number in range(many)
        ]
        outputs = await asyncio.gather(*calls)
        discarded, worker = 0, yard.worker()
        for number in range(many):
            if number % 20 == 0:
                # One member of the group is gone without a word, and another comes.
                worker.kill()
                worker = yard.worker()
            await wire.send(yard.requests, b"garbage", partition=number % 4)
            discarded += await gate.queue.dead.discard_unreadable(who="ann", why="garbage")
        await over(gate, [one.call_id for one in outputs])
        async with asyncio.timeout(60):
            while discarded < many:
                discarded += await gate.queue.dead.discard_unreadable(who="ann", why="garbage")
                await asyncio.sleep(0.05)
    # Brought once more to workers that have read nothing yet.
    yard.change(f'group = "{yard.name}"', f'group = "{yard.name}-new"')
    async with yard.gate() as gate, Wire(yard) as wire:
        assert (await gate.call("pay", {"text": "last"}, caller=ME)).ok
        await wire.send(yard.requests, b"one more", partition=0)
        async with asyncio.timeout(60):
            while (await gate.queue.calls.depth()).dead < 1:  # noqa: ASYNC110  the store tells nobody
                await asyncio.sleep(0.05)
        assert discarded == many
        assert (await gate.queue.calls.depth()).dead == 1
        assert set(yard.marks().values()) == {1}
        assert len(yard.marks()) == many + 1


async def test_an_end_too_large_for_a_message_is_told_in_short_and_holds_up_no_other(
    yard: Yard,
) -> None:
    (module,) = yard.root.glob("yard_*.py")
    module.write_text(module.read_text("utf-8") + LARGE_ENDS, "utf-8")
    file = yard.root / "tools" / "yard.yaml"
    more = "".join(LARGE_TOOL.format(name=name, module=module.stem) for name in ("large", "half"))
    file.write_text(file.read_text("utf-8") + more, "utf-8")
    async with yard.gate() as gate, Wire(yard) as wire:
        ids = [
            (await gate.call(name, {"text": "t"}, caller=ME, wait_s=0)).call_id
            for name in ("large", "half")
        ]
        ids.append((await gate.call("pay", {"text": "p"}, caller=ME)).call_id)
        told = {
            one["id"]: one
            for one in [orjson.loads(one.value) for one in await wire.records(yard.results, 3)]
        }
        assert told.keys() == set(ids)
        for name in ids[:2]:
            assert told[name]["cut"]
            assert 1_000 < len(told[name]["output"]["error"]["message"]) < 10_000


async def test_a_call_too_large_for_the_brokers_is_dead_and_told_as_such(yard: Yard) -> None:
    async with Wire(yard) as wire, AsyncExitStack() as house:
        await wire.make(yard.requests, 300_000)
        gate = await house.enter_async_context(yard.gate())
        large = await gate.call("pay", {"text": "x" * 400_000}, caller=ME, wait_s=20)
        assert large.error is not None, large
        assert large.error.code == "undelivered"
        assert "too large for a message" in large.error.message
        assert (await gate.call("pay", {"text": "p"}, caller=ME)).ok
        assert yard.marks() == {"p": 1}
        assert "too large" in (await letters(wire, yard, 1))[0]


async def test_a_trace_of_any_length_holds_up_no_call(yard: Yard) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        large = {"traceparent": "x" * 440_000, "other": "y"}
        await wire.sign(yard.requests, asked(1, tool="held", order="o"), SECRET, by="crm")
        await until(lambda: yard.marks() == {"began-f1": 1})
        args = {"text": "f2", "account": "y" * 300_000}
        await wire.sign(
            yard.requests, asked(2, order="o", trace=large, args=args), SECRET, by="crm"
        )
        await wire.sign(yard.requests, asked(3, order="o"), SECRET, by="crm")
        yard.go()
        await over(gate, [f"crm_{number:08}" for number in (1, 2, 3)])
        assert yard.order() == ["began-f1", "f1", "f2", "f3"]


def test_of_a_trace_goes_on_what_its_standard_names_and_bounds() -> None:
    good = {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01", "tracestate": "a=1"}
    assert carried({**good, "other": "x"}) == good
    assert carried({**good, "tracestate": "x" * 513}) == {"traceparent": good["traceparent"]}


@pytest.mark.parametrize("name", ["queued_ms", "expires_ms", "chain_index"])
@pytest.mark.parametrize("value", [-1, 10**13, 9 * 10**18])
def test_a_number_of_a_call_is_within_what_can_be_kept(name: str, value: int) -> None:
    with pytest.raises(UnreadableError, match=name):
        read_request(msgspec.json.encode(asked(1, **{name: value})))
