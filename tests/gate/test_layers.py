"""Layers narrow: groups, selectors, roles, tasks and delegations, one at a time."""

from types import MappingProxyType

import pytest

from toolgate import Caller
from toolgate.caller import Context
from toolgate.errors import InvalidRequest
from toolgate.gate.groups import groups_of
from toolgate.gate.layers import cascade
from toolgate.gate.selection import selection
from toolgate.spec.effect import Effect, Permission, SideEffect
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.layer import GROUPS, Layer, LayerKey, Permissions, check_selector
from toolgate.tenancy.world import Everyone, Tenant, World

READ = ToolSpec(name="read_file", effect=Effect.PURE, category="system")
WRITE = ToolSpec(name="write_file", effect=Effect.IDEMPOTENT, category="system")
FETCH = ToolSpec(name="http_get", effect=Effect.PURE, category="web")
QUERY = ToolSpec(name="json_query", effect=Effect.PURE, category="data")
SCRAPE = ToolSpec(
    name="scrape", effect=Effect.PURE, category="data", permissions=(Permission.NETWORK,)
)
SHELL = ToolSpec(name="run_shell", category="code", permissions=(Permission.SHELL,))
SOLVE = ToolSpec(name="solve", effect=Effect.PURE, category="math")
TOUCH = ToolSpec(name="touch", effect=Effect.PURE, side_effects=(SideEffect.MODIFIES_FILES,))
ALL = (READ, WRITE, FETCH, QUERY, SCRAPE, SHELL, SOLVE, TOUCH)


def left(caller: Caller, world: World) -> set[str]:
    steps = cascade(caller, world)
    return {spec.name for spec in ALL if steps.refusal(caller, spec, groups_of(spec)) is None}


def named(*specs: ToolSpec) -> set[str]:
    return {spec.name for spec in specs}


def world(
    everyone: dict[LayerKey, Layer] | None = None, acme: dict[LayerKey, Layer] | None = None
) -> World:
    return World(
        everyone=Everyone(layers=MappingProxyType(everyone or {})),
        tenants=MappingProxyType({"acme": Tenant(layers=MappingProxyType(acme or {}))}),
    )


@pytest.mark.req("G4")
@pytest.mark.parametrize(
    ("group", "members"),
    [
        ("read", named(READ, FETCH, QUERY, SCRAPE, SOLVE)),
        ("write", named(WRITE, SHELL, TOUCH)),
        ("code", named(SHELL)),
        ("data", named(QUERY, SCRAPE)),
        ("web", named(FETCH, SCRAPE)),
        ("math", named(SOLVE)),
        ("all", named(*ALL)),
    ],
)
def test_a_group_is_what_tools_say_about_themselves(group: str, members: set[str]) -> None:
    assert {spec.name for spec in ALL if group in groups_of(spec)} == members
    layer = Layer(allow=(f"group:{group}",))
    assert left(Caller(tenant="acme"), world({("", "one"): layer})) == members


def test_every_group_has_a_case_above() -> None:
    assert set(GROUPS) == {"read", "write", "code", "data", "web", "math", "all"}


@pytest.mark.req("G4")
@pytest.mark.parametrize(
    ("selector", "members"),
    [
        ("read_file", named(READ)),
        ("category:data", named(QUERY, SCRAPE)),
        ("category:data!web", named(QUERY)),
        ("*_file", named(READ, WRITE)),
        ("http_*", named(FETCH)),
        ("*", named(*ALL)),
        ("no_such_tool", set[str]()),
        # A name is a name: what a pattern would mean elsewhere is none here.
        ("read.file", set[str]()),
        ("(read_file)", set[str]()),
    ],
)
def test_a_selector_takes_what_it_says_and_nothing_else(selector: str, members: set[str]) -> None:
    taken = selection((selector,))
    assert {spec.name for spec in ALL if taken.has(spec, groups_of(spec))} == members


@pytest.mark.parametrize("selector", ["group:everything", "category:", "a b", "", "x" * 129])
def test_a_selector_that_selects_nothing_by_mistake_is_refused(selector: str) -> None:
    with pytest.raises(InvalidRequest):
        check_selector(selector)


@pytest.mark.req("G4")
def test_allow_intersects_and_deny_wins() -> None:
    layers = {
        ("", "one"): Layer(allow=("group:read",)),
        ("", "two"): Layer(allow=("category:data", "read_file", "write_file")),
        ("", "three"): Layer(allow=("group:all",), deny=("scrape",)),
    }
    assert left(Caller(tenant="acme"), world(layers)) == named(READ, QUERY)


@pytest.mark.req("G4")
def test_a_layer_that_allows_nothing_leaves_nothing() -> None:
    assert left(Caller(tenant="acme"), world({("", "shut"): Layer(allow=())})) == set()


