"""Every case of `cases/`, over Rego and OPA, tables and SpiceDB, at every place that decides."""

from collections import Counter
from collections.abc import AsyncGenerator
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.engines.relation_engines import SPICEDB
from tests.gate.case import Case, by_note, put, read_cases
from tests.gate.engines import (
    OFF,
    OPA,
    POLICIES,
    REGO,
    RELATIONS,
    STORE,
    Apart,
    Brought,
    open_policy,
    open_relations,
)
from tests.gate.world import catalog
from toolgate.call import Output, Turn
from toolgate.caller import Action, Caller
from toolgate.errors import CallRefused, PermissionDenied, ToolNotFound
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.decision import Decision
from toolgate.gate.gate import Gate
from toolgate.sight import Inside
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.decisions import MemoryDecisions
from toolgate.testing.directory import MemoryDirectory
from toolgate.toolbox import Toolbox

CASES = read_cases()
CATALOG = catalog()
# A case without relations is the same wherever they are kept. Cases of one policy come together.
EVERYWHERE = sorted(
    (
        (policy, relations, case)
        for case in CASES
        for policy in POLICIES
        for relations in (RELATIONS if case.relations is not None else (OFF,))
    ),
    key=lambda one: (*one[:2], str(one[2].policy)),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def policy(request: pytest.FixtureRequest) -> AsyncGenerator[Brought]:
    async with open_policy(request.param, request) as brought:
        yield brought


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def relations(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Apart | None]:
    folder = tmp_path_factory.mktemp("relations")
    async with open_relations(request.param, folder, request) as apart:
        yield apart


class Asked:
    """A gate that the case's world is in, and every way to ask it."""

    def __init__(self, case: Case, gate: Gate, decisions: MemoryDecisions) -> None:
        self.case = case
        self.gate = gate
        self.who = case.who()
        self._decisions = decisions

    async def refusal(self) -> CallRefused | None:
        try:
            grant = await self.gate.decide(self.who, self.case.tool, self.case.args)
        except CallRefused as raised:
            return raised
        assert (grant.caller, grant.spec.name) == (self.who, self.case.tool)
        assert grant.needs_a_person is self.case.person
        assert self._decisions.made[grant.decision].allowed
        return None

    async def is_seen(self) -> bool:
        try:
            return (await self.gate.view(self.who, self.case.tool)).name == self.case.tool
        except ToolNotFound:
            return False

    async def listed(self) -> set[str]:
        return {spec.name for spec in await self.gate.listing(self.who)}

    async def box(self) -> Toolbox:
        return await Toolbox(Inside(self.gate, self.who), _nothing_runs, self.who, None).refresh()

    def on_record(self) -> list[Decision]:
        return [one for one in self._decisions.made.values() if one.tool == self.case.tool]


async def _nothing_runs(
    tool: str, args: object, *, caller: Caller, turn: Turn | None, **_: object
) -> Output:
    raise NotImplementedError


async def prepared(case: Case, policy: Brought, apart: Apart | None) -> Asked:
    relations = apart(f"-{uuid4().hex}") if apart is not None else None
    tenancy = Tenancy(MemoryDirectory(), known=lambda: CATALOG.current.specs, relations=relations)
    await put(tenancy, case)
    await tenancy.refresh()
    decisions = MemoryDecisions()
    engines = Engines(await policy(case.bundle()), relations)
    rules = Rules(observe=case.observe, unlisted_may_add=case.unlisted_may_add)
    return Asked(case, Gate(CATALOG, tenancy, engines, decisions=decisions, rules=rules), decisions)


@pytest.mark.req("G1", "G2", "G3", "G4", "G5", "G6", "G7", "C4")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("policy", "relations", "case"), EVERYWHERE, indirect=["policy", "relations"], ids=by_note
)
async def test_a_case_is_decided_as_it_says_wherever_it_is_asked(
    policy: Brought, relations: Apart | None, case: Case
) -> None:
    asked = await prepared(case, policy, relations)
    if case.adds:
        await adding_is_decided(asked)
        return
    # The second time everything comes from the cache.
    for _ in range(2):
        await calling_is_decided(asked)
        await it_is_explained(asked)
        await a_toolbox_holds_the_same(asked)
    if case.why == "registry/missing":
        assert asked.on_record() == []
        return
    recorded = {(one.allowed, one.observed, f"{one.phase}/{one.rule}") for one in asked.on_record()}
    if not case.allowed or case.observe:
        assert (case.allowed, case.allowed and case.observe, case.why) in recorded
    else:
        assert {one.allowed for one in asked.on_record()} == {True}


