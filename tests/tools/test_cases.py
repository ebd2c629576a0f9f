"""Every built-in tool does what its cases say, through the whole house."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import msgspec
import orjson
import pytest
import pytest_asyncio
import yaml

from tests.tools.case import Case, cases_of, every_case, is_part, read
from tests.tools.surroundings import Surroundings, surroundings
from toolgate import Caller
from toolgate.call import Output
from toolgate.errors import ToolgateError
from toolgate.tools.table import table

CASES = every_case()
LEAST = 8
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T1", "T2", "T3")]
_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Surroundings]:
    """One for all cases of a process; each case has a tenant of its own."""
    async with surroundings(tmp_path_factory.mktemp("house")) as found:
        yield found


@pytest.mark.parametrize(
    ("tool", "case"), CASES, ids=[f"{tool}: {case.name}" for tool, case in CASES]
)
async def test_a_tool_does_what_its_case_says(house: Surroundings, tool: str, case: Case) -> None:
    lack = house.gate.catalog.current.unusable.get(tool)
    if lack is not None and "make install" in lack:
        pytest.skip(f"skipped: no {table()[tool].extra}")
    caller = Caller(tenant=f"tenant-{next(_numbers)}", agent="clerk")
    args = house.ground.args(case.args)
    for step in case.before:
        before = await house.gate.call(step.tool, house.ground.args(step.args), caller=caller)
        assert before.ok, before
        args |= step.given(before.data)
    if case.fails is None:
        output = await house.gate.call(tool, args, caller=caller)
        assert output.ok, output
        told = orjson.dumps(output.data).decode()
        if "read_with" not in told:
            assert problems(house, tool, output.data) == []
        if case.gives is not msgspec.UNSET:
            wanted = house.ground.args(case.gives)
            assert is_part(wanted, output.data), (wanted, output.data)
        assert house.ground.args(case.says) in _text(output)
        assert not case.lacks or house.ground.args(case.lacks) not in told
        return
    code, message = await _refusal(house, tool, args, caller)
    assert code == case.fails.code, (code, message)
    assert house.ground.args(case.fails.says).lower() in message.lower()


def problems(house: Surroundings, tool: str, data: Any) -> Sequence[object]:
    """How an answer differs from what its tool says that it gives."""
    schema = house.gate.catalog.current.specs[tool].output_schema
    assert schema is not None, tool
    return schema.problems(data)


async def test_an_answer_that_is_not_as_its_tool_says_is_noticed(house: Surroundings) -> None:
    assert problems(house, "echo", {"text": "hi"}) == []
    assert problems(house, "echo", {"text": 7})
    assert problems(house, "echo", {})


async def _refusal(
    house: Surroundings, tool: str, args: dict[str, object], caller: Caller
) -> tuple[str, str]:
    try:
        output = await house.gate.call(tool, args, caller=caller)
    except ToolgateError as error:
        return error.code, error.message
    assert output.error is not None, output
    return output.error.code, output.error.message


def _text(output: Output) -> str:
    data = output.data
    texts = [data] if isinstance(data, str) else [orjson.dumps(data).decode()]
    if isinstance(data, dict):
        values = cast("dict[str, Any]", data).values()
        texts += [value for value in values if isinstance(value, str)]
    return "\n".join(texts)


@pytest.mark.parametrize("tool", sorted(table()))
async def test_a_tool_has_cases_of_its_own_and_hostile_ones_among_them(tool: str) -> None:
    if table()[tool].lack() == "its implementation is not part of this version":
        assert not cases_of(tool)
        return
    cases = cases_of(tool)
    assert len(cases) >= LEAST
    assert any(case.hostile for case in cases)
    assert len({case.name for case in cases}) == len(cases)


async def test_what_a_case_says_twice_is_refused() -> None:
    with pytest.raises(yaml.YAMLError, match="'says' twice"):
        read("- name: a\n  says: b\n  says: c\n")


async def test_what_hostile_cases_reach_for_can_be_had_outside(house: Surroundings) -> None:
    words, root = house.ground.words, house.ground.settings.root
    assert words["outside"] in (root / "outside.txt").read_text("utf-8")
    line = f"echo > /dev/tcp/127.0.0.1/{words['code_port']} && echo reached"
    found = await asyncio.create_subprocess_exec("bash", "-c", line, stdout=asyncio.subprocess.PIPE)
    assert (await found.communicate())[0] == b"reached\n"
