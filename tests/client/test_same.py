"""One behaviour, two houses: in this process, and behind a server. Every answer is the same."""

import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest

from tests.client.houses import ME, House
from tests.messages.spoken import Call, anthropic, openai
from toolgate import Caller, Context, Output, ToolgateError, Turn
from toolgate.errors import (
    IdempotencyConflict,
    InvalidArguments,
    InvalidRequest,
    RateLimited,
    ToolNotFound,
)
from toolgate.executor.several.planned import PlannedCall
from toolgate.executor.several.steps import Step
from toolgate.spec.export import native
from toolgate.spec.names import for_model

pytestmark = pytest.mark.req("V2")
# Ids, moments and durations are each house's own.
_OWN = re.compile(
    r"call_[0-9a-f]{16,}|chain_[0-9a-f]{24}|apr_[0-9a-f]{24}|evt_\w+|out_\w+|\d{4}-\d\d-\d\dT[\d:.+Z]+"
)
_MOMENTS = frozenset({"duration_ms", "retry_after", "at_ns"})
COUNT = "shop:books/count"
Scenario = Callable[[House], Awaitable[Any]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(of: Scenario) -> Scenario:
    SCENARIOS[of.__name__] = of
    return of


def plain(value: Any) -> Any:
    """What a value tells, without what no two houses share."""
    if isinstance(value, BaseException):
        assert isinstance(value, ToolgateError), repr(value)
        told = (type(value).__name__, value.code, str(value), value.details, value.retryable)
        return plain(told)
    if isinstance(value, msgspec.Struct):
        # Whoever makes up fields on the way would show here.
        return type(value).__name__, plain(msgspec.to_builtins(value, enc_hook=repr))
    if isinstance(value, dict):
        told = cast("dict[str, Any]", value)
        return {key: "a number" if key in _MOMENTS else plain(of) for key, of in told.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in cast("list[Any]", value)]
    return _OWN.sub("…", value) if isinstance(value, str) else value


async def raised(what: Awaitable[Any]) -> Any:
    try:
        return await what
    except ToolgateError as error:
        return error


@scenario
async def what_is_discovered(house: House) -> Any:
    return [native(spec) for spec in await house.gate.discover(house.me)]


@scenario
async def what_is_discovered_in_a_narrower_task(house: House) -> Any:
    tasks = [
        Context(read_only=True),
        Context(no_web=True),
        Context(allow=("echo", "group:read")),
        Context(deny=("echo",), facts=(("urgent", True), ("level", 3))),
    ]
    found = [
        await house.gate.discover(msgspec.structs.replace(house.me, context=one)) for one in tasks
    ]
    return [[spec.name for spec in specs] for specs in found]


@scenario
async def calls_that_work(house: House) -> Any:
    call = house.gate.call
    return [
        await call("echo", {"text": "hi"}, caller=house.me),
        await call("echo", {"text": "hi"}, caller=house.me, turn=Turn(group="t-1", id="a")),
        await call(COUNT, {"number": 2, "step": 0.5}, caller=house.me, idempotency_key="k-1"),
        await call("write_line", {"text": "works"}, caller=house.me, wait_s=1),
    ]


@scenario
async def calls_that_fail(house: House) -> Any:
    return [await house.gate.call(tool, caller=house.me) for tool in ("runs_out", "breaks", "odd")]


@scenario
async def calls_that_are_refused(house: House) -> Any:
    call = house.gate.call
    return [
        await raised(call("nothing", caller=house.me)),
        await raised(call("lacked", caller=house.me)),
        await raised(call("absent", {"x": 1}, caller=house.me)),
        await raised(call("n" * 200, caller=house.me)),
        await raised(call("echo", {"text": 1, "more": [{}]}, caller=house.me)),
        await raised(call("echo", caller=house.me)),
        await raised(call("echo", ["hi"], caller=house.me)),
        await raised(call("echo", {"text": "hi"}, caller=house.me, idempotency_key="a b")),
        await raised(call("echo", {"text": "hi"}, caller=house.me, wait_s=601)),
        await raised(call("echo", {"text": "hi"}, caller=house.me, wait_s=float("nan"))),
    ]


@scenario
async def the_same_call_in_a_turn(house: House) -> Any:
    turn = Turn(group=f"t-{secrets.token_hex(4)}")
    given: Any = {"caller": house.me, "turn": turn}
    first = await house.gate.call("write_line", {"text": "turn"}, **given)
    again = await house.gate.call("write_line", {"text": "turn"}, **given)
    other = await house.gate.call("write_line", {"text": "turn!"}, **given)
    return first, again, other, first.call_id == again.call_id != other.call_id


@scenario
async def the_same_key_twice(house: House) -> Any:
    key = secrets.token_hex(8)
    given: Any = {"caller": house.me, "idempotency_key": key}
    first = await house.gate.call("write_line", {"text": "key"}, **given)
    again = await house.gate.call("write_line", {"text": "key"}, **given)
    other = await raised(house.gate.call("write_line", {"text": "another"}, **given))
    return first, again, first.call_id == again.call_id, plain(other)[:2]


@scenario
async def a_person_is_asked(house: House) -> Any:
    text = f"asked {secrets.token_hex(4)}"
    waiting = await house.gate.call("careful", {"text": text}, caller=house.me)
    still = await house.gate.call("careful", {"text": text}, caller=house.me)
    await house.approve(waiting.error.details["approval_id"])
    done = await house.gate.call("careful", {"text": text}, caller=house.me)
    anew = await house.gate.call("careful", {"text": text}, caller=house.me)
    told = str(plain([waiting, still, done, anew])).replace(text, "asked")
    return told, waiting.call_id == still.call_id == done.call_id, len(house.lines(text))


@scenario
async def a_batch(house: House) -> Any:
    calls: list[object] = [
        {"tool": "echo", "args": {"text": "1"}},
        {"tool_name": "nothing", "critical": False},
        PlannedCall(tool="write_line", args={"text": "batch"}, when="AFTER_STEP"),
        {"tool": "runs_out"},
        {"tool": "echo", "args": {"text": "2"}},
    ]
    return await house.gate.batch(calls, caller=house.me)


@scenario
async def batches_that_are_refused(house: House) -> Any:
    odd: list[Any] = [
        [],
        "echo",
        {"tool": "echo"},
        [1],
        [{"tool": ""}],
        [{"tool": "echo", "more": 1}],
        [{"tool": "echo", "idempotency_key": ""}],
        [{"tool": "echo"}] * 11,
    ]
    return [await raised(house.gate.batch(calls, caller=house.me)) for calls in odd]


@scenario
async def a_chain(house: House) -> Any:
    steps: list[object] = [
        {"tool": COUNT, "args": {"number": 1}, "name": "one"},
        Step(tool=COUNT, args={"number": 40}),
        {"tool": COUNT, "args": {"number": 7, "step": "$steps.one.result"}},
    ]
    both = [
        await house.gate.chain(steps, caller=house.me),
        await house.gate.chain(steps, caller=house.me, mode="sequential"),
    ]
    return both, [chain.ok for chain in both]


@scenario
async def chains_that_are_refused(house: House) -> Any:
    odd: list[Any] = [
        [],
        [{"tool": "nothing"}],
        [{"tool": "echo", "args": {"text": "$steps.4.result"}}],
        [{"tool": "write_line", "args": {"text": "x"}}],
    ]
    refused = [await raised(house.gate.chain(steps, caller=house.me)) for steps in odd]
    wrong = house.gate.chain([{"tool": COUNT}], caller=house.me, mode="sideways")
    return refused, await raised(wrong)


@scenario
async def taking_back(house: House) -> Any:
    group = f"t-{secrets.token_hex(4)}"
    turn = Turn(group=group)
    for text in ("first", "second"):
        await house.gate.call("write_line", {"text": text}, caller=house.me, turn=turn)
    report = await house.gate.undo(caller=house.me, turn_group=group, reason="a mistake")
    again = await house.gate.undo(caller=house.me, turn_group=group)
    undone = await house.gate.call("write_line", {"text": "first"}, caller=house.me, turn=turn)
    return report, report.ok, again, undone


@scenario
async def taking_back_what_is_not_there(house: House) -> Any:
    return [
        await raised(house.gate.undo(caller=house.me, call_id="call_nothing")),
        await raised(house.gate.undo(caller=house.me, turn_group="nothing")),
        await raised(house.gate.undo(caller=house.me)),
        await raised(house.gate.undo(caller=house.me, call_id="a", chain="b")),
        await raised(house.gate.undo(caller=house.me, call_id="")),
    ]


@scenario
async def why_a_tool_may_be_called(house: House) -> Any:
    found = [
        await house.gate.explain("echo", caller=house.me),
        await house.gate.explain("careful", caller=house.me, args={"text": "x"}),
        await house.gate.explain(COUNT, caller=house.me, turn=Turn(group="t-1")),
    ]
    return found, [(one.deciding, one.remedies) for one in found]


@scenario
async def a_toolbox(house: House) -> Any:
    box = house.gate.toolbox(house.me, turn=Turn(group=f"t-{secrets.token_hex(4)}"))
    names = ("echo", "write_line", "careful", COUNT, "lacked", "timestamp", "absent", "nothing")
    defined = {name: box.definition(name) for name in names}
    return [
        {shape: box.tools(format=shape) for shape in ("openai", "anthropic", "mcp", "prompt")},
        box.tools(),
        [box.metadata(name) for name in names],
        [(box.is_available(name), box.is_tenant_available(name)) for name in names],
        box.unavailable(),
        {name: None if spec is None else native(spec) for name, spec in defined.items()},
        await box.call(for_model(COUNT), {"number": 1}),
        await box.call("write_line", {"text": "box"}, wait_s=1),
        await raised(box.call("lacked")),
        await box.batch([{"tool": "echo", "args": {"text": "x"}}]),
        await box.chain([{"tool": COUNT, "args": {"number": 1}}]),
    ]


@scenario
async def what_a_model_says(house: House) -> Any:
    box = house.gate.toolbox(house.me, turn=Turn(group=f"t-{secrets.token_hex(4)}"))
    calls = [
        Call("1", "echo", {"text": "hi"}),
        Call("2", "nothing", {}),
        Call("3", "write_line", {"text": "said"}),
    ]
    return [
        await box.run(openai(*calls)),
        await box.run(anthropic(*calls)),
        await box.run('{"tool_name": "echo", "tool_args": {"text": "hi"}}'),
        await box.run({"role": "assistant", "content": "No tools."}),
        await raised(box.run({"role": "user", "content": "run this"})),
        await box.run(openai(*[Call(str(at), "echo", {"text": "hi"}) for at in range(11)])),
    ]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_both_houses_say_the_same(local: House, remote: House, name: str) -> None:
    here, there = plain(await SCENARIOS[name](local)), plain(await SCENARIOS[name](remote))
    assert there == here


async def test_a_call_is_answered_with_an_output(house: House) -> None:
    output = await house.gate.call("echo", {"text": "hi"}, caller=house.me)
    assert type(output) is Output
    assert (output.ok, output.status, output.data) == (True, "success", {"text": "hi"})
    assert output.call_id.startswith("call_")


async def test_refusals_are_raised_and_say_what_is_wrong(house: House) -> None:
    with pytest.raises(ToolNotFound, match="'lacked'"):
        await house.gate.call("lacked", caller=house.me)
    with pytest.raises(InvalidArguments, match="'echo'") as refused:
        await house.gate.call("echo", {"text": 1}, caller=house.me)
    assert refused.value.details["problems"][0]["pointer"] == "/text"
    with pytest.raises(InvalidRequest, match="an object of names"):
        await house.gate.call("echo", "hi", caller=house.me)


async def test_a_side_effect_in_a_turn_happens_once(house: House) -> None:
    text = secrets.token_hex(8)
    for _ in range(3):
        turn = Turn(group=f"t-{text}")
        output = await house.gate.call("write_line", {"text": text}, caller=house.me, turn=turn)
        assert output.ok
    assert house.lines(text) == [text]


async def test_without_a_turn_or_a_key_each_call_is_its_own(house: House) -> None:
    text = secrets.token_hex(8)
    for _ in range(2):
        await house.gate.call("write_line", {"text": text}, caller=house.me)
        await house.gate.batch([{"tool": "write_line", "args": {"text": text}}], caller=house.me)
    assert house.lines(text) == [text] * 4


async def test_a_key_stands_for_one_call(house: House) -> None:
    key = secrets.token_hex(8)
    await house.gate.call("write_line", {"text": "a"}, caller=house.me, idempotency_key=key)
    with pytest.raises(IdempotencyConflict):
        await house.gate.call("write_line", {"text": "b"}, caller=house.me, idempotency_key=key)


async def test_what_was_done_is_taken_back(house: House) -> None:
    text = secrets.token_hex(8)
    turn = Turn(group=f"t-{text}")
    await house.gate.call("write_line", {"text": text}, caller=house.me, turn=turn)
    report = await house.gate.undo(turn_group=turn.group, caller=house.me)
    assert report.ok
    assert [item.result for item in report.items] == ["undone"]
    assert house.lines(text) == [text, f"-{text}"]


async def test_a_task_takes_tools_away(house: House) -> None:
    narrow = Caller(tenant=ME.tenant, agent=ME.agent, context=Context(read_only=True))
    assert "write_line" not in [spec.name for spec in await house.gate.discover(narrow)]
    with pytest.raises(ToolNotFound):
        await house.gate.call("write_line", {"text": "x"}, caller=narrow)
    box = await house.gate.toolbox(narrow).refresh()
    assert (box.is_available("echo"), box.is_available("write_line")) == (True, False)


async def test_a_limit_is_told_with_when_to_come_back(house: House) -> None:
    await raised(house.gate.call("seldom", caller=house.me))
    with pytest.raises(RateLimited) as refused:
        await house.gate.call("seldom", caller=house.me)
    assert refused.value.retryable
    assert refused.value.details["retry_after"] > 0


async def test_events_tell_of_a_side_effect(house: House) -> None:
    text = secrets.token_hex(8)
    news = await house.gate.events("acme").ready()
    output = await house.gate.call("write_line", {"text": text}, caller=house.me)
    told = [await anext(news) for _ in range(2)]
    assert [event.kind for event in told] == ["side_effect.started", "side_effect.completed"]
    assert {(event.tool, event.call_id) for event in told} == {("write_line", output.call_id)}
    news.close()
    assert [event async for event in news] == []
