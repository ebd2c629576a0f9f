"""What one agent holds during a turn."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME
from tests.servers.opa import Opa
from toolgate import Caller, Toolgate, Turn, tool
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.settings.gate import Policy
from toolgate.settings.settings import Settings
from toolgate.spec.names import for_model
from toolgate.tenancy.capsule import Mode


@tool(effect="pure", name="billing:invoices/read")
async def read_invoice(number: int) -> int:
    """Read an invoice."""
    return number


@pytest.mark.req("C3", "C4")
@pytest.mark.parametrize("format_", ["openai", "anthropic", "mcp", "prompt", "toolgate"])
async def test_the_tools_of_a_turn_come_in_every_format(gate: Toolgate, format_: str) -> None:
    box = gate.toolbox(ME, turn=Turn(group="t-1"))
    shown = box.tools(format=format_)
    assert "echo" in str(shown)
    assert "timestamp" in str(shown)
    assert isinstance(shown, str if format_ == "prompt" else list)


async def test_a_format_that_is_not_there_names_those_that_are(gate: Toolgate) -> None:
    with pytest.raises(ValueError, match="openai, anthropic, mcp"):
        gate.toolbox(ME).tools(format="xml")


@pytest.mark.req("C3")
async def test_a_call_takes_our_name_and_the_one_a_model_was_given(gate: Toolgate) -> None:
    gate.add(read_invoice)
    box = gate.toolbox(ME, turn=Turn(group="t-1"))
    theirs = for_model("billing:invoices/read")
    names = [one["function"]["name"] for one in box.tools("openai")]
    [offered] = [name for name in names if "invoices" in name]
    assert offered == theirs != "billing:invoices/read"
    for name in ("billing:invoices/read", theirs):
        assert (await box.call(name, {"number": 7})).data == 7
    entries = await gate.journal.entries("acme")
    assert {(entry.tool, entry.turn_group) for entry in entries} == {
        ("billing:invoices/read", "t-1")
    }


@tool(effect="irreversible")
async def send_letter(to: str) -> str:
    """Send a letter."""
    return to


@pytest.mark.req("S2")
async def test_a_call_takes_a_key_and_a_wait(gate: Toolgate) -> None:
    gate.add(send_letter)
    boxes = [gate.toolbox(ME, turn=Turn(group=group)) for group in ("t-1", "t-2")]
    first, again = [
        await box.call("send_letter", {"to": "ann"}, idempotency_key="k", wait_s=1) for box in boxes
    ]
    assert (first.cached, again.cached, again.call_id) == (False, True, first.call_id)
    other = await boxes[0].call("send_letter", {"to": "ann"}, idempotency_key="k2")
    assert other.call_id != first.call_id
    with pytest.raises(InvalidRequest, match="wait_s"):
        await boxes[0].call("send_letter", {"to": "ann"}, wait_s=601)


@pytest.mark.req("G6")
async def test_a_models_name_for_a_hidden_tool_is_as_missing_as_the_tool(gate: Toolgate) -> None:
    gate.add(read_invoice)
    await gate.tenancy.set_agent("acme", "billing", Mode.LISTED)
    box = gate.toolbox(ME)
    for name in ("billing:invoices/read", for_model("billing:invoices/read"), "nothing"):
        with pytest.raises(ToolNotFound):
            await box.call(name, {"number": 7})


@pytest.mark.req("C4")
async def test_three_tiers_and_what_is_between_them(gate: Toolgate) -> None:
    await gate.tenancy.set_tenant_tool("acme", "timestamp", enabled=False)
    await gate.tenancy.activate("acme", "billing", "echo", enabled=False)
    box = gate.toolbox(ME)
    assert {"echo", "timestamp"} <= gate.catalog.current.specs.keys()
    assert (box.is_tenant_available("echo"), box.is_available("echo")) == (True, False)
    assert (box.is_tenant_available("timestamp"), box.is_available("timestamp")) == (False, False)
    assert not box.is_tenant_available("nothing")
    [lacking] = box.unavailable()
    assert (lacking.name, lacking.phase) == ("echo", "capsule")
    assert "switched off" in lacking.reason
    assert lacking.description
    lacked = box.definition("echo")
    assert lacked is not None, "an agent can say what it could do"
    assert lacked.description == lacking.description
    assert (box.definition("timestamp"), box.definition("nothing")) == (None, None)
    assert box.metadata("echo") is None


async def test_a_box_sees_changes_at_once(gate: Toolgate) -> None:
    box = gate.toolbox(ME)
    assert box.is_available("echo")
    await gate.tenancy.set_tool("echo", enabled=False)
    assert not box.is_available("echo")
    assert "echo" not in str(box.tools())
    await gate.tenancy.set_tool("echo", enabled=None)
    spec = box.definition("echo")
    assert spec is not None
    assert spec.name == "echo"


async def test_two_boxes_are_two_callers(gate: Toolgate) -> None:
    await gate.tenancy.set_agent("acme", "intern", Mode.LISTED)
    assert gate.toolbox(Caller(tenant="acme", agent="intern")).tools() == []
    assert gate.toolbox(ME).tools() != []


def on_a_server(root: Path, opa: Opa) -> AbstractAsyncContextManager[Toolgate]:
    """A gate that has to ask a server."""
    policy = Policy(engine="opa", url=opa.url, timeout=20.0)
    return Toolgate.open(Settings(root=root, policy=policy))


@pytest.mark.req("C4")
async def test_a_decision_that_would_wait_is_not_made_by_halves(tmp_path: Path, opa: Opa) -> None:
    async with on_a_server(tmp_path, opa) as gate:
        box = gate.toolbox(ME)
        for ask in (box.tools, box.unavailable, lambda: box.is_available("echo")):
            with pytest.raises(InvalidRequest, match=r"await box\.refresh\(\)"):
                ask()
        assert box.is_tenant_available("echo"), "for this nobody has to be asked"


@pytest.mark.req("C4")
async def test_a_box_that_was_refreshed_answers_without_waiting(tmp_path: Path, opa: Opa) -> None:
    async with on_a_server(tmp_path, opa) as gate:
        box = await gate.toolbox(ME).refresh()
        assert box.is_available("echo")
        assert box.definition("timestamp") is not None
        assert box.definition("nothing") is None
        assert box.unavailable() == []

        rule = 'package toolgate\n\nbanned["echo"] contains "it is loud" if true\n'
        await gate.tenancy.set_policy_module("quiet", rule)
        assert box.is_available("echo"), "as it was when it was asked"
        with pytest.raises(ToolNotFound):
            await box.call("echo", {"text": "hi"})

        await box.refresh()
        assert not box.is_available("echo")
        assert "echo" not in {tool["name"] for tool in box.tools()}
        [lacking] = box.unavailable()
        assert (lacking.name, lacking.phase, lacking.reason) == ("echo", "policy", "it is loud")


@pytest.mark.req("C4")
async def test_asking_a_box_at_once_leaves_nothing_half_done(tmp_path: Path, opa: Opa) -> None:
    async with on_a_server(tmp_path, opa) as gate:
        box = await gate.toolbox(ME).refresh()
        for _ in range(50):
            assert box.is_available("echo")
            assert not box.is_available("nothing")
        assert (await box.call("echo", {"text": "hi"})).ok
        assert all(health.ok for health in gate.gate.health())


@pytest.mark.req("C4")
async def test_a_gate_in_this_process_needs_no_refresh(gate: Toolgate) -> None:
    box = gate.toolbox(ME)
    rule = 'package toolgate\n\nbanned["echo"] contains "it is loud" if true\n'
    await gate.tenancy.set_policy_module("quiet", rule)
    assert not box.is_available("echo")
    assert [one.reason for one in box.unavailable()] == ["it is loud"]


async def test_a_caller_without_a_tenant_cannot_be_made() -> None:
    made: Any = Caller
    for odd in ("", "Acme", "acme ", 1, None):
        with pytest.raises(InvalidRequest, match="cannot name a tenant"):
            made(tenant=odd)
    with pytest.raises(InvalidRequest, match="cannot name an agent"):
        made(tenant="acme", agent="Billing")
    assert made(tenant="acme").agent == ""
    with pytest.raises(TypeError):
        made()


@tool(
    effect="compensatable",
    category="letters",
    categories=["post", "letters"],
    compensation={"tool": "recall_letter", "args": {"to": "$args.to"}},
)
async def post_letter(to: str) -> str:
    """Post a letter."""
    return to


@tool(effect="idempotent")
async def recall_letter(to: str) -> str:
    """Call it back."""
    return to


@pytest.mark.req("C4")
async def test_metadata_is_what_a_planner_decides_by(gate: Toolgate) -> None:
    gate.add(post_letter, recall_letter, send_letter)
    await gate.tenancy.activate(
        "acme", "billing", "post_letter", overrides={"requires_confirmation": True}
    )
    box = gate.toolbox(ME)
    posted, recalled, sent = (
        box.metadata(name) for name in ("post_letter", "recall_letter", "send_letter")
    )
    assert posted is not None
    assert recalled is not None
    assert sent is not None
    assert (posted.effect, posted.compensation_tool) == ("compensatable", "recall_letter")
    assert posted.categories == ("letters", "post")
    assert (posted.requires_confirmation, recalled.requires_confirmation) == (True, False)
    assert [one.is_irreversible for one in (posted, recalled, sent)] == [False, False, True]
    assert [one.is_safe_to_retry for one in (posted, recalled, sent)] == [False, True, False]
    assert box.metadata("nothing") is None


@pytest.mark.req("C4")
async def test_a_box_that_was_refreshed_tells_all_of_it_as_it_was(gate: Toolgate) -> None:
    gate.add(post_letter, recall_letter)
    await gate.tenancy.activate("acme", "billing", "recall_letter", enabled=False)
    live, kept = gate.toolbox(ME), await gate.toolbox(ME).refresh()
    for name in ("post_letter", "recall_letter", "nothing"):
        assert kept.metadata(name) == live.metadata(name)
        assert kept.definition(name) == live.definition(name)
        assert kept.is_tenant_available(name) is live.is_tenant_available(name)
    assert kept.unavailable() == live.unavailable()
    await gate.tenancy.activate("acme", "billing", "recall_letter", enabled=True)
    assert (kept.is_available("recall_letter"), live.is_available("recall_letter")) == (False, True)
