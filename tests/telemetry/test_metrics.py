"""The numbers: their names, their labels, and that nobody can make them without an end."""

import asyncio
import logging
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.house import ME, open_gate, until
from toolgate import Caller, ToolError, Toolgate, Turn, clock, tool
from toolgate.errors import InvalidArguments, ToolNotFound
from toolgate.executor.trace.meter import BUCKETS, MOST, Calls, Meter
from toolgate.settings.execution import Telemetry
from toolgate.settings.settings import Settings
from toolgate.telemetry.gauges import Gauge, one, read_all
from toolgate.telemetry.prometheus import render

pytestmark = pytest.mark.req("O1")
LINE = re.compile(r'[a-z_]+(\{([a-z_]+="(\\.|[^"\\\n])*",?)+\})? [0-9.e+-]+\Z')


@tool(effect="pure")
def look(word: str) -> str:
    """Look something up."""
    if word == "fail":
        raise ToolError("no such word")
    return word


@tool(effect="irreversible")
def send(word: str) -> str:
    """Send something."""
    return word


async def told(gate: Toolgate) -> list[str]:
    assert gate.watch.metrics is not None
    lines = (await gate.watch.metrics()).decode().splitlines()
    return [line for line in lines if not line.startswith("#")]


def labels(tool: str, status: str) -> str:
    return f'{{tenant_id="acme",agent_id="billing",tool_name="{tool}",status="{status}"}}'