async def calling_is_decided(asked: Asked) -> None:
    case, seen = asked.case, asked.case.want != "hide"
    assert (case.tool in await asked.listed()) is seen
    assert await asked.is_seen() is seen
    refusal = await asked.refusal()
    if case.want == "call":
        assert refusal is None
    elif case.want == "deny":
        assert isinstance(refusal, PermissionDenied)
        assert refusal.phase == case.why.split("/")[0]
        assert case.reason in refusal.reason
    else:
        # Hidden and missing are one: in type, in code, in words.
        missing = ToolNotFound(case.tool)
        assert (type(refusal), str(refusal)) == (ToolNotFound, str(missing))
        assert refusal is not None
        assert refusal.details == missing.details


async def it_is_explained(asked: Asked) -> None:
    case = asked.case
    explained = await asked.gate.explain(asked.who, case.tool, case.args)
    deciding = explained.deciding
    assert explained.allowed is case.allowed
    assert explained.observed is (case.observe and case.allowed)
    assert not case.allowed or explained.needs_a_person is case.person
    if case.allowed and not case.observe:
        assert case.why in {f"{one.phase}/{one.rule}" for one in explained.verdicts}
        assert all(one.allowed for one in explained.verdicts)
    else:
        assert f"{deciding.phase}/{deciding.rule}" == case.why
        assert case.reason in deciding.reason
        assert deciding.remedy
        assert deciding.remedy in explained.remedies
    assert deciding.reason


async def a_toolbox_holds_the_same(asked: Asked) -> None:
    case, box = asked.case, await asked.box()
    assert box.is_available(case.tool) is (case.want != "hide")
    assert (box.metadata(case.tool) is not None) is (case.want != "hide")
    lacking = {one.name: one for one in box.unavailable()}
    has_it = box.is_available(case.tool) or case.tool in lacking
    assert (box.definition(case.tool) is not None) is box.is_tenant_available(case.tool) is has_it
    phase = case.why.split("/")[0]
    assert (case.tool in lacking) is (case.want == "hide" and phase != "registry")
    if case.tool in lacking:
        assert lacking[case.tool].phase == phase
        assert case.reason in lacking[case.tool].reason
        assert box.is_tenant_available(case.tool)


async def adding_is_decided(asked: Asked) -> None:
    case = asked.case
    spec = CATALOG.current.specs[case.tool]
    assert isinstance(spec, ToolSpec)
    refusal: PermissionDenied | None = None
    try:
        await asked.gate.add(asked.who, spec)
    except PermissionDenied as raised:
        refusal = raised
    assert (refusal is None) is case.allowed
    [decision] = asked.on_record()
    assert (decision.action, decision.allowed) == (Action.ENABLE, case.allowed)
    assert f"{decision.phase}/{decision.rule}" == case.why
    assert case.reason in decision.reason
    if refusal is not None:
        assert (refusal.phase, refusal.reason) == (decision.phase, decision.reason)


@pytest.mark.req("G7")
def test_there_are_enough_cases_and_each_is_told_apart() -> None:
    assert len(CASES) >= 150
    assert len({case.note for case in CASES}) == len(CASES)
    combinations = {one[:2] for one in EVERYWHERE if one[1] != OFF}
    assert combinations == {(REGO, STORE), (REGO, SPICEDB), (OPA, STORE), (OPA, SPICEDB)}
    wanted = Counter(case.want for case in CASES)
    assert min(wanted.values()) >= 5
    assert sum(case.whole for case in CASES) >= 20


# What each phase can decide by; `implementation` and the like are in the cases' own words.
RULES = {
    "registry": {"enabled", "tool_flag", "tenant_flag", "implementation", "allowed_callers"},
    "capsule": {"all", "listed", "not_listed", "switched_off", "removed"},
    "relations": {"off", "execute", "no_execute", "nobody"},
    "policy": {
        *("layers", "global", "unknown_role", "task", "task:read_only", "task:no_web"),
        *("role:worker", "delegation:1", "delegation:3", "persona", "rego"),
    },
}


def test_every_rule_of_every_phase_decides_a_case() -> None:
    decided = {case.why for case in CASES}
    for phase, rules in RULES.items():
        assert {f"{phase}/{rule}" for rule in rules} <= decided
