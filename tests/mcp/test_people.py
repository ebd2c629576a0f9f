"""Confirmations through the client: a person's word counts once, and nobody else's does."""

import contextlib
from typing import Any

import mcp_types as types
import pytest

from tests.mcp.house import MODES, House
from toolgate import tool
from toolgate.server.mcp.seal import Seal

pytestmark = pytest.mark.req("V1", "S6")
both = pytest.mark.parametrize("mode", MODES)
CAPABLE: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
NAME = "toolgate/confirm"
YES = {NAME: {"action": "accept", "content": {"confirm": True}}}
NO = {NAME: {"action": "decline"}}


class Post:
    """What was really sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def tools(self) -> list[Any]:
        @tool(effect="irreversible", requires_confirmation=True)
        async def mail(to: str) -> dict[str, int]:
            """Send it."""
            self.sent.append(to)
            return {"sent": len(self.sent)}

        @tool(effect="irreversible", requires_approval=True)
        async def pay(to: str) -> dict[str, int]:
            """Pay it."""
            self.sent.append(to)
            return {"sent": len(self.sent)}

        return [mail, pay]


@pytest.fixture
def post(house: House) -> Post:
    made = Post()
    house.gate.add(*made.tools())
    return made


def saying(action: str, *, confirm: Any = True) -> Any:
    async def answer(_: Any, params: Any) -> types.ElicitResult:
        assert '"to": "bob"' in params.message
        content = {"confirm": confirm} if action == "accept" else None
        return types.ElicitResult(action=action, content=content)  # pyright: ignore[reportArgumentType]

    return answer


@both
async def test_a_yes_of_the_user_runs_it_once(house: House, post: Post, mode: str) -> None:
    async with house.client(mode, elicitation_callback=saying("accept")) as client:
        done = await client.call_tool("mail", {"to": "bob"})
        assert done.structured_content == {"sent": 1}
        assert post.sent == ["bob"]


@both
@pytest.mark.parametrize(
    "answer", [saying("decline"), saying("accept", confirm=False), saying("cancel")]
)
async def test_anything_else_runs_nothing(house: House, post: Post, mode: str, answer: Any) -> None:
    async with house.client(mode, elicitation_callback=answer) as client:
        # A client may give up after some rounds.
        with contextlib.suppress(Exception):
            assert (await client.call_tool("mail", {"to": "bob"})).is_error
        assert post.sent == []


CANCEL = {NAME: {"action": "cancel"}}
ODD = {NAME: {"action": "accept", "content": {"confirm": "yes"}}}


@pytest.mark.parametrize("answers", [NO, CANCEL, ODD], ids=["no", "closed", "odd"])
async def test_without_a_yes_nothing_runs_also_when_somebody_else_agreed_meanwhile(
    house: House, post: Post, answers: Any
) -> None:
    state = (await _round(house))["result"]["requestState"]
    [asked] = await house.gate.approvals.list("acme")
    await house.gate.approvals.approve(asked.id, by="op")
    told = (await _round(house, answers=answers, state=state))["result"]
    # Once: who is asked again and again gives up.
    assert (told["resultType"], told["isError"]) == ("complete", True)
    assert post.sent == []
    # The control: a yes to the same question.
    done = await _round(house, answers=YES, state=state)
    assert (done["result"]["structuredContent"], post.sent) == ({"sent": 1}, ["bob"])


async def test_a_no_at_the_older_revision_counts_also_when_somebody_agreed_meanwhile(
    house: House, post: Post
) -> None:
    async def agreed_elsewhere(_: Any, _params: Any) -> types.ElicitResult:
        [asked] = await house.gate.approvals.list("acme")
        await house.gate.approvals.approve(asked.id, by="op")
        return types.ElicitResult(action="decline")

    async with house.client("legacy", elicitation_callback=agreed_elsewhere) as client:
        told = await client.call_tool("mail", {"to": "bob"})
        assert told.is_error
        assert "said no" in str(told)
    assert post.sent == []


GROUP = {"toolgate/turnGroup": "t-1", "toolgate/turnId": "1"}


@pytest.mark.parametrize("again", [{}, GROUP], ids=["without its turn", "with it"])
async def test_a_state_keeps_its_turn(house: House, post: Post, again: dict[str, Any]) -> None:
    state = (await _round(house, meta=GROUP))["result"]["requestState"]
    for id_ in range(3):
        done = await _round(house, answers=YES, state=state, id_=id_, meta=again)
        assert done["result"]["structuredContent"] == {"sent": 1}
    assert post.sent == ["bob"]


@pytest.mark.parametrize(
    "other", [{"toolgate/turnGroup": "t-2"}, {"toolgate/idempotencyKey": "another"}]
)
async def test_a_state_is_of_no_other_turn_and_key(
    house: House, post: Post, other: dict[str, Any]
) -> None:
    state = (await _round(house))["result"]["requestState"]
    refused = await _round(house, answers=YES, state=state, meta=other)
    assert refused["error"]["code"] == -32602
    assert post.sent == []


@both
async def test_a_client_that_cannot_ask_is_told_where_it_is_decided(
    house: House, post: Post, mode: str
) -> None:
    async with house.client(mode) as client:
        waiting = await client.call_tool("mail", {"to": "bob"})
        assert waiting.is_error
        assert "toolgate approvals approve" in str(waiting) or "confirmation" in str(waiting)
        assert waiting.meta is not None
        assert waiting.meta["toolgate/status"] == "pending_approval"
        [asked] = await house.gate.approvals.list("acme")
        await house.gate.approvals.approve(asked.id, by="op")
        done = await client.call_tool("mail", {"to": "bob"})
        assert done.structured_content == {"sent": 1}
        assert post.sent == ["bob"]


@both
async def test_nobody_approves_their_own_through_the_client(
    house: House, post: Post, mode: str
) -> None:
    async with house.client(mode, elicitation_callback=saying("accept")) as client:
        # A client may give up after some rounds.
        with contextlib.suppress(Exception):
            assert (await client.call_tool("pay", {"to": "bob"})).is_error
        assert post.sent == []
        [asked] = await house.gate.approvals.list("acme")
        await house.gate.approvals.approve(asked.id, by="op")
        done = await client.call_tool("pay", {"to": "bob"})
        assert (done.structured_content, post.sent) == ({"sent": 1}, ["bob"])


async def test_an_agent_without_a_user_confirms_nothing(house: House, post: Post) -> None:
    answer = (await _round(house, key=house.plain))["result"]
    assert (answer["resultType"], answer["isError"]) == ("complete", True)
    [asked] = await house.gate.approvals.list("acme")
    assert f"toolgate approvals approve {asked.id}" in answer["content"][0]["text"]
    error = answer["_meta"]["toolgate/error"]
    assert (error["code"], error["details"]["approval_id"]) == ("approval_pending", asked.id)
    assert post.sent == []


async def test_the_same_state_under_another_id_runs_it_only_once(house: House, post: Post) -> None:
    asked = await _round(house)
    assert asked["result"]["resultType"] == "input_required"
    state = asked["result"]["requestState"]
    done = [await _round(house, answers=YES, state=state, id_=id_) for id_ in (2, 3, "four")]
    assert [one["result"]["structuredContent"] for one in done] == [{"sent": 1}] * 3
    assert post.sent == ["bob"]


async def test_a_yes_without_its_state_is_no_yes(house: House, post: Post) -> None:
    await _round(house)
    answer = await _round(house, answers=YES)
    assert answer["result"]["resultType"] == "input_required"
    assert post.sent == []


@pytest.mark.parametrize("change", ["longer", "other arguments", "other key", "other tenant"])
async def test_a_state_holds_for_its_call_and_its_key(
    house: House, post: Post, change: str
) -> None:
    state = (await _round(house))["result"]["requestState"]
    match change:
        case "longer":
            answer = await _round(house, answers=YES, state=state + "A")
        case "other arguments":
            answer = await _round(house, to="eve", answers=YES, state=state)
        case _:
            key = house.plain if change == "other key" else house.other
            answer = await _round(house, key=key, answers=YES, state=state)
    assert answer["error"]["code"] == -32602
    assert post.sent == []
    # The control: as it was given out, it works.
    done = await _round(house, answers=YES, state=state)
    assert (done["result"]["structuredContent"], post.sent) == ({"sent": 1}, ["bob"])


async def test_without_the_signature_any_state_would_do(
    house: House, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""

    def unsigned(_seal: Seal, _body: bytes, _bound: str) -> bytes:
        return b"\0" * 32

    monkeypatch.setattr(Seal, "_sign", unsigned)
    forged = (await _round(house, to="eve"))["result"]["requestState"]
    answer = await _round(house, key=house.plain, to="mallory", answers=YES, state=forged)
    assert "error" not in answer, "it is taken for a state of this call"


async def _round(
    house: House,
    *,
    to: str = "bob",
    key: str = "",
    answers: Any = None,
    state: str | None = None,
    id_: Any = 1,
    meta: dict[str, Any] | None = None,
) -> Any:
    params: dict[str, Any] = {"name": "mail", "arguments": {"to": to}}
    if answers is not None:
        params["inputResponses"] = answers
    if state is not None:
        params["requestState"] = state
    _status, answer = await house.post(
        "tools/call", params, key=key, meta=CAPABLE | (meta or {}), id_=id_
    )
    return answer
