"""Tasks handed to other agents: with their names, within a depth, and in time."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.tools import agents_api, callbacks
from tests.tools.agents_api import KEY, AgentsApi
from tests.tools.asking import ME, failed, opened, told
from toolgate import Caller, Toolgate
from toolgate.caller import Context
from toolgate.errors import SettingsInvalid
from toolgate.settings.builtin import Agent, Subordinate
from toolgate.tools.agent import subordinate
from toolgate.tools.agent.subordinate import Task

pytestmark = pytest.mark.req("T3")
VARIABLE = "TOOLGATE_TEST_SUBORDINATE"


class Place(NamedTuple):
    gate: Toolgate
    api: AgentsApi


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Place]:
    monkeypatch.setenv(VARIABLE, KEY)
    async with agents_api.serving() as api:
        names = ("plainly", "further", "endless", "failing")
        agent: dict[str, Any] = {
            "subordinates": {
                "researcher": {"url": f"{api.url}/subordinates/researcher"},
                "keyed": {"url": f"{api.url}/subordinates/keyed", "key_env": VARIABLE},
                **{name: {"callback": f"tests.tools.callbacks:{name}"} for name in names},
            },
            "depth": 3,
            "seconds": 1,
        }
        async with opened(tmp_path, agent=agent) as gate:
            yield Place(gate, api)


async def test_a_service_is_told_who_asks_and_how_deep_it_is(place: Place) -> None:
    me = Caller(tenant="acme", agent="clerk", user="ann", session="s-1")
    await told(place.gate, "call_subordinate", me, agent="researcher", message="Look.")
    headers, body = place.api.asked[-1]
    assert headers["X-Toolgate-Depth"] == "1"
    assert headers["Idempotency-Key"]
    assert "Authorization" not in headers
    assert body["message"] == "Look."
    assert body["caller"]["user"] == "ann"
    assert body["context"] == {"facts": {"toolgate.depth": 1}}


async def test_a_key_goes_to_the_service_that_it_is_for(place: Place) -> None:
    found = await told(place.gate, "call_subordinate", agent="keyed", message="Look.")
    assert found["reply"] == "Found: Look."


async def test_a_service_that_calls_back_comes_to_an_end(place: Place) -> None:
    for depth in range(3):
        facts = (("toolgate.depth", depth),)
        me = Caller(tenant="acme", agent="clerk", context=Context(facts=facts))
        await told(place.gate, "call_subordinate", me, agent="researcher", message=f"{depth}")
        assert place.api.asked[-1][1]["depth"] == depth + 1
    facts = (("toolgate.depth", 3),)
    me = Caller(tenant="acme", agent="clerk", context=Context(facts=facts))
    output = await failed(place.gate, "call_subordinate", me, agent="researcher", message="deep")
    assert output.error is not None
    assert "handed on 3 times" in output.error.message
    assert len(place.api.asked) == 3


async def _round(place: Place, monkeypatch: pytest.MonkeyPatch, *, as_itself: bool) -> list[int]:
    """A function that hands its task on to itself, and what came of it."""
    depths: list[int] = []

    async def again(task: Task) -> Any:
        depths.append(task.depth)
        caller = ME if as_itself else task.caller
        args = {"agent": "further", "message": f"{task.message}+"}
        output = await place.gate.call("call_subordinate", args, caller=caller)
        return output.data["reply"] if output.ok else "the end"

    monkeypatch.setattr(callbacks, "further_by", [again])
    found = await told(place.gate, "call_subordinate", agent="further", message="go")
    assert found["reply"] == "the end"
    return depths


@pytest.mark.parametrize("as_itself", [True, False], ids=["as somebody else", "as it was told"])
async def test_a_function_that_hands_on_comes_to_an_end(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, as_itself: bool
) -> None:
    assert await _round(place, monkeypatch, as_itself=as_itself) == [1, 2, 3]


async def test_without_the_guard_it_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([0, 0, 0, 0, 0, 3])

    def shallow(_caller: Caller) -> int:
        return next(seen)

    monkeypatch.setattr(subordinate, "depth_of", shallow)
    assert await _round(place, monkeypatch, as_itself=True) == [1, 1, 1, 1, 1]


async def test_a_function_acts_with_at_most_what_its_superior_may(place: Place) -> None:
    found = await told(place.gate, "call_subordinate", agent="plainly", message="x")
    assert found["reply"] == "by plainly for clerk"


async def test_a_function_has_its_time(place: Place) -> None:
    output = await failed(place.gate, "call_subordinate", agent="endless", message="x")
    assert output.error is not None
    assert output.error.code == "timed_out"


async def test_the_words_of_an_error_are_not_passed_on(place: Place) -> None:
    output = await failed(place.gate, "call_subordinate", agent="failing", message="x")
    assert output.error is not None
    assert output.error.code == "execution_failed"
    assert "secret" not in output.error.message


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"url": "https://a.example", "callback": "a:b"},
        {"callback": "no function"},
        {"callback": "os.system"},
        {"url": "ftp://a.example"},
        {"url": "https://a.example", "key_env": "sk-live-0123456789abcdef"},
    ],
)
def test_a_subordinate_is_one_thing_and_well_named(given: dict[str, Any]) -> None:
    with pytest.raises((SettingsInvalid, ValueError)):
        Subordinate.model_validate(given)


def test_a_subordinate_has_the_name_of_an_agent() -> None:
    with pytest.raises(ValueError, match="names no agent"):
        Agent.model_validate({"subordinates": {"The Boss": {"callback": "a:b"}}})
