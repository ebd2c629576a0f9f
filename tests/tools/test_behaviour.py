"""Rules of behaviour: kept per agent and user, in its prompt, and taken back."""

from pathlib import Path

import pytest

from tests.mcp import house
from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate, toolbox
from toolgate.shelf import Place
from toolgate.tools.agent import behaviour_adjustment, rules

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
        # Set by no user, it holds for all of them.
        assert RULE in await gate.toolbox(Caller(tenant="acme", agent="clerk", user="x")).prompt()
        for other in OTHERS:
            assert RULE not in await gate.toolbox(other).prompt()
            assert (await told(gate, "behaviour_rules", other))["count"] == 0


ANN, BOB = (Caller(tenant="acme", agent="clerk", user=user) for user in ("ann", "bob"))


async def test_what_one_user_has_an_agent_keep_to_is_not_in_anothers_prompt(tmp_path: Path) -> None:
    async with opened(tmp_path) as gate:
        for_all = (await told(gate, "behaviour_adjustment", adjustment="Be brief."))["rule"]
        rule = (await told(gate, "behaviour_adjustment", ANN, adjustment=RULE))["rule"]
        assert (await gate.toolbox(ANN).prompt()).endswith(f"{HEADING}\n- Be brief.\n- {RULE}")
        for other in (BOB, ME, Caller(tenant="acme", user="ann")):
            assert RULE not in await gate.toolbox(other).prompt()
        for theirs in (rule, for_all):
            assert not (await told(gate, "behaviour_withdraw", BOB, rule=theirs))["withdrawn"]
        assert (await told(gate, "behaviour_withdraw", ANN, rule=rule))["withdrawn"]
        assert (await told(gate, "behaviour_withdraw", ME, rule=for_all))["withdrawn"]


async def test_a_rule_steers_no_terminal_and_turns_no_text_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "Be\x1b[31m kind\u202e, \x9b2Jalways\u2066.\u200b\x07"
    async with opened(tmp_path) as gate:
        added = await told(gate, "behaviour_adjustment", ANN, adjustment=hostile)
        assert added["rules"][0]["text"] == "Be[31m kind, 2Jalways."
        # Also one that was kept in another way.
        monkeypatch.setattr(behaviour_adjustment, "clean", str)
        await told(gate, "behaviour_adjustment", BOB, adjustment=hostile)
        assert (await gate.toolbox(BOB).prompt()).endswith("\n- Be[31m kind, 2Jalways.")
        # Without that they would be there.
        monkeypatch.setattr(toolbox, "clean", str)
        assert "\x1b[31m" in await gate.toolbox(BOB).prompt()


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
