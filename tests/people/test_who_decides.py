"""Which calls are asked about, and whose word counts as a yes."""

from pathlib import Path
from typing import Any

import pytest

from tests.people.asked import ANN, BOT, TURN, id_of, look, pay, pending, ran, send
from toolgate import Caller, Toolgate, Turn
from toolgate.errors import ApprovalNotFound, PermissionDenied
from toolgate.ledger.approval import Kind, Standing
from toolgate.settings.execution import Approvals as ApprovalSettings
from toolgate.settings.settings import Settings

pytestmark = pytest.mark.req("S6")


async def test_no_message_and_no_second_call_counts_as_a_yes(gate: Toolgate) -> None:
    yes = Turn(group="t1", id="2", has_pending_messages=lambda: True, emit=lambda _event: "yes")
    id_ = await pending(gate, "send")
    for text in ("yes", "approved", id_, "I approve"):
        other = await gate.call("send", {"text": text}, caller=ANN, turn=yes)
        assert other.status == "pending_approval"
        assert id_of(await gate.call("send", {"text": "hi"}, caller=ANN, turn=yes)) == id_
    assert ran == []
    await gate.approvals.approve(id_, by=ANN)
    assert (await gate.call("send", {"text": "hi"}, caller=ANN, turn=TURN)).ok


WHO = {
    # An approval: an operator who is not the one that asked.
    ("pay", "an operator"): ("boss", True),
    ("pay", "the user, as an operator"): ("ann", False),
    ("pay", "the user at this machine"): ("cli:ann", False),
    ("pay", "the user in capitals"): ("Ann", False),
    ("pay", "the user in wide letters"): ("\uff21\uff2e\uff2e", False),
    ("pay", "a user whose name begins so"): ("Anna", True),
    ("pay", "the agent for its user"): (ANN, False),
    ("pay", "the agent alone"): (BOT, False),
    ("pay", "another user"): (Caller(tenant="acme", agent="billing", user="eve"), False),
    ("send", "an operator"): ("boss", True),
    # A confirmation: also the user that the agent acts for.
    ("send", "the user"): (ANN, True),
    ("send", "the user with another agent"): (
        Caller(tenant="acme", agent="front", user="ann"),
        True,
    ),
    ("send", "whoever is called almost so"): (
        Caller(tenant="acme", agent="front", user="Ann"),
        False,
    ),
    ("send", "the agent alone"): (BOT, False),
    ("send", "another user"): (Caller(tenant="acme", agent="billing", user="eve"), False),
}


@pytest.mark.parametrize(("name", "who"), WHO)
@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_who_may_decide(gate: Toolgate, name: str, who: str, verb: str) -> None:
    by, may = WHO[name, who]
    id_ = await pending(gate, name)
    decide = getattr(gate.approvals, verb)
    if may:
        assert (await decide(id_, by=by)).state in {Standing.APPROVED, Standing.DENIED}
    else:
        with pytest.raises((PermissionDenied, ApprovalNotFound)):
            await decide(id_, by=by)
        found = await gate.approvals.find(id_, by="boss")
        assert found is not None
        assert found.state is Standing.WAITING


async def test_an_agent_without_a_user_cannot_confirm_its_own_call(gate: Toolgate) -> None:
    id_ = await pending(gate, "send", BOT)
    with pytest.raises(PermissionDenied):
        await gate.approvals.approve(id_, by=BOT)
    await gate.approvals.approve(id_, by="boss")


async def test_to_another_tenant_it_is_not_there(gate: Toolgate) -> None:
    id_ = await pending(gate)
    stranger = Caller(tenant="umbrella", agent="billing", user="ann")
    with pytest.raises(ApprovalNotFound) as there:
        await gate.approvals.approve(id_, by=stranger)
    with pytest.raises(ApprovalNotFound) as nowhere:
        await gate.approvals.approve("apr_none", by=stranger)
    assert str(there.value).replace(id_, "X") == str(nowhere.value).replace("apr_none", "X")
    assert await gate.approvals.find(id_, by=stranger) is None
    assert await gate.approvals.list(stranger) == []
    assert [one.id for one in await gate.approvals.list(ANN)] == [id_]
    assert [one.id for one in await gate.approvals.list("acme")] == [id_]


async def test_an_agents_override_decides_who_is_asked(gate: Toolgate) -> None:
    for field, kind in (
        ("requires_confirmation", Kind.CONFIRMATION),
        ("requires_approval", Kind.APPROVAL),
    ):
        await gate.tenancy.activate("acme", "billing", "look", overrides={field: True})
        output = await gate.call("look", caller=ANN)
        found = await gate.approvals.find(id_of(output), by="boss")
        assert found is not None
        assert found.kind is kind
    # What the user confirmed before more was asked for is not enough now.
    await gate.tenancy.activate(
        "acme", "billing", "send", overrides={"requires_confirmation": True}
    )
    await gate.approvals.approve(await pending(gate, "send"), by=ANN)
    await gate.tenancy.activate("acme", "billing", "send", overrides={"requires_approval": True})
    assert (await gate.call("send", {"text": "hi"}, caller=ANN, turn=TURN)).status != "success"
    assert ran == []


@pytest.mark.parametrize(
    ("mode", "asked"),
    [("never", set[str]()), ("unsafe_only", {"pay", "send"}), ("always", {"pay", "send", "look"})],
)
async def test_the_mode_says_which_calls_are_asked_about(
    tmp_path: Path, mode: Any, asked: set[str]
) -> None:
    settings = Settings(root=tmp_path, approvals=ApprovalSettings(mode=mode))
    async with Toolgate.open(settings) as gate:
        gate.add(pay, send, look)
        calls: dict[str, dict[str, Any]] = {"pay": {"to": "b"}, "send": {"text": "x"}, "look": {}}
        outputs = {name: await gate.call(name, args, caller=ANN) for name, args in calls.items()}
        assert {name for name, one in outputs.items() if one.status != "success"} == asked
        if "look" in asked:
            await gate.approvals.approve(id_of(outputs["look"]), by="boss")
            assert (await gate.call("look", caller=ANN)).ok
            assert (await gate.call("look", caller=ANN)).status == "pending_approval"
