"""The engine in this process: only a literal yes allows, and lists say what calls say."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.questions import asked, listed, tool
from tests.thorough import some
from toolgate.caller import Action, Caller
from toolgate.engines.modules import build
from toolgate.engines.rego import Rego
from toolgate.errors import PolicyUnavailable
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

NAMES = ["a", "b", "c", "code_execute"]
PURE = 'package toolgate\n\ndeny contains "pure only" if input.tool.effect != "pure"\n'


def replaced(rules: str) -> Rego:
    text = f"package toolgate\n\ndefault allow := false\n\n{rules}\n"
    return Rego(build({"a.rego": text}, {}, bundled=False))


@pytest.mark.req("G3", "G7")
async def test_a_policy_that_says_nothing_clear_is_unavailable() -> None:
    policy = replaced(
        'allow := "true" if input.tool.name == "odd"\n\nallow if input.tool.name == "x"'
    )
    assert await policy.allows(asked(Action.REQUEST, "x"))
    assert not await policy.allows(asked(Action.REQUEST, "y"))
    assert not await policy.allows(asked(Action.REQUEST, "odd"))
    enable = asked(Action.ENABLE, "odd")
    with pytest.raises(PolicyUnavailable, match="neither true nor false"):
        await policy.allows(enable)


@pytest.mark.req("G3", "G7")
async def test_an_evaluation_that_fails_is_unavailable_and_shows_no_trace() -> None:
    policy = replaced("allow := x if some x in input.args.answers")
    request = asked(Action.REQUEST, args={"answers": [True]})
    assert await policy.allows(request)
    with pytest.raises(PolicyUnavailable) as caught:
        await policy.allows(asked(Action.REQUEST, args={"answers": [True, False]}))
    assert "a.rego:5" in caught.value.message
    assert "backtrace" not in caught.value.message.lower()
    assert await policy.allows(request)


@pytest.mark.req("G3")
async def test_reasons_are_texts_with_what_would_help() -> None:
    rules = (
        'package toolgate\n\ndeny contains "plain"\n\n'
        'deny contains {"reason": "a", "remedy": "b"}\n\n'
        'restrict contains {"reason": 7}\n\nrestrict contains {"odd": 1}\n'
    )
    policy = Rego(build({"a.rego": rules}, {}))
    assert await policy.reasons(asked(Action.REQUEST)) == ("7", "a (b)", "plain")


@pytest.mark.req("G1", "G3")
async def test_what_is_hidden_is_not_called_whatever_the_policy_says_about_the_call() -> None:
    policy = replaced('allow if input.action == "tool.request"')
    assert not await policy.allows(asked(Action.REQUEST))
    assert await policy.visible(listed(), [tool("a")]) == frozenset()
    both = replaced('allow if input.action in {"tool.request", "tool.view"}')
    assert await both.allows(asked(Action.REQUEST))
    assert await both.visible(listed(), [tool("a")]) == {"a"}


@pytest.mark.req("G1", "G3")
async def test_what_no_call_of_is_allowed_is_not_listed() -> None:
    policy = replaced('allow if input.action == "tool.view"')
    assert await policy.visible(listed(), [tool("a")]) == frozenset()
    assert not await policy.allows(asked(Action.VIEW, "a"))


@pytest.mark.req("G3")
async def test_a_tool_that_changed_is_looked_at_again() -> None:
    policy = Rego(build({"a.rego": PURE}, {"shop": {"x": 1}}))
    pure, other = tool("a"), tool("b", effect=Effect.IRREVERSIBLE)
    assert await policy.visible(listed(), [pure, other]) == {"a"}
    changed = msgspec.structs.replace(pure, effect=Effect.IDEMPOTENT)
    assert await policy.visible(listed(), [changed, other]) == frozenset()
    assert await policy.visible(listed(), [pure]) == {"a"}
    assert await policy.visible(listed(), []) == frozenset()


@pytest.mark.req("G3")
async def test_another_policy_takes_over_at_once() -> None:
    policy = Rego(build({}, {}))
    first = policy.revision
    assert policy.revision is first
    assert await policy.visible(listed(), [tool("a", effect=Effect.IRREVERSIBLE)]) == {"a"}
    await policy.swap(build({"a.rego": PURE}, {}))
    assert policy.revision != first
    assert await policy.visible(listed(), [tool("a", effect=Effect.IRREVERSIBLE)]) == frozenset()
    assert policy.health().revision == policy.revision


DATA = st.fixed_dictionaries(
    {},
    optional={
        "tenant_tool_flags": st.dictionaries(
            st.sampled_from(["acme", "beta"]),
            st.dictionaries(
                st.sampled_from(NAMES),
                st.one_of(st.booleans(), st.fixed_dictionaries({"enabled": st.booleans()})),
            ),
        ),
        "tool_catalog": st.dictionaries(
            st.sampled_from(NAMES), st.fixed_dictionaries({"enabled": st.booleans()})
        ),
        "persona_tool_deny": st.dictionaries(
            st.sampled_from(["", "clerk"]), st.lists(st.sampled_from(NAMES))
        ),
        "global_tool_deny": st.lists(st.sampled_from(NAMES), max_size=1),
        "code_execution_restricted_tenants": st.lists(st.sampled_from(["acme", "beta"])),
    },
)
EXTRA = st.sampled_from(
    [
        {},
        {"a.rego": PURE},
        {"a.rego": 'package toolgate\n\nbanned[n] contains "x" if some n in ["a", "c"]\n'},
        {"a.rego": 'package toolgate\n\nrestrict contains "x" if input.caller.persona == ""\n'},
        {"a.rego": 'package toolgate\n\ndeny contains "x" if input.action == "tool.view"\n'},
    ]
)
CALLERS = st.builds(
    Caller, tenant=st.sampled_from(["acme", "beta"]), persona=st.sampled_from(["", "clerk"])
)
TOOLS = st.lists(
    st.builds(tool, st.sampled_from(NAMES), effect=st.sampled_from(list(Effect))),
    unique_by=lambda spec: spec.name,
)


@pytest.mark.req("G1", "G3")
@settings(max_examples=some(40, 100))
@given(data=DATA, extra=EXTRA, caller=CALLERS, tools=TOOLS)
def test_a_list_is_exactly_what_may_be_called(
    data: dict[str, Any], extra: dict[str, str], caller: Caller, tools: list[ToolSpec]
) -> None:
    async def both() -> None:
        policy = Rego(build(extra, data))
        shown = await policy.visible(listed(caller), tools)
        for spec in tools:
            called = await policy.allows(asked(Action.REQUEST, spec, caller=caller))
            seen = await policy.allows(asked(Action.VIEW, spec, caller=caller))
            assert called is seen is (spec.name in shown)

    asyncio.run(both())
