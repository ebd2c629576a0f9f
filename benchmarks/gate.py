"""What a decision costs: warm, cold, in a large world, over servers. `python -m benchmarks.gate`.

A warm decision is one that was made before and still holds. A cold one is made anew: the decisions
of these gates are believed for a nanosecond, so that nothing of the last one is left.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.deciders import deciders, loopback
from benchmarks.embedded import CALLER, Echo
from benchmarks.measure import Bar, Call, Row, cpu_us, options, report, stretch
from benchmarks.peers import CHECKED, PEERS, add
from benchmarks.rows import PROVIDER, many, specs_from
from benchmarks.worlds import LARGE, SMALL, worlds
from toolgate import Toolgate, tool
from toolgate.settings.gate import Cache, Policy, Relations
from toolgate.settings.settings import Settings, Store

NO_TIME = 1e-9
TOOLS, REPEATS = 10_000, 7
LOOK_UP = "dict look-up"
WARM, COLD = "decision, warm", "decision, cold: Rego"
RELATED = "decision, cold: relations in the store, Rego"
LOOK = "what a side effect adds: a look at the store"
SERVED = "decision, cold: SpiceDB and an OPA server"
LISTED, LISTED_WARM = f"discover, {TOOLS:,} tools, cold", f"discover, {TOOLS:,} tools, warm"
LISTED_RELATED = f"discover, {TOOLS:,} tools, cold, relations in the store"
LISTED_LOOKING = f"discover, {TOOLS:,} tools, cold, a rule that looks at each"
# A rule that cannot be answered by names alone, so that every tool's document is read.
LOOKING = 'package toolgate\n\ndeny contains "no" if input.tool.category == "forbidden"\n'


async def opened(
    stack: AsyncExitStack,
    *,
    warm: bool = False,
    policy: Policy | None = None,
    relations: Relations | None = None,
    rule: str = "",
) -> Toolgate:
    """A whole gate, with a store on disk; Ann may execute `add`, by a group."""
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="toolgate-bench-")))
    if rule:
        (folder / "policies").mkdir()
        (folder / "policies" / "rule.rego").write_text(rule, encoding="utf-8")
    settings = Settings(
        store=Store(url=f"sqlite:///{folder / 'toolgate.db'}"),
        root=folder,
        cache=Cache() if warm else Cache(permission_ttl=NO_TIME),
        policy=policy or Policy(),
        relations=relations or Relations(),
    )
    gate = await stack.enter_async_context(Toolgate.open(settings, providers={PROVIDER: Echo()}))
    gate.add(tool(effect="pure")(add))
    if relations is not None:
        given = ("tool:add#executor@group:staff#member", "group:staff#member@user:ann")
        await gate.tenancy.add_tenant(CALLER.tenant)
        await gate.tenancy.relate(CALLER.tenant, add=given)
    return gate


def deciding(gate: Toolgate) -> Call:
    return lambda: gate.gate.decide(CALLER, "add", {"a": 1, "b": 3})


def looked_up() -> Call:
    """The floor: by who and what, as any cache would."""
    kept = {(CALLER, f"tool_{number}"): number for number in range(1_000)}

    async def look() -> int:
        return kept[CALLER, "tool_7"]

    return look


async def decisions() -> list[Row]:
    async with AsyncExitStack() as stack:
        related = await opened(stack, relations=Relations(engine="store"))
        calls: dict[str, Call] = {
            LOOK_UP: looked_up(),
            CHECKED: (await PEERS[CHECKED](stack))[0],
            WARM: deciding(await opened(stack, warm=True)),
            COLD: deciding(await opened(stack)),
            RELATED: deciding(related),
            LOOK: related.tenancy.freshen,
        }
        more, missing = deciders()
        rows = await cpu_us(calls | more, rounds=11)
        return [*rows.values(), *missing]


async def _listed(name: str, gate: Toolgate) -> Row:
    took: list[float] = []
    for _ in range(REPEATS):
        with stretch() as one:
            await gate.discover(CALLER)
        took.append(one.cpu_ms)
    note = f"CPU; the first {took[0]:.3g} ms"
    return Row(name=name, value=min(took), median=statistics.median(took), unit="ms", note=note)


async def listings() -> list[Row]:
    given, about = many(TOOLS)
    specs = specs_from(given)
    ways: dict[str, Callable[[AsyncExitStack], Awaitable[Toolgate]]] = {
        LISTED: opened,
        LISTED_RELATED: lambda stack: opened(stack, relations=Relations(engine="store")),
        LISTED_LOOKING: lambda stack: opened(stack, rule=LOOKING),
        LISTED_WARM: lambda stack: opened(stack, warm=True),
    }
    rows: list[Row] = []
    for name, way in ways.items():
        async with AsyncExitStack() as stack:
            gate = await way(stack)
            gate.catalog.put("benchmarks", specs)
            if relations := name == LISTED_RELATED:
                every = [f"tool:{spec.name}#executor@group:staff#member" for spec in specs]
                for at in range(0, len(every), 1_000):
                    await gate.tenancy.relate(CALLER.tenant, add=every[at : at + 1_000])
            if len(await gate.discover(CALLER)) < TOOLS and relations:
                raise ValueError("not every tool is listed")
            rows.append(await _listed(name, gate))
    rows[0] = Row(
        name=LISTED, value=rows[0].value, median=rows[0].median, unit="ms",
        note=f"{rows[0].note}; {about}",
    )  # fmt: skip
    return rows


async def served() -> Row:
    """Wall time: most of it is spent in other processes."""
    async with AsyncExitStack() as stack:
        try:
            policy, relations = loopback(stack)
        except LookupError as missing:
            return Row(name=SERVED, unit="ms", note=str(missing))
        decide = deciding(await opened(stack, policy=policy, relations=relations))
        took: list[float] = []
        for _ in range(500):
            started = time.perf_counter()
            await decide()
            took.append((time.perf_counter() - started) * 1e3)
    middle = statistics.median(took)
    return Row(name=SERVED, value=min(took), median=middle, unit="ms", note="wall")


def main() -> int:
    chosen = options("What a decision costs.").parse_args()
    rows = asyncio.run(decisions())
    rows += asyncio.run(listings())
    rows += asyncio.run(worlds())
    rows.append(asyncio.run(served()))
    found = {row.name: row for row in rows}
    best = {name: row.value for name, row in found.items()}
    bars = [
        Bar(name=WARM, value=best[WARM], limit=2.0, unit="µs"),
        Bar(name=RELATED, value=best[RELATED], limit=300.0, unit="µs"),
        Bar(name=f"{LISTED}, median", value=found[LISTED].median, limit=150.0, unit="ms"),
        Bar(name=f"{LISTED_WARM}, median", value=found[LISTED_WARM].median, limit=1.0, unit="ms"),
        Bar(name=f"{SERVED}, median", value=found[SERVED].median, limit=3.0, unit="ms"),
    ]
    for kind in ("warm", "cold"):
        large, small = best[f"{LARGE}, {kind}"], best[f"{SMALL}, {kind}"]
        ratio = large / small if large and small else None
        bars.append(Bar(name=f"large world / small, {kind}", value=ratio, limit=1.2, unit="x"))
    return report("Decisions", rows, bars, baseline=CHECKED, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
