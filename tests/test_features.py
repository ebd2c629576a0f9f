"""What can be switched off as a whole, on and off."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import ME
from tests.telemetry.test_route import HERE, ask
from toolgate import Caller, Context, ToolError, Toolgate, tool
from toolgate.errors import ApprovalPending, ToolNotFound
from toolgate.errors import ToolError as Raised
from toolgate.settings.execution import Features
from toolgate.settings.settings import Settings
from toolgate.tenancy.keys import Role
from toolgate.tenancy.layer import Layer, Permissions

pytestmark = pytest.mark.req("X11")


@tool(effect="pure", side_effects=["read_only"], category="data")
def look(word: str) -> str:
    """Look something up."""
    if word == "fail":
        raise ToolError("no such word")
    return word


@tool(effect="irreversible", destructive=True, side_effects=["modifies_files"], category="code")
def wipe() -> str:
    """Remove it."""
    return "gone"


@tool(effect="irreversible", requires_approval=True)
def pay() -> str:
    """Pay it."""
    return "paid"


def opened(root: Path, **off: bool) -> Any:
    return Toolgate.open(Settings(root=root, features=Features(**off)))


async def over_http(gate: Toolgate, tool_: str, args: dict[str, Any]) -> tuple[int, Any]:
    await gate.tenancy.set_agent("acme", "billing")
    key = await gate.tenancy.add_key(Role.AGENT, tenant="acme", agent="billing")
    body = orjson.dumps({"tool": tool_, "args": args})
    status, _, raw = await ask(gate, HERE, "/v1/call", key=key.secret, method="POST", body=body)
    return status, orjson.loads(raw)


class TestStructuredToolOutput:
    async def test_on_every_door_answers_with_an_output(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as gate:
            gate.add(look, wipe)
            box = gate.toolbox(ME)
            assert (await box.call("look", {"word": "a"})).data == "a"
            assert (await box.call("look", {"word": "fail"})).status == "error"
            assert (await box.call("wipe")).status == "pending_approval"
            status, answer = await over_http(gate, "look", {"word": "a"})
            assert (status, answer["ok"], answer["data"]) == (200, True, "a")
            status, answer = await over_http(gate, "look", {"word": "fail"})
            assert (status, answer["error"]["code"]) == (200, "tool_error")

    async def test_off_it_is_the_bare_result_and_errors_are_raised(self, tmp_path: Path) -> None:
        async with opened(tmp_path, structured_tool_output=False) as gate:
            gate.add(look, wipe)
            box = gate.toolbox(ME)
            found: Any = await box.call("look", {"word": "a"})
            assert found == "a"
            with pytest.raises(Raised, match="no such word"):
                await box.call("look", {"word": "fail"})
            with pytest.raises(ApprovalPending):
                await box.call("wipe")
            assert await over_http(gate, "look", {"word": "a"}) == (200, "a")
            status, answer = await over_http(gate, "look", {"word": "fail"})
            assert (status, answer["code"]) == (500, "tool_error")
            status, answer = await over_http(gate, "wipe", {})
            assert (status, answer["code"]) == (409, "approval_pending")


class TestSideEffectTracking:
    async def test_on_outputs_tell_and_what_destroys_waits(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as gate:
            gate.add(look, wipe)
            assert (await gate.call("look", {"word": "a"}, caller=ME)).side_effects == (
                "read_only",
            )
            assert (await gate.call("wipe", {}, caller=ME)).status == "pending_approval"

    async def test_off_outputs_are_silent_and_what_destroys_runs(self, tmp_path: Path) -> None:
        async with opened(tmp_path, side_effect_tracking=False) as gate:
            gate.add(look, wipe, pay)
            for word in ("a", "fail"):
                output = await gate.call("look", {"word": word}, caller=ME)
                assert output.side_effects == ()
            output = await gate.call("wipe", {}, caller=ME)
            assert (output.data, output.side_effects) == ("gone", ())
            assert not (await gate.explain("wipe", caller=ME)).needs_a_person
            asked = await gate.call("pay", {}, caller=ME)
            assert asked.status == "pending_approval", "what says so itself still waits"


DATA = Permissions(allowed_categories=("data", "code"), forbidden_tools=("wipe",))
CLERK = Caller(tenant="acme", agent="billing", roles=("clerk",))
READING = Caller(tenant="acme", agent="billing", context=Context(deny=("look",)))


async def narrowed(gate: Toolgate) -> None:
    gate.add(look, wipe)
    await gate.tenancy.set_role("clerk", DATA)
    await gate.tenancy.set_layer("house", Layer(deny=("look",)))


async def names(gate: Toolgate, caller: Caller) -> set[str]:
    return {spec.name for spec in await gate.discover(caller)} & {"look", "wipe"}


class TestCascadingToolPolicy:
    async def test_on_every_layer_narrows(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as gate:
            await narrowed(gate)
            assert await names(gate, CLERK) == set()
            assert await names(gate, READING) == {"wipe"}
            with pytest.raises(ToolNotFound):
                await gate.call("look", {"word": "a"}, caller=CLERK)

    async def test_off_only_the_permissions_of_roles_do(self, tmp_path: Path) -> None:
        async with opened(tmp_path, cascading_tool_policy=False) as gate:
            await narrowed(gate)
            assert await names(gate, CLERK) == {"look"}, "the role's own list still holds"
            assert await names(gate, READING) == {"look", "wipe"}
            assert await names(gate, CLERK.delegate("helper", deny=("look",))) == {"look"}
            assert (await gate.call("look", {"word": "a"}, caller=CLERK)).data == "a"
