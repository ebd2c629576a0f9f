"""Every rule of the bundled policy, each with an input that it refuses and one that it does not."""

from typing import Any

import pytest

from tests.engines.questions import ME, asked, listed, tool
from toolgate.caller import Action, Caller
from toolgate.engines.modules import build
from toolgate.engines.rego import Rego

VIEW, REQUEST, ENABLE = Action.VIEW, Action.REQUEST, Action.ENABLE


def rego(**data: Any) -> Rego:
    return Rego(build({}, data))


@pytest.mark.req("G3")
async def test_without_data_it_allows_what_earlier_phases_let_pass() -> None:
    policy = rego()
    assert await policy.allows(asked(VIEW))
    assert await policy.allows(asked(REQUEST, args={"x": 1}))
    assert await policy.reasons(asked(REQUEST)) == ()


@pytest.mark.req("G3")
async def test_a_tool_that_the_registry_switched_off_is_refused() -> None:
    off = asked(VIEW)
    off["tool"]["enabled"] = False
    assert not await rego().allows(off)


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("data", "refused", "allowed", "reason"),
    [
        (
            {
                "tenant_tool_flags": {
                    "acme": {"fetch": {"enabled": False}, "echo": {"enabled": True}}
                }
            },
            ["fetch"],
            ["echo", "other"],
            "it is switched off for tenant 'acme' in tenant_tool_flags",
        ),
        ({"tenant_tool_flags": {"acme": {"fetch": False, "echo": True}}}, ["fetch"], ["echo"], ""),
        ({"tenant_tool_flags": {"acme": {"fetch": {}}}}, ["fetch"], [], ""),
        ({"tenant_tool_flags": {"other": {"fetch": {"enabled": False}}}}, [], ["fetch"], ""),
        (
            {"tool_catalog": {"fetch": {"enabled": False}, "echo": {"enabled": True}}},
            ["fetch"],
            ["echo", "other"],
            "it is switched off in tool_catalog",
        ),
        (
            {
                "tool_catalog": {"fetch": {"enabled": False}, "echo": {"enabled": True}},
                "tenant_tool_flags": {"acme": {"fetch": {"enabled": True}, "echo": False}},
            },
            ["echo"],
            ["fetch"],
            "",
        ),
        (
            {"persona_tool_deny": {"clerk": ["fetch"], "boss": ["echo"]}},
            ["fetch"],
            ["echo"],
            "persona 'clerk' is kept from it in persona_tool_deny",
        ),
        ({"global_tool_deny": ["fetch"]}, ["fetch"], ["echo"], "denied everywhere"),
        (
            {"code_execution_restricted_tenants": ["acme"]},
            ["code_execute"],
            ["fetch"],
            "tenant 'acme' may not execute code",
        ),
        ({"code_execution_restricted_tenants": ["other"]}, [], ["code_execute"], ""),
    ],
)
async def test_a_rule_by_name_hides_and_refuses_and_lists_the_same(
    data: dict[str, Any], refused: list[str], allowed: list[str], reason: str
) -> None:
    policy = rego(**data)
    assert policy.reads == frozenset()
    for name in refused:
        assert not await policy.allows(asked(VIEW, name))
        assert not await policy.allows(asked(REQUEST, name))
        told = await policy.reasons(asked(REQUEST, name))
        assert any(reason in one for one in told), told
    for name in allowed:
        assert await policy.allows(asked(VIEW, name))
        assert await policy.allows(asked(REQUEST, name))
    shown = await policy.visible(listed(), [tool(name) for name in (*refused, *allowed)])
    assert shown == frozenset(allowed)


@pytest.mark.req("G3")
@pytest.mark.parametrize("tenant", ["acme", "*"])
@pytest.mark.parametrize("name", ["fetch", "*"])
async def test_a_refused_argument_refuses_the_call_and_leaves_the_tool_listed(
    tenant: str, name: str
) -> None:
    policy = rego(restricted_arguments={tenant: {name: {"method": ["DELETE", 7]}}})
    assert not await policy.allows(asked(REQUEST, "fetch", args={"method": "DELETE"}))
    assert not await policy.allows(asked(REQUEST, "fetch", args={"method": 7}))
    (told,) = await policy.reasons(asked(REQUEST, "fetch", args={"method": "DELETE"}))
    assert told.startswith("argument 'method' may not have this value (call it with another")
    assert await policy.allows(asked(REQUEST, "fetch", args={"method": "GET"}))
    assert await policy.allows(asked(REQUEST, "fetch", args={}))
    assert await policy.allows(asked(VIEW, "fetch"))
    assert await policy.visible(listed(), [tool("fetch")]) == {"fetch"}
    assert await policy.allows(asked(REQUEST, "other", args={"method": "DELETE"})) is (name != "*")


@pytest.mark.req("G3")
async def test_only_data_about_arguments_makes_every_call_a_question() -> None:
    assert rego().reads == frozenset()
    assert rego(global_tool_deny=["x"], tool_catalog={}).reads == frozenset()
    assert rego(restricted_arguments={}).reads == {"args"}


@pytest.mark.req("G2", "G3")
@pytest.mark.parametrize(
    ("data", "stored", "unlisted_may", "may"),
    [
        ({}, None, False, False),
        ({}, None, True, True),
        ({}, True, False, True),
        ({}, False, True, False),
        ({"clerk": {"can_add_tools": True}}, None, False, True),
        ({"clerk": {"can_add_tools": False}}, None, True, False),
        ({"clerk": {"can_add_tools": False}}, True, True, False),
        ({"clerk": {"can_add_tools": True}}, False, True, False),
        ({"clerk": {}}, None, True, False),
        ({"other": {"can_add_tools": True}}, None, False, False),
    ],
)
async def test_a_persona_adds_tools_where_somebody_said_so_and_nobody_said_no(
    data: dict[str, Any], *, stored: bool | None, unlisted_may: bool, may: bool
) -> None:
    document = asked(ENABLE, "new", may_add=unlisted_may, persona={"can_add_tools": stored})
    for policy in (rego(persona_permissions=data), *([] if data else [rego()])):
        assert await policy.allows(document) is may
        assert bool(await policy.reasons(document)) is not may


@pytest.mark.req("G2", "G3")
async def test_what_is_denied_everywhere_is_not_added_either() -> None:
    policy = rego(global_tool_deny=["bad"], tenant_tool_flags={"acme": {"off": False}})
    persona = {"can_add_tools": True}
    assert not await policy.allows(asked(ENABLE, "bad", persona=persona))
    assert await policy.reasons(asked(ENABLE, "bad", persona=persona)) == (
        "it is denied everywhere in global_tool_deny (remove it from that list)",
    )
    assert await policy.allows(asked(ENABLE, "off", persona=persona))


@pytest.mark.req("G3")
@pytest.mark.parametrize("action", ["", "tool.delete", "TOOL.VIEW"])
async def test_an_action_that_nobody_knows_is_refused(action: str) -> None:
    assert not await rego().allows({**asked(VIEW), "action": action})


@pytest.mark.req("G3")
async def test_tenants_and_personas_of_odd_names_match_nothing_but_themselves() -> None:
    odd = Caller(tenant="acme", persona='clerk"]', user="../..")
    policy = rego(persona_tool_deny={"clerk": ["fetch"]})
    assert await policy.allows(asked(REQUEST, "fetch", caller=odd))
    assert not await policy.allows(asked(REQUEST, "fetch", caller=ME))
