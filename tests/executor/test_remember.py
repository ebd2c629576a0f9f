"""What a session did is known before the next decision, and only what may be known."""

import asyncio
from typing import Any

import pytest

from toolgate import Call, Caller, Extension, Output, ToolError, Turn, tool
from toolgate.errors import InvalidArguments, StoreUnavailable
from toolgate.executor.recording.remember import Remember
from toolgate.ledger.history import Past
from toolgate.ledger.state import State
from toolgate.testing.history import MemoryHistory
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("G3", "S3")
ME = Caller(tenant="acme", agent="billing", session="s-1")
EFFECTS = ["pure", "idempotent", "irreversible"]
CANARY = "canary-77fe"


def yes() -> bool:
    return True


def no() -> bool:
    return False


def ends(history: MemoryHistory) -> list[tuple[str, str]]:
    return [(past.tool, past.state.value) for past in history.calls.values()]


class Away(MemoryHistory):
    """A store that is away, from the start or once a call has begun."""

    def __init__(self, *, at: str) -> None:
        super().__init__()
        self._at = at

    async def begin(self, past: Past) -> None:
        if self._at == "begin":
            raise StoreUnavailable("away")
        await super().begin(past)

    async def end(self, call_id: str, state: State) -> None:
        if self._at == "end":
            raise StoreUnavailable("away")
        await super().end(call_id, state)


@pytest.mark.parametrize("effect", EFFECTS)
async def test_nothing_is_kept_that_no_policy_looks_at(effect: Any) -> None:
    @tool(effect=effect)
    async def act(order: int) -> int:
        return order

    for wanted, caller, turn, kept in (
        (yes, ME, None, 1),
        (yes, Caller(tenant="acme"), Turn(group="t-1"), 1),
        (no, ME, Turn(group="t-1"), 0),
        (yes, Caller(tenant="acme"), None, 0),
    ):
        history = MemoryHistory()
        async with in_memory(act, extensions=[Remember(history, wanted)]) as house:
            assert (await house.call("act", {"order": 7}, caller=caller, turn=turn)).data == 7
        assert len(history.calls) == kept


async def test_whether_it_is_wanted_is_asked_for_every_call() -> None:
    @tool(effect="pure")
    async def act() -> None: ...

    wanted = False
    history = MemoryHistory()
    async with in_memory(act, extensions=[Remember(history, lambda: wanted)]) as house:
        await house.call("act", caller=ME)
        wanted = True
        await house.call("act", caller=ME)
    assert len(history.calls) == 1


@pytest.mark.parametrize("effect", ["idempotent", "irreversible"])
async def test_while_a_side_effect_runs_it_is_in_flight(effect: Any) -> None:
    history = MemoryHistory()
    seen: list[Any] = []

    @tool(effect=effect)
    async def act(order: int) -> None:
        seen.append((await history.of(ME, Turn(group="t-1")))["session"]["tools"]["act"])

    async with in_memory(act, extensions=[Remember(history, yes)]) as house:
        await house.call("act", {"order": 7}, caller=ME, turn=Turn(group="t-1"))
    assert seen[0]["in_flight"] == 1
    found = await history.of(ME, Turn(group="t-1"))
    assert found["session"] == found["turn"]
    after = found["turn"]["tools"]["act"]
    assert (after["in_flight"], after["succeeded"], after["args"]) == (0, 1, {"order": [7]})


OUTCOMES = {
    # succeeded, ToolError, another exception, not JSON
    "pure": ["succeeded", "failed", "failed", "succeeded"],
    "idempotent": ["succeeded", "failed", "failed", "succeeded"],
    "irreversible": ["succeeded", "failed", "unknown", "succeeded"],
}


@pytest.mark.parametrize("effect", OUTCOMES)
async def test_each_end_is_kept_as_it_is_on_record(effect: Any) -> None:
    @tool(effect=effect)
    async def act(how: str) -> Any:
        if how == "tool_error":
            raise ToolError("not done")
        if how == "raise":
            raise ValueError
        return object() if how == "not_json" else how

    history = MemoryHistory()
    async with in_memory(act, extensions=[Remember(history, yes)]) as house:
        for how in ("fine", "tool_error", "raise", "not_json"):
            await house.call("act", {"how": how}, caller=ME)
        with pytest.raises(InvalidArguments):
            await house.call("act", {"how": 1}, caller=ME)
    assert [state for _, state in ends(history)] == OUTCOMES[effect]


@pytest.mark.parametrize("effect", EFFECTS)
async def test_a_tool_that_an_extension_answered_for_did_not_succeed(effect: Any) -> None:
    class Answers(Extension):
        priority = 450

        def before(self, call: Call) -> Output:
            return Output(status="success", data="from elsewhere")

    @tool(effect=effect)
    async def act() -> None: ...

    history = MemoryHistory()
    async with in_memory(act, extensions=[Remember(history, yes), Answers()]) as house:
        await house.call("act", caller=ME)
    assert ends(history) == [("act", "failed")]


@pytest.mark.parametrize("effect", EFFECTS)
async def test_what_cannot_be_kept_is_not_done_or_not_answered(effect: Any) -> None:
    ran: list[str] = []

    @tool(effect=effect)
    async def act() -> None:
        ran.append("act")

    async with in_memory(act, extensions=[Remember(Away(at="begin"), yes)]) as house:
        with pytest.raises(StoreUnavailable):
            await house.call("act", caller=ME)
    assert ran == (["act"] if effect == "pure" else []), "a pure call can be asked again"


