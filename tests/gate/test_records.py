"""Decisions on record: what is kept, under which name, and what another policy would have said."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.gate.random_worlds import module, opened
from tests.house import ME, open_gate
from toolgate import Caller, Toolgate, tool
from toolgate.caller import Action
from toolgate.engines.modules import build
from toolgate.engines.rego import Rego
from toolgate.errors import PermissionDenied, ToolNotFound
from toolgate.gate import book as books
from toolgate.gate.asking import Rules
from toolgate.gate.book import Books
from toolgate.gate.decision import Decision, Verdict
from toolgate.gate.recorder import Recorder, exactly, written
from toolgate.gate.replay import replay
from toolgate.settings.gate import Policy
from toolgate.settings.settings import Settings
from toolgate.tenancy.layer import Layer
from toolgate.testing.decisions import MemoryDecisions

ANN = Caller(tenant="acme", agent="billing", user="ann", persona="clerk")
YES = Verdict(phase="policy", allowed=True, rule="rego", reason="fine")


def question(**more: Any) -> dict[str, Any]:
    return {"caller": {"tenant": "acme"}, "tool": {"name": "pay"}} | more


@pytest.mark.req("O2")
def test_the_same_question_with_the_same_answer_has_the_same_name_and_no_other_has() -> None:
    decisions = MemoryDecisions()
    recorder = Recorder(decisions)

    def note(
        asked: dict[str, Any],
        verdict: Verdict = YES,
        *,
        revision: str = "r1",
        observed: bool = False,
    ) -> str:
        return recorder.note(Action.REQUEST, asked, verdict, revision=revision, observed=observed)

    first = note(question(args={"a": 1, "b": 2}))
    assert note(question(args={"b": 2, "a": 1})) == first
    others = [
        note(question(args={"a": 1})),
        note(question(args={"a": True, "b": 2})),
        note(question(args={"a": 1.0, "b": 2})),
        note(question(args={"a": "1", "b": 2})),
        note(question(args={"a": 1, "b": 2}), revision="r2"),
        note(question(args={"a": 1, "b": 2}), observed=True),
        note(
            question(args={"a": 1, "b": 2}),
            Verdict(phase="policy", allowed=False, rule="rego", reason="no"),
        ),
    ]
    assert len({first, *others}) == len(others) + 1 == len(decisions.made)
    assert all(one.startswith("dec_") for one in decisions.made)


@pytest.mark.req("O2")
def test_large_arguments_are_not_kept_and_still_tell_decisions_apart_by_size() -> None:
    decisions = MemoryDecisions()
    recorder = Recorder(decisions)
    for size in (20_000, 30_000):
        recorder.note(Action.REQUEST, question(args={"a": "x" * size}), YES, revision="r")
    kept = [orjson.loads(one.input) for one in decisions.made.values()]
    assert all("args" not in one and one["args_omitted"] > 16_384 for one in kept)
    assert len(kept) == 2


def test_what_is_written_exactly_is_json_and_nothing_that_looks_like_it() -> None:
    assert exactly({"b": 1, "a": [True, None]}) == written({"a": [True, None], "b": 1})
    for odd in ({1: 2}, {"a": {1}}, Path("x"), b"x"):
        with pytest.raises(TypeError):
            exactly(odd)


@pytest.mark.req("O2", "G6")
async def test_a_call_is_on_record_with_the_decision_that_let_it(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        for _ in range(3):
            await gate.call("echo", {"text": "hi"}, caller=ME)
        other = Caller(tenant="acme", agent="intern")
        await gate.call("echo", {"text": "hi"}, caller=other)
    async with open_gate(tmp_path) as gate:
        entries = await gate.journal.entries("acme")
        decisions = {one.id: one for one in await gate.decisions.since(0, tenant="acme")}
    assert len(entries) == 4
    assert len({entry.decision for entry in entries}) == 2 == len(decisions), "one for each caller"
    for entry in entries:
        decision = decisions[entry.decision]
        assert (decision.tool, decision.tenant, decision.allowed) == ("echo", "acme", True)
        assert orjson.loads(decision.input)["caller"]["agent"] == entry.agent


@pytest.mark.req("O2", "G6")
@pytest.mark.parametrize("hidden", [True, False])
async def test_a_refusal_is_on_record_and_no_call_is(tmp_path: Path, *, hidden: bool) -> None:
    rule = (
        'banned["echo"] contains "it is loud" if true'
        if hidden
        else 'restrict contains "it is loud" if input.args.text == "hi"'
    )
    async with open_gate(tmp_path) as gate:
        await gate.tenancy.set_policy_module("quiet", f"package toolgate\n\n{rule}\n")
        with pytest.raises(ToolNotFound if hidden else PermissionDenied):
            await gate.call("echo", {"text": "hi"}, caller=ME)
    async with open_gate(tmp_path) as gate:
        assert await gate.journal.entries("acme") == []
        [decision] = await gate.decisions.since(0)
    assert (decision.allowed, decision.phase, decision.rule) == (False, "policy", "rego")
    assert decision.reason == "it is loud"
    assert decision.action is (Action.REQUEST)


@pytest.mark.req("O2", "G6")
async def test_what_observing_let_pass_is_on_record_as_that(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, policy=Policy(mode="observe"))
    async with Toolgate.open(settings) as gate:
        await gate.tenancy.set_layer("base", Layer(deny=("echo",), reason="not yet"))
        assert (await gate.call("echo", {"text": "hi"}, caller=ME)).ok
        assert (await gate.call("timestamp", caller=ME)).ok
    async with Toolgate.open(settings) as gate:
        decisions = {one.tool: one for one in await gate.decisions.since(0)}
        entries = {entry.tool: entry for entry in await gate.journal.entries("acme")}
    echo = decisions["echo"]
    assert (echo.allowed, echo.observed, echo.rule) == (True, True, "global")
    assert "not yet" in echo.reason
    assert not decisions["timestamp"].observed
    assert {name: entry.decision for name, entry in entries.items()} == {
        name: one.id for name, one in decisions.items()
    }


async def replayed(decisions: MemoryDecisions, rego: str, **data: Any) -> list[tuple[str, bool]]:
    found = await replay(
        decisions.made.values(), Rego(build({"new.rego": rego} if rego else {}, data))
    )
    assert found.untold == ()
    return sorted((one.decision.tool, one.allowed) for one in found.flips)


@pytest.mark.req("G6", "O2")
async def test_a_replay_prints_exactly_the_calls_that_would_flip() -> None:
    decisions = MemoryDecisions()
    async with opened(relations=False, decisions=decisions) as house:
        await house.tenancy.set_policy_module("money", module("money"))
        await house.tenancy.set_layer("base", Layer(deny=("query",)))
        for name in ("plain", "fetch"):
            await house.call(name, caller=ANN)
        for name in ("pay", "query", "reserved"):
            with pytest.raises(ToolNotFound):
                await house.call(name, caller=ANN)
    same = 'package toolgate\n\ndeny contains "no money" if "money" in input.tool.tags\n'
    assert await replayed(decisions, same) == []
    # Layers and flags are not asked again: what they refused stays refused.
    assert await replayed(decisions, "") == [("pay", True)]
    assert await replayed(decisions, same, global_tool_deny=["fetch"]) == [("fetch", False)]
    assert await replayed(decisions, "", global_tool_deny=["plain", "query"]) == [
        ("pay", True),
        ("plain", False),
    ]


@pytest.mark.req("G6", "O2")
@pytest.mark.parametrize("recorded", [True, False])
async def test_a_policy_that_looks_at_arguments_is_told_of_those_that_were_recorded(
    *, recorded: bool
) -> None:
    decisions = MemoryDecisions()

    @tool(effect="irreversible")
    async def spend(amount: int) -> int:
        """Spend."""
        return amount

    rules = Rules(record_calls=recorded)
    async with opened(relations=False, decisions=decisions, rules=rules) as house:
        house.add(spend)
        for amount in (1, 100):
            assert (await house.call("spend", {"amount": amount}, caller=ANN)).data == amount
    found = await replay(decisions.made.values(), Rego(build({"a.rego": module("args")}, {})))
    if not recorded:
        [untold] = found.untold
        assert (untold.missing, found.asked) == (("args",), 0)
        return
    assert found.untold == ()
    [flip] = found.flips
    assert orjson.loads(flip.decision.input)["args"] == {"amount": 100}
    assert (flip.allowed, flip.reasons) == (False, ("too much",))


@pytest.mark.req("G6")
async def test_what_only_observing_let_pass_is_a_no_to_a_replay() -> None:
    decisions = MemoryDecisions()
    rules = Rules(observe=True)
    async with opened(relations=False, decisions=decisions, rules=rules) as house:
        await house.tenancy.set_policy_module("money", module("money"))
        assert (await house.call("pay", caller=ANN)).ok
    [decision] = decisions.made.values()
    assert isinstance(decision, Decision)
    assert await replayed(decisions, "") == [("pay", True)]
    same = 'package toolgate\n\ndeny contains "no money" if "money" in input.tool.tags\n'
    assert await replayed(decisions, same) == []


@pytest.mark.req("G8")
async def test_books_are_bounded_and_a_change_of_one_tenant_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(books, "_MOST_BOOKS", 3)
    monkeypatch.setattr(books, "_MOST_ANSWERS", 2)
    async with opened(relations=False) as house:
        for tenant in ("acme", "umbrella"):
            await house.tenancy.add_tenant(tenant)
        kept: Books = house.gate._books  # pyright: ignore[reportPrivateUsage]
        for number in range(10):
            await house.call("plain", caller=Caller(tenant="acme", user=f"u{number}"))
            assert len(kept.kept) <= 3
        monkeypatch.setattr(books, "_MOST_BOOKS", 100)
        ours, theirs = Caller(tenant="acme"), Caller(tenant="umbrella")
        for caller in (ours, theirs):
            await house.call("plain", caller=caller)
        before = {caller: kept.kept[caller] for caller in (ours, theirs)}
        await house.tenancy.set_tenant_tool("acme", "plain", enabled=False)
        with pytest.raises(ToolNotFound):
            await house.call("plain", caller=ours)
        await house.call("plain", caller=theirs)
        assert kept.kept[theirs] is before[theirs]
        assert kept.kept[ours] is not before[ours]
        await house.tenancy.set_tool("fetch", enabled=False)
        await house.call("plain", caller=theirs)
        assert kept.kept[theirs] is not before[theirs], "what everyone has concerns everyone"

        await house.tenancy.set_policy_module("args", module("args"))
        for amount in range(5):
            await house.gate.decide(theirs, "pay", {"amount": amount})
            assert len(kept.kept[theirs].answers) <= 2
        with pytest.raises(PermissionDenied):
            await house.gate.decide(theirs, "pay", {"amount": 11})
