"""The worked examples do what their cases say, on both engines; and what a case may say."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.house import HERE
from tests.servers.opa import Opa as Server
from toolgate.engines.cases import read_cases, run_case
from toolgate.engines.modules import Modules
from toolgate.engines.opa import Opa
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy
from toolgate.net.client import HttpClient

POLICIES = Path(__file__).parents[2] / "examples" / "policies"
EXAMPLES = sorted(folder.name for folder in POLICIES.iterdir())
CASE = "- {note: a, tool: x, want: allow}\n"


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    opened = HttpClient(HERE, timeout=20.0)
    yield opened
    await opened.close()


@pytest.mark.req("G3")
def test_there_are_five_with_words_and_cases() -> None:
    assert len(EXAMPLES) >= 5
    for name in EXAMPLES:
        assert {"README.md", "cases.yaml", "policy.rego"} <= {
            file.name for file in (POLICIES / name).iterdir()
        }


@pytest.mark.req("G3", "G7")
@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_does_what_its_cases_say(
    opa: Server, client: HttpClient, name: str
) -> None:
    bundle = Modules(POLICIES / name).load()
    server = Opa(client, bundle, opa.url, timeout=20.0)
    await server.start()
    without = Rego(Modules(None).load())
    cases = read_cases((POLICIES / name / "cases.yaml").read_text("utf-8"), "cases.yaml")
    flipped = 0
    for case in cases:
        for policy in (Rego(bundle), server):
            result = await run_case(policy, case)
            assert result.ok, (policy, result)
        flipped += not (await run_case(without, case)).ok
    # Without the example's rules some of its cases fail: they are about it.
    assert 0 < flipped < len(cases)
    assert flipped == sum(not case.want for case in cases)


@pytest.mark.req("G3")
async def test_a_case_that_fails_says_what_came_instead() -> None:
    policy = Rego(Modules(POLICIES / "guests-read-only").load())
    text = (
        "- {note: a, caller: {persona: guest}, tool: x, want: allow}\n"
        "- {note: b, caller: {persona: guest}, tool: x, want: deny, why: nonsense}\n"
    )
    first, second = [await run_case(policy, case) for case in read_cases(text, "f")]
    assert (first.note, first.ok, first.got, first.want) == ("a", False, False, True)
    assert "guests may only use" in first.reasons[0]
    assert (second.ok, second.got) == (False, False)


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "cases are a list"),
        ("a: 1", "cases are a list"),
        ("- [", "f:2: it is not YAML"),
        ("- 1", "f: case 1: a case is a mapping"),
        ("- {tool: x, want: allow}", "f: case 1: it needs a note"),
        ("- {note: a, tool: x}", "f: a: `want` is allow or deny"),
        ("- {note: a, tool: x, want: true}", "`want` is allow or deny"),
        ("- {note: a, want: allow}", "f: a: it needs a tool"),
        ("- {note: a, tool: x, want: allow, why: no}", "`why` is part of the reason"),
        ("- {note: a, tool: x, want: allow, arg: {}}", "did you mean 'args'?"),
        ("- {note: a, tool: {name: x, efect: pure}, want: allow}", "did you mean 'effect'?"),
        ("- {note: a, tool: x, caller: {tenent: x}, want: allow}", "did you mean 'tenant'?"),
        ("- {note: a, tool: x, action: tool.run, want: allow}", "`action` is one of"),
        ("- {note: a, tool: x, time: noon, want: allow}", "`time` is a moment"),
        ("- {note: a, tool: x, history: {day: {}}, want: allow}", "no field of history"),
        (CASE + CASE, "f: a: another case has the same note"),
    ],
)
def test_a_case_that_cannot_be_meant_is_told_with_file_and_note(text: str, told: str) -> None:
    assert len(read_cases(CASE, "f")) == 1
    with pytest.raises(InvalidPolicy) as caught:
        read_cases(text, "f")
    assert told in caught.value.message