@pytest.mark.req("G4", "G5")
def test_roles_narrow_each_other_and_a_tenant_narrows_its_own() -> None:
    layers = world(
        {("worker", "base"): Layer(allow=("group:read",)), ("analyst", "base"): Layer()},
        {("analyst", "own"): Layer(deny=("group:web",))},
    )
    worker = Caller(tenant="acme", roles=("worker",))
    assert left(worker, layers) == named(READ, FETCH, QUERY, SCRAPE, SOLVE)
    both = Caller(tenant="acme", roles=("worker", "analyst"))
    assert left(both, layers) == named(READ, QUERY, SOLVE)
    elsewhere = Caller(tenant="umbrella", roles=("worker", "analyst"))
    assert left(elsewhere, layers) == named(READ, FETCH, QUERY, SCRAPE, SOLVE)


@pytest.mark.req("G5")
def test_an_unknown_role_means_no_where_roles_are_on_record() -> None:
    caller = Caller(tenant="acme", roles=("worker", "made_up"))
    assert left(caller, world()) == named(*ALL), "without roles on record, a role is a label"
    known = world({("worker", "base"): Layer()})
    assert left(Caller(tenant="acme", roles=("worker",)), known) == named(*ALL)
    assert left(caller, known) == set()
    # Another tenant's role is none here.
    theirs = World(
        tenants=MappingProxyType({"umbrella": Tenant(layers={("made_up", "x"): Layer()})})
    )
    assert left(Caller(tenant="umbrella", roles=("worker",)), theirs) == set()


@pytest.mark.req("G4")
@pytest.mark.parametrize(
    ("context", "members"),
    [
        (Context(read_only=True), named(READ, FETCH, QUERY, SCRAPE, SOLVE)),
        (Context(no_web=True), named(READ, WRITE, QUERY, SHELL, SOLVE, TOUCH)),
        (Context(read_only=True, no_web=True), named(READ, QUERY, SOLVE)),
        (Context(allow=("group:data",)), named(QUERY, SCRAPE)),
        (Context(allow=("group:data",), deny=("scrape",)), named(QUERY)),
        (Context(allow=()), set[str]()),
        (Context(), named(*ALL)),
    ],
)
def test_a_task_takes_away(context: Context, members: set[str]) -> None:
    assert left(Caller(tenant="acme", context=context), world()) == members


@pytest.mark.req("G4")
def test_each_step_of_a_delegation_narrows() -> None:
    chief = Caller(tenant="acme", agent="chief")
    first = chief.delegate("planner", allow=["group:read"])
    second = first.delegate("worker", deny=["group:web"])
    third = second.delegate("helper", allow=["group:all"])
    assert left(chief, world()) == named(*ALL)
    assert left(first, world()) == named(READ, FETCH, QUERY, SCRAPE, SOLVE)
    assert left(second, world()) == left(third, world()) == named(READ, QUERY, SOLVE)
    assert [step.by for step in third.delegation] == ["chief", "planner", "worker"]
    assert third.agent == "helper"


def test_a_delegation_by_nobody_and_one_too_deep_are_refused() -> None:
    with pytest.raises(InvalidRequest):
        Caller(tenant="acme").delegate("worker")
    caller = Caller(tenant="acme", agent="a0")
    for number in range(32):
        caller = caller.delegate(f"a{number + 1}")
    with pytest.raises(InvalidRequest, match="32 times"):
        caller.delegate("one-more")


@pytest.mark.req("G5")
@pytest.mark.parametrize(
    ("permissions", "members"),
    [
        (Permissions(), set[str]()),
        (Permissions(allowed_categories=("data",)), named(QUERY)),
        (Permissions(allowed_categories=("data", "web")), named(QUERY)),
        (
            Permissions(allowed_categories=("data", "web"), web_access=True),
            named(QUERY, SCRAPE, FETCH),
        ),
        (Permissions(allowed_tools=("http_get",)), named(FETCH)),
        (
            Permissions(allowed_categories=("data",), forbidden_tools=("json_query",)),
            set[str](),
        ),
        (Permissions(allowed_tools=("solve",), forbidden_tools=("solve",)), set[str]()),
    ],
)
def test_flat_permissions_become_a_layer_that_allows_the_same(
    permissions: Permissions, members: set[str]
) -> None:
    layers = world({("worker", "permissions"): permissions.layer()})
    assert left(Caller(tenant="acme", roles=("worker",)), layers) == members


@pytest.mark.req("G6")
def test_a_refusal_names_its_layer_its_reason_and_what_to_change() -> None:
    layers = world(
        acme={("worker", "base"): Layer(allow=("group:read",), deny=("solve",), reason="juniors")}
    )
    caller = Caller(tenant="acme", roles=("worker",))
    steps = cascade(caller, layers)
    shut_out = steps.refusal(caller, WRITE, groups_of(WRITE))
    assert shut_out is not None
    assert shut_out.rule == "role:worker"
    assert shut_out.reason == (
        "layer 'base' of role 'worker' in tenant 'acme' does not allow it: juniors"
    )
    assert shut_out.remedy == "toolgate layers permit base write_file --role worker --tenant acme"
    denied = steps.refusal(caller, SOLVE, groups_of(SOLVE))
    assert denied is not None
    assert "denies it" in denied.reason
