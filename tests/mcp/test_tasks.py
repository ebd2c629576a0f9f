"""Calls that take long: a client that takes tasks gets one, and asks how it stands."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.house import states, until
from tests.mcp.house import House, opened
from tests.mcp.tasking import EXTENSION, TAKES, Desk
from toolgate import Call, Caller, ToolError, tool
from toolgate.asked import Question
from toolgate.server.mcp import tasks
from toolgate.server.mcp.tasks import Tasks

pytestmark = pytest.mark.req("V1")
NAME = Question(
    "elicitation/create",
    {
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
)


class Slow:
    """Tools that end when a test says so."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.ran: list[str] = []
        self.given_up = 0

    async def work(self) -> None:
        self.ran.append("began")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise

    def added_to(self, house: House) -> None:
        @tool(effect="pure")
        async def look(call: Call) -> dict[str, str]:
            """Look at it for long."""
            call.progress(3, 10, "looking")
            await self.work()
            return {"seen": "all"}

        @tool(effect="irreversible")
        async def send(to: str) -> dict[str, str]:
            """Send it, slowly."""
            await self.work()
            return {"sent": to}

        @tool(effect="pure")
        async def fail() -> str:
            """Fail in the end."""
            await self.work()
            raise ToolError("There are only three left.")

        @tool(effect="irreversible")
        async def greet(call: Call) -> str:
            """Ask two names, late, and greet both."""
            await self.work()
            said = await call.ask({"first": NAME, "second": NAME})
            self.ran.append("greeted")
            return " and ".join(said[one]["content"]["name"] for one in ("first", "second"))

        @tool(effect="irreversible", requires_confirmation=True)
        async def pay(to: str) -> str:
            """Pay."""
            self.ran.append("paid")
            return to

        @tool(effect="pure")
        async def quick() -> str:
            """At once."""
            return "quick"

        house.gate.add(look, send, fail, greet, pay, quick)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
async def desk(tmp_path: Path, slow: Slow) -> AsyncGenerator[Desk]:
    async with opened(tmp_path, task_after=0.01) as house:
        slow.added_to(house)
        yield Desk(house)


@pytest.fixture
async def patient(tmp_path: Path, slow: Slow) -> AsyncGenerator[Desk]:
    """Nothing takes long enough here."""
    async with opened(tmp_path, task_after=300) as house:
        slow.added_to(house)
        yield Desk(house)


