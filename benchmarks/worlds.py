"""Decisions in a small world and in a large one, by the same callers about the same tools.

Each tenant has a flag for every tool, and its agent a capsule that lists every tool.
"""

from itertools import cycle

from benchmarks.measure import Call, Row, cpu_us
from benchmarks.rows import many, specs_from
from toolgate import Caller
from toolgate.catalog.catalog import Catalog
from toolgate.engines.modules import Modules
from toolgate.engines.rego import Rego
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.gate import Gate
from toolgate.tenancy.capsule import Activation, Capsule, Mode
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import Tenant, World
from toolgate.testing.directory import MemoryDirectory

FEW, MANY = 10, 1_000
SMALL = f"{FEW} tenants x {FEW} tools"
LARGE = f"{MANY:,} tenants x {MANY:,} tools"


class Given(MemoryDirectory):
    """A world as it was given: a million changes one by one would be another benchmark."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world


def world(tenants: int, tools: list[str]) -> World:
    def tenant() -> Tenant:
        capsule = Capsule(Mode.LISTED, {name: Activation() for name in tools})
        return Tenant(flags=dict.fromkeys(tools, True), capsules={"clerk": capsule})

    return World(revision=1, tenants={f"tenant-{number}": tenant() for number in range(tenants)})


async def _deciding(catalog: Catalog, of: World, rules: Rules, tools: list[str]) -> Call:
    tenancy = Tenancy(Given(of))
    await tenancy.refresh()
    gate = Gate(catalog, tenancy, Engines(policy=Rego(Modules().load())), rules=rules)
    callers = [Caller(tenant=f"tenant-{number}", agent="clerk") for number in range(FEW)]
    asked = cycle([(caller, name) for caller in callers for name in tools[:FEW]])

    async def decide() -> object:
        return await gate.decide(*next(asked))

    # Each once: what is then asked again is warm, if anything may be.
    for _ in range(FEW * FEW):
        await decide()
    return decide


async def worlds() -> list[Row]:
    """Warm and cold; rounds of both worlds take turns."""
    specs = specs_from(many(MANY)[0])
    catalog = Catalog([], usable=lambda _spec: None)
    catalog.put("benchmarks", specs)
    tools = [spec.name for spec in specs]
    found = {SMALL: world(FEW, tools[:FEW]), LARGE: world(MANY, tools)}
    kinds = {"warm": Rules(), "cold": Rules(permission_ttl_ns=1)}
    calls = {
        f"{name}, {kind}": await _deciding(catalog, of, rules, tools)
        for kind, rules in kinds.items()
        for name, of in found.items()
    }
    return list((await cpu_us(calls, rounds=11)).values())