async def test_an_end_that_cannot_be_kept_stays_in_flight(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool(effect="irreversible")
    async def act() -> str:
        return "done"

    history = Away(at="end")
    async with in_memory(act, extensions=[Remember(history, yes)]) as house:
        assert (await house.call("act", caller=ME)).data == "done"
    assert ends(history) == [("act", "started")]
    assert "lacks the end of call" in caplog.text


@pytest.mark.parametrize(
    ("effect", "state"),
    [("pure", "failed"), ("idempotent", "unknown"), ("irreversible", "unknown")],
)
async def test_a_caller_that_goes_away_leaves_what_is_known(effect: Any, state: str) -> None:
    running = asyncio.Event()

    @tool(effect=effect)
    async def act() -> None:
        running.set()
        await asyncio.Event().wait()

    history = MemoryHistory()
    async with in_memory(act, extensions=[Remember(history, yes)]) as house:
        calling = asyncio.create_task(house.call("act", caller=ME))
        await running.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert ends(history) == [("act", state)]


async def test_a_store_that_hangs_before_the_call_ends_it_in_time_and_says_that_nothing_ran() -> (
    None
):
    ran: list[str] = []

    class Hangs(MemoryHistory):
        async def begin(self, past: Past) -> None:
            await super().begin(past)
            await asyncio.Event().wait()

    @tool(effect="irreversible", timeout=0.02)
    async def pay() -> None:
        ran.append("pay")

    history = Hangs()
    async with in_memory(pay, extensions=[Remember(history, yes)]) as house:
        with pytest.raises(StoreUnavailable, match="nothing ran"):
            await house.call("pay", caller=ME)
    assert ran == []
    assert ends(history) == [("pay", "failed")]


async def test_arguments_that_change_while_they_are_kept_are_not_the_ones_that_run() -> None:
    args: dict[str, Any] = {"order": 7}

    class Slow(MemoryHistory):
        async def begin(self, past: Past) -> None:
            args["order"] = 8
            await super().begin(past)

    ran: list[int] = []

    @tool(effect="irreversible")
    async def refund(order: int) -> None:
        ran.append(order)

    history = Slow()
    async with in_memory(refund, extensions=[Remember(history, yes)]) as house:
        await house.call("refund", args, caller=ME)
    assert ran == [7]
    assert [past.args for past in history.calls.values()] == [{"order": 7}]


def schema(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {}, "b": {}}, **more}


async def kept(given: dict[str, Any], input_schema: dict[str, Any]) -> dict[str, Any]:
    @tool(effect="pure", input_schema=input_schema)
    async def act(**args: Any) -> None: ...

    history = MemoryHistory()
    async with in_memory(act, extensions=[Remember(history, yes)]) as house:
        await house.call("act", given, caller=ME)
    [past] = history.calls.values()
    return dict(past.args)


@pytest.mark.parametrize("value", ["x" * 256, "é🙂", 0, -1, 2**63, 1.5, True, False, ""])
async def test_small_plain_values_are_kept(value: Any) -> None:
    assert await kept({"a": value}, schema()) == {"a": value}


@pytest.mark.parametrize("value", ["x" * 257, None, [1], {"b": 1}, []])
async def test_what_is_large_or_nested_is_not_kept(value: Any) -> None:
    assert await kept({"a": value, "b": 1}, schema()) == {"b": 1}


async def test_of_many_arguments_the_first_are_kept() -> None:
    given = {f"a{number}": number for number in range(40)}
    assert list(await kept(given, schema())) == [f"a{number}" for number in range(32)]


SECRETS: list[dict[str, Any]] = [
    schema(properties={"a": {"writeOnly": True}, "b": {}}),
    schema(properties={"a": {"secret": True}, "b": {}}),
    schema(properties={"a": {"type": "string", "format": "password"}, "b": {}}),
    schema(
        properties={"a": {"$ref": "#/$defs/token"}, "b": {}},
        **{"$defs": {"token": {"type": "string", "writeOnly": True}}},
    ),
    schema(properties={"a": {"anyOf": [{"type": "string", "secret": True}]}, "b": {}}),
    schema(allOf=[{"properties": {"a": {"format": "password"}}}]),
]


@pytest.mark.req("O2")
@pytest.mark.parametrize("input_schema", SECRETS)
async def test_a_secret_is_not_kept(input_schema: dict[str, Any]) -> None:
    assert await kept({"a": CANARY, "b": 1}, input_schema) == {"b": 1}


async def test_what_is_not_marked_would_be_kept() -> None:
    unmarked = schema(properties={"a": {"writeOnly": False, "secret": False}, "b": {}})
    assert await kept({"a": CANARY, "b": 1}, unmarked) == {"a": CANARY, "b": 1}


@pytest.mark.parametrize(
    "more",
    [
        {"additionalProperties": {"secret": True}},
        {"patternProperties": {"^a": {"writeOnly": True}}},
    ],
)
async def test_where_any_name_may_be_a_secret_nothing_is_kept(more: dict[str, Any]) -> None:
    assert await kept({"a": CANARY, "b": 1}, schema(**more)) == {}
