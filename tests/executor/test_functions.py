"""Every shape of function runs; one that is not there, or whose name is taken, is told as that."""

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.executor.tools import pay
from tests.house import ME, open_gate
from toolgate import Call, Toolgate, tool
from toolgate.errors import InvalidArguments, NameClash, ToolNotFound


@pytest.mark.req("P1")
async def test_every_shape_of_function_runs(gate: Toolgate) -> None:
    class Desk:
        async def method(self, text: str) -> str:
            return text

        @staticmethod
        def static(text: str) -> str:
            return text

    def later(text: str) -> Any:
        async def run() -> str:
            return text

        return run()

    class Repeats:
        async def __call__(self, text: str) -> str:
            return text

    def joined(left: str, text: str) -> str:
        return left + text

    gate.add(Desk().method, Desk.static, later)
    gate.add(Repeats(), name="object")
    gate.add(functools.partial(joined, left=""), name="partial")
    for name in ("method", "static", "later", "object", "partial"):
        assert (await gate.call(name, {"text": "x"}, caller=ME)).data == "x"


@pytest.mark.req("P1")
async def test_a_parameter_of_the_type_call_is_given_and_never_asked_for(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def who(greeting: str, me: Call) -> dict[str, str]:
        return {"id": me.id, "says": f"{greeting} {me.caller.agent}", "tool": me.spec.name}

    [spec] = gate.add(who)
    assert list(spec.input_schema.value()["properties"]) == ["greeting"]
    output = await gate.call("who", {"greeting": "hi"}, caller=ME)
    assert output.data == {"id": output.call_id, "says": "hi billing", "tool": "who"}
    with pytest.raises(InvalidArguments):
        await gate.call("who", {"greeting": "hi", "me": "somebody else"}, caller=ME)


@pytest.mark.req("P1")
@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{module: no_such_module_here, function: f}", "cannot be imported"),
        ("{module: math, function: no_such}", "has no function"),
        ("{module: math, function: pi}", "is not a function"),
        ("{module: math}", "names no module and function"),
        ("{}", "names no module and function"),
        ("{module: [1], function: f}", "names no module and function"),
        ("{module: builtins, function: dict}", "is a class"),
        ("{module: builtins, function: min}", "does not say which arguments"),
    ],
)
async def test_a_function_that_is_not_there_makes_one_tool_unusable_and_no_other(
    tmp_path: Path, config: str, says: str
) -> None:
    (tmp_path / "tools").mkdir()
    text = f"tools: [{{name: odd, provider: python, config: {config}, effect: pure}}]"
    (tmp_path / "tools" / "odd.yaml").write_text(text, "utf-8")
    async with open_gate(tmp_path) as gate:
        assert says in (await gate.explain("odd", caller=ME)).deciding.reason
        with pytest.raises(ToolNotFound):
            await gate.call("odd", caller=ME)
        assert (await gate.call("echo", {"text": "x"}, caller=ME)).ok


async def test_a_name_that_is_taken_is_refused_whole(gate: Toolgate) -> None:
    @tool(effect="pure", name="taken")
    async def first(text: str) -> str:
        return text

    @tool(effect="pure", name="taken")
    async def second(text: str) -> str:
        return "another"

    gate.add(first)
    with pytest.raises(NameClash, match="taken"):
        gate.add(pay, second)
    assert gate.catalog.current.get("pay") is None
    assert (await gate.call("taken", {"text": "x"}, caller=ME)).data == "x"


@pytest.mark.req("C2")
async def test_a_function_of_ones_own_takes_the_place_of_a_built_in_tool(gate: Toolgate) -> None:
    @tool(effect="pure", name="echo")
    async def mine(text: str) -> str:
        return f"mine: {text}"

    gate.add(mine)
    assert (await gate.call("echo", {"text": "x"}, caller=ME)).data == "mine: x"