async def test_calls_are_counted_by_how_they_ended(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(look, send)
        turn = Turn(group="t1")
        for word in ("a", "b", "fail"):
            await gate.call("look", {"word": word}, caller=ME)
        for _ in range(3):
            await gate.call("send", {"word": "a"}, caller=ME, turn=turn)
        with pytest.raises(InvalidArguments):
            await gate.call("send", {}, caller=ME)
        lines = await told(gate)
    assert f"tool_execution_total{labels('look', 'success')} 2" in lines
    assert f"tool_execution_total{labels('look', 'error')} 1" in lines
    assert f"tool_execution_total{labels('send', 'success')} 3" in lines
    assert f"tool_execution_total{labels('send', 'refused')} 1" in lines
    assert 'tool_idempotency_cache_hits_total{tenant_id="acme",tool_name="send"} 2' in lines
    effects = 'tenant_id="acme",agent_id="billing",policy="irreversible"'
    assert f"tool_side_effect_total{{{effects}}} 1" in lines
    assert 'toolgate_refusals_total{code="invalid_arguments"} 1' in lines
    ran = 'tenant_id="acme",agent_id="billing",tool_name="send",gateway="python"'
    assert f"tool_execution_duration_seconds_count{{{ran}}} 1" in lines
    assert 'tool_execution_duration_count{tool_name="look"} 3' in lines


@tool(effect="irreversible", requires_approval=True)
def pay(word: str) -> str:
    """Pay somebody."""
    if word == "fail":
        raise ToolError("no such word")
    return word


@pytest.mark.parametrize("word", ["good", "fail"])
async def test_a_call_that_a_person_agrees_to_meanwhile_is_counted_with_its_own_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    caplog.set_level(logging.INFO, "toolgate.calls")
    async with open_gate(tmp_path) as gate:
        gate.add(pay)
        events = gate.events("acme")
        waiting = asyncio.create_task(gate.call("pay", {"word": word}, caller=ME, wait_s=30))
        asked = await anext(events)
        # A person takes their time.
        later_ns = clock.monotonic_ns() + 300_000_000
        await until(lambda: clock.monotonic_ns() > later_ns)
        await gate.approvals.approve(asked.payload["approval_id"], by="boss")
        output = await waiting
        assert (output.ok, output.duration_ms < 250) == (word == "good", True)
        lines = await told(gate)
        entries = await gate.journal.entries("acme")
    assert [one.call_id for one in entries] == [output.call_id], "once, and nothing beside it"
    ran = 'tenant_id="acme",agent_id="billing",tool_name="pay",gateway="python"'
    assert f"tool_execution_duration_seconds_count{{{ran}}} 1" in lines
    [took] = [line for line in lines if line.startswith("tool_execution_duration_seconds_sum")]
    assert float(took.split()[-1]) < 0.25
    effects = 'tenant_id="acme",agent_id="billing",policy="irreversible"'
    is_counted = f"tool_side_effect_total{{{effects}}} 1" in lines
    assert is_counted is (word == "good"), "what says that it did not happen changed nothing"
    [ended] = [one for one in caplog.records if "completed" in one.getMessage()]
    assert ended.__dict__["fields"]["execution_time_ms"] < 250


async def test_further_attempts_are_counted_by_tool(tmp_path: Path) -> None:
    tried: list[int] = []

    @tool(effect="idempotent", retry={"attempts": 3, "base_delay": 0.001, "max_delay": 0.001})
    def shaky() -> str:
        """Do it at the third attempt."""
        tried.append(1)
        if len(tried) < 3:
            raise ToolError("not yet", retryable=True)
        return "done"

    async with open_gate(tmp_path) as gate:
        gate.add(shaky)
        assert (await gate.call("shaky", caller=ME)).ok
        assert (await gate.call("shaky", caller=ME)).ok
        assert 'tool_retries_total{tool_name="shaky"} 2' in await told(gate)


async def test_what_the_gate_refuses_is_counted_by_tool_and_user(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        await gate.tenancy.set_tool("send", enabled=False)
        ann = Caller(tenant="acme", agent="billing", user="ann")
        for name in ("send", "send", "missing"):
            with pytest.raises(ToolNotFound):
                await gate.call(name, {"word": "a"}, caller=ann)
        await gate.discover(ann)
        lines = await told(gate)
    assert 'tool_permission_denied{tool_name="send",user_id="ann"} 2' in lines
    assert 'toolgate_refusals_total{code="tool_not_found"} 3' in lines
    assert not any("missing" in line for line in lines), "nobody invents labels"
    assert any(line.startswith('tool_discovery_count{agent_id="billing"} ') for line in lines)


async def test_how_things_stand_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(send)
        await gate.call("echo", {"text": "x"}, caller=ME)
        lines = await told(gate)
    standing = {line.partition(" ")[0].partition("{")[0] for line in lines}
    assert standing >= {
        "toolgate_approvals_waiting",
        "toolgate_outbox_depth",
        "toolgate_unknown_calls",
        "toolgate_audit_unsealed",
        "toolgate_journal_backlog",
        "toolgate_decisions_dropped_total",
        "toolgate_bulkhead_calls",
    }
    assert all(LINE.match(line) for line in lines)


async def test_switched_off_nothing_is_told(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, telemetry=Telemetry(metrics=False))
    async with Toolgate.open(settings) as gate:
        assert gate.watch.metrics is None


async def test_names_from_callers_are_bounded(tmp_path: Path) -> None:
    meter = Meter(most=10)
    for number in range(50):
        meter.deny("send", f"user{number}", "permission_denied")
        meter.show(f"agent{number}", number)
    assert len(meter.denied) == 11
    assert meter.denied["other", "other"] == 40
    assert len(meter.discovered) == 11
    async with open_gate(tmp_path) as gate:
        for number in range(MOST + 50):
            caller = Caller(tenant=f"t{number}", agent="a")
            await gate.call("echo", {"text": "x"}, caller=caller)
        lines = await told(gate)
    totals = [line for line in lines if line.startswith("tool_execution_total")]
    assert len(totals) == MOST + 1
    other = 'tenant_id="other",agent_id="other",tool_name="other",status="success"'
    assert f"tool_execution_total{{{other}}} 50" in totals


HOSTILE = ('a"} 1\nforged{x="', "back\\slash", "\u2028", "\x1b[31m", "x" * 10_000, "\ud800", "ö")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_stays_inside_its_quotes(name: str) -> None:
    meter = Meter()
    meter.deny(name, name, "permission_denied")
    lines = render(meter).decode().splitlines()
    [line] = [line for line in lines if line.startswith("tool_permission_denied")]
    assert LINE.match(line)
    assert len(line) < 3_000
    assert not any(line.startswith("forged") for line in lines)


def test_a_histogram_adds_up() -> None:
    meter, calls = Meter(), Calls("python")
    meter.calls["acme", "clerk", "look"] = calls
    for seconds in (*BUCKETS, 0.000_01, 100.0):
        calls.took(round(seconds * 1e9))
    lines = render(meter).decode().splitlines()
    buckets = [line for line in lines if line.startswith("tool_execution_duration_seconds_bucket")]
    counts = [int(line.rpartition(" ")[2]) for line in buckets]
    assert counts == [*range(2, len(BUCKETS) + 2), len(BUCKETS) + 2]
    assert 'le="+Inf"' in buckets[-1]
    [total] = [line for line in lines if line.startswith("tool_execution_duration_seconds_sum")]
    assert float(total.rpartition(" ")[2]) == pytest.approx(sum(BUCKETS) + 100.000_01)


async def test_many_readings_are_folded_too() -> None:
    many = {(f"t{number}",): 1.0 for number in range(MOST + 7)}
    [reading] = await read_all([Gauge("g", "G.", lambda: many, ("tenant_id",))])
    assert len(reading.values) == MOST + 1
    assert reading.values["other",] == 7
    assert Counter(map(len, reading.values)) == {1: MOST + 1}
    [single] = await read_all([Gauge("g", "G.", one(lambda: 4))])
    assert single.values == {(): 4}
