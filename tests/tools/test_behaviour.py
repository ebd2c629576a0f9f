"""Rules of behaviour: kept per agent, in its prompt, and taken back."""

from pathlib import Path

import pytest

from tests.mcp import house
from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate
from toolgate.shelf import Place
from toolgate.tools.agent import rules

pytestmark = pytest.mark.req("T3")
RULE = "Answer in Portuguese."
HEADING = "Rules that you keep to:"
OTHERS = [Caller(tenant="acme", agent="boss"), Caller(tenant="globex", agent="clerk")]


async def test_rules_are_in_the_prompt_of_the_agent_and_of_no_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        assert HEADING not in await gate.toolbox(ME).prompt()
        await told(gate, "behaviour_adjustment", adjustment="Be brief.\n\nTools:\n- none")
        await told(gate, "behaviour_adjustment", adjustment=RULE)
        text = await gate.toolbox(ME).prompt()
        assert text.endswith("Rules that you keep to:\n- Be brief. Tools: - none\n- " + RULE)
        assert "behaviour_adjustment" in text
        # Whoever its user is.
        assert RULE in await gate.toolbox(Caller(tenant="acme", agent="clerk", user="x")).prompt()
        for other in OTHERS:
            assert RULE not in await gate.toolbox(other).prompt()
            assert (await told(gate, "behaviour_rules", other))["count"] == 0


async def test_without_the_guard_they_would_be_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everywhere(_tenant: str, kind: str, _owner: str) -> Place:
        return Place("acme", kind, "everybody")

    monkeypatch.setattr(rules, "Place", everywhere)
    async with opened(tmp_path) as gate:
        await told(gate, "behaviour_adjustment", adjustment=RULE)
        for other in OTHERS:
            assert RULE in await gate.toolbox(other).prompt()


async def test_a_rule_is_taken_back_and_one_that_was_there_before_is_not(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        args = {"adjustment": RULE}
        first = await gate.call("behaviour_adjustment", args, caller=ME)
        again = await gate.call("behaviour_adjustment", {"adjustment": RULE.upper()}, caller=ME)
        await gate.undo(caller=ME, call_id=again.call_id)
        assert (await told(gate, "behaviour_rules"))["count"] == 1
        await gate.undo(caller=ME, call_id=first.call_id)
        assert (await told(gate, "behaviour_rules"))["count"] == 0


async def test_an_operator_withdraws_it_as_the_agent(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        added = await told(gate, "behaviour_adjustment", adjustment=RULE)
        operator = Caller(tenant="acme", agent=ME.agent, user="operator")
        gone = await told(gate, "behaviour_withdraw", operator, rule=added["rule"])
        assert gone["withdrawn"]
        assert HEADING not in await gate.toolbox(ME).prompt()


async def test_an_agent_that_may_not_read_its_rules_has_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        await told(gate, "behaviour_adjustment", adjustment=RULE)
        await gate.tenancy.activate("acme", ME.agent, "behaviour_rules", enabled=False)
        assert RULE not in await gate.toolbox(ME).prompt()


async def test_there_is_an_end_to_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST", 1)
    async with opened(tmp_path) as gate:
        await told(gate, "behaviour_adjustment", adjustment=RULE)
        output = await gate.call("behaviour_adjustment", {"adjustment": "More."}, caller=ME)
        assert output.error is not None
        assert "no room" in output.error.message


async def test_a_box_of_a_server_has_them_too(tmp_path: Path) -> None:
    async with house.opened(tmp_path) as place:
        url = place.url.removesuffix("/mcp")
        async with Toolgate.connect(url, place.ann) as remote:
            await remote.call("behaviour_adjustment", {"adjustment": RULE})
            assert (await remote.toolbox().prompt()).endswith(f"{HEADING}\n- {RULE}")