def answer(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


async def test_a_call_that_takes_long_becomes_a_task(desk: Desk, slow: Slow) -> None:
    made = await desk.call("look")
    assert made["resultType"] == "task"
    assert made["status"] == "working"
    assert made["ttlMs"] >= 3_600_000
    assert not made.keys() & {"task", "result", "error", "inputRequests", "requestState"}
    found = await desk.get(made)
    assert found["resultType"] == "complete"
    assert found["status"] == "working"
    assert found["createdAt"] == made["createdAt"]
    assert found["statusMessage"] == "looking (3 of 10)"
    slow.go.set()
    over = await desk.over(made)
    assert over["status"] == "completed"
    assert over["result"]["structuredContent"] == {"seen": "all"}
    assert over["result"]["resultType"] == "complete"
    assert over["_meta"]["toolgate/callId"] == over["result"]["_meta"]["toolgate/callId"]
    assert slow.ran == ["began"]


async def test_a_call_that_is_soon_over_is_answered_as_ever(patient: Desk, slow: Slow) -> None:
    assert (await patient.call("quick"))["content"][0]["text"] == "quick"
    slow.go.set()
    assert (await patient.call("look"))["structuredContent"] == {"seen": "all"}


async def test_who_takes_no_tasks_gets_none(desk: Desk, slow: Slow) -> None:
    calling = asyncio.create_task(desk.house.post("tools/call", {"name": "look"}))
    await until(lambda: slow.ran == ["began"])
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        status, found = await desk.raw(method, {"taskId": "x"}, takes={})
        assert (status, found["error"]["code"]) == (400, -32021)
        assert found["error"]["data"] == {"requiredCapabilities": TAKES}
    slow.go.set()
    _, found = await calling
    assert found["result"]["structuredContent"] == {"seen": "all"}


async def test_the_extension_is_told_of_where_tools_are(desk: Desk, tmp_path: Path) -> None:
    _, found = await desk.house.post("server/discover")
    assert found["result"]["capabilities"]["extensions"] == {EXTENSION: {}}
    (tmp_path / "other").mkdir()
    async with opened(tmp_path / "other", expose_tools=False) as house:
        _, found = await house.post("server/discover")
        assert "extensions" not in found["result"]["capabilities"]
        status, found = await Desk(house).raw("tasks/get", {"taskId": "x"})
        assert (status, found["error"]["code"]) == (404, -32601)
    async with desk.house.client("legacy") as client:
        assert not client.server_capabilities.extensions


async def test_a_tool_that_fails_completes_its_task_with_an_error(desk: Desk, slow: Slow) -> None:
    made = await desk.call("fail")
    slow.go.set()
    over = await desk.over(made)
    assert over["status"] == "completed"
    assert over["result"]["isError"] is True
    assert "only three left" in over["result"]["content"][0]["text"]


async def test_what_cannot_be_asked_fails_the_task(desk: Desk, slow: Slow) -> None:
    made = await desk.call("greet")
    slow.go.set()
    over = await desk.over(made)
    assert over["status"] == "failed"
    assert over["error"]["code"] == -32021
    assert over["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
    assert "result" not in over
    assert slow.ran == ["began"]


async def test_a_pure_task_can_be_given_up(desk: Desk, slow: Slow) -> None:
    made = await desk.call("look")
    for _ in range(2):
        ack = await desk.ask("tasks/cancel", {"taskId": made["taskId"]})
        assert ack.keys() == {"resultType", "_meta"}
    assert (await desk.get(made))["status"] == "cancelled"
    await until(lambda: slow.given_up == 1)
    slow.go.set()
    assert (await desk.get(made))["status"] == "cancelled"


async def test_a_side_effect_that_has_begun_runs_to_its_end(desk: Desk, slow: Slow) -> None:
    made = await desk.call("send", {"to": "bob"})
    await until(lambda: slow.ran == ["began"])
    ack = await desk.ask("tasks/cancel", {"taskId": made["taskId"]})
    assert ack.keys() == {"resultType", "_meta"}
    assert (await desk.get(made))["status"] == "working"
    slow.go.set()
    over = await desk.over(made)
    assert over["status"] == "completed"
    assert over["result"]["structuredContent"] == {"sent": "bob"}
    assert slow.given_up == 0


async def test_who_loses_sight_of_a_task_calls_again_with_its_key(desk: Desk, slow: Slow) -> None:
    made = await desk.call("send", {"to": "bob"})
    key = made["_meta"]["toolgate/idempotencyKey"]
    again = await desk.call("send", {"to": "bob"}, meta={"toolgate/idempotencyKey": key})
    assert again["taskId"] != made["taskId"]
    slow.go.set()
    results = [(await desk.over(one))["result"] for one in (made, again)]
    assert results[0]["structuredContent"] == results[1]["structuredContent"] == {"sent": "bob"}
    assert slow.ran == ["began"]


async def test_what_a_task_asks_is_answered_piece_by_piece(desk: Desk, slow: Slow) -> None:
    desk = desk.that_is_asked()
    made = await desk.call("greet")
    slow.go.set()
    found = await desk.until_it_is(made, "input_required")
    assert found["inputRequests"].keys() == {"first", "second"}
    assert found["inputRequests"]["first"]["method"] == "elicitation/create"
    assert "requestState" not in found
    _, refused = await desk.raw("tasks/update", {"taskId": made["taskId"]})
    assert refused["error"]["code"] == -32602
    ack = await desk.update(made, {"first": answer("Ann"), "third": answer("Eve"), "second": 5})
    assert ack.keys() == {"resultType", "_meta"}
    found = await desk.get(made)
    assert found["status"] == "input_required"
    assert found["inputRequests"].keys() == {"second"}
    # What is answered is answered.
    await desk.update(made, {"first": answer("Eve"), "second": answer("Bob")})
    over = await desk.over(made)
    assert over["result"]["content"][0]["text"] == "Ann and Bob"
    assert slow.ran == ["began", "began", "greeted"]
    await desk.update(made, {"first": answer("Eve"), "second": answer("Eve")})
    assert (await desk.get(made))["result"] == over["result"]


async def test_a_task_that_waits_for_answers_can_be_given_up(desk: Desk, slow: Slow) -> None:
    desk = desk.that_is_asked()
    made = await desk.call("greet")
    slow.go.set()
    await desk.until_it_is(made, "input_required")
    await desk.ask("tasks/cancel", {"taskId": made["taskId"]})
    found = await desk.get(made)
    assert found["status"] == "cancelled"
    assert "inputRequests" not in found
    await desk.update(made, {"first": answer("Ann"), "second": answer("Bob")})
    assert (await desk.get(made))["status"] == "cancelled"
    assert slow.ran == ["began"]


async def test_questions_before_it_takes_long_are_answered_with_the_call(
    patient: Desk, slow: Slow
) -> None:
    slow.go.set()
    patient = patient.that_is_asked()
    asked = await patient.call("greet")
    assert asked["resultType"] == "input_required"
    said = {"first": answer("Ann"), "second": answer("Bob")}
    state = asked["requestState"]
    found = await patient.call("greet", inputResponses=said, requestState=state)
    assert found["content"][0]["text"] == "Ann and Bob"
    assert slow.ran.count("greeted") == 1


@pytest.mark.req("S1")
async def test_a_person_confirms_a_task_and_it_runs_once(desk: Desk, slow: Slow) -> None:
    desk = desk.that_is_asked()
    # As long as it waits for the person elsewhere, it takes long.
    made = await desk.call("pay", {"to": "bob"}, meta={"toolgate/waitSeconds": 0.3})
    assert made["resultType"] == "task"
    found = await desk.until_it_is(made, "input_required")
    assert list(found["inputRequests"]) == ["toolgate/confirm"]
    yes: Mapping[str, Any] = {"action": "accept", "content": {"confirm": True}}
    await asyncio.gather(*(desk.update(made, {"toolgate/confirm": yes}) for _ in range(3)))
    over = await desk.over(made)
    assert over["result"]["content"][0]["text"] == "bob"
    assert slow.ran == ["paid"]


async def test_a_task_whose_question_was_closed_ends_and_nothing_ran(
    desk: Desk, slow: Slow
) -> None:
    desk = desk.that_is_asked()
    made = await desk.call("pay", {"to": "bob"}, meta={"toolgate/waitSeconds": 0.3})
    await desk.until_it_is(made, "input_required")
    await desk.update(made, {"toolgate/confirm": {"action": "cancel"}})
    over = await desk.over(made)
    assert over["result"]["_meta"]["toolgate/error"]["code"] == "approval_pending"
    assert slow.ran == []


async def test_many_tasks_of_several_keys_end_each_with_its_own_result(
    desk: Desk, slow: Slow
) -> None:
    keys = (desk.house.ann, desk.house.plain, desk.house.other)
    made = await asyncio.gather(
        *(desk.call("send", {"to": f"{one}"}, key=keys[one % 3]) for one in range(60))
    )
    assert {one["resultType"] for one in made} == {"task"}
    assert len({one["_meta"]["toolgate/idempotencyKey"] for one in made}) == 60
    slow.go.set()
    for number, one in enumerate(made):
        over = await desk.over(one, key=keys[number % 3])
        assert over["result"]["structuredContent"] == {"sent": f"{number}"}
    assert slow.ran == ["began"] * 60


@pytest.mark.req("S1")
async def test_to_any_other_key_a_task_is_not_there(
    desk: Desk, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await desk.call("look")
    house, id_ = desk.house, made["taskId"]
    requests: tuple[tuple[str, dict[str, Any]], ...] = (
        ("tasks/get", {}),
        ("tasks/update", {"inputResponses": {}}),
        ("tasks/cancel", {}),
    )
    for method, more in requests:
        unknown = await desk.raw(method, {"taskId": "a" * 32, **more})
        assert (unknown[0], unknown[1]["error"]["code"]) == (400, -32602)
        for key in (house.plain, house.other):
            assert await desk.raw(method, {"taskId": id_, **more}, key=key) == unknown
    assert (await desk.get(made))["status"] == "working"

    def anybodys(self: Tasks, peer: object, id_: str) -> object:
        return self._all.get(id_)  # pyright: ignore[reportPrivateUsage]

    with monkeypatch.context() as off:
        off.setattr(Tasks, "_of", anybodys)
        status, found = await desk.raw("tasks/get", {"taskId": id_}, key=house.other)
        assert (status, found["result"]["taskId"]) == (200, id_)
    slow.go.set()
    assert (await desk.over(made))["status"] == "completed"


async def test_where_there_is_no_room_a_call_is_waited_for(
    desk: Desk, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MOST_OF_KEY", 1)
    made = await desk.call("look")
    calling = asyncio.create_task(desk.call("look"))
    other = await desk.call("look", key=desk.house.plain)
    assert other["resultType"] == "task"
    slow.go.set()
    assert (await calling)["structuredContent"] == {"seen": "all"}
    assert (await desk.over(made))["status"] == "completed"


async def test_what_is_over_is_kept_for_a_while(
    desk: Desk, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await desk.call("look")
    slow.go.set()
    await desk.over(made)
    assert (await desk.get(made))["status"] == "completed"
    monkeypatch.setattr(tasks, "TTL_MS", 0)
    _, found = await desk.raw("tasks/get", {"taskId": made["taskId"]})
    assert found["error"]["code"] == -32602


async def test_a_client_that_goes_away_before_it_gets_a_task_ends_what_changes_nothing(
    patient: Desk, slow: Slow
) -> None:
    calling = [
        asyncio.create_task(patient.call(one, {"to": "x"} if one == "send" else {}))
        for one in ("look", "send")
    ]
    await until(lambda: slow.ran == ["began", "began"])
    for one in calling:
        one.cancel()
    await until(lambda: slow.given_up == 1)
    slow.go.set()
    caller = Caller(tenant="acme", agent="billing")
    deadline = 200
    while ("send", "succeeded", "") not in await states(patient.house.gate, caller):
        assert (deadline := deadline - 1)
        await asyncio.sleep(0.01)
    assert slow.given_up == 1
