"""A whole house in memory for tests of one's own tools: no file, no server, nothing left behind."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from toolgate.catalog.catalog import Catalog
from toolgate.executor.executor import Executor, built_in
from toolgate.executor.extension import Extension
from toolgate.executor.limits.budget import Budget
from toolgate.executor.limits.purses import Purses
from toolgate.executor.limits.rate import Rate
from toolgate.executor.limits.usage import Usage
from toolgate.executor.people.people import People
from toolgate.executor.provider import Provider
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.decision import Decisions
from toolgate.gate.gate import Gate
from toolgate.ledger.approval import Approvals
from toolgate.ledger.journal import Journal
from toolgate.ledger.ledger import Ledger
from toolgate.providers.python import PythonProvider
from toolgate.runtime import Runtime
from toolgate.tenancy.directory import Directory, RelationWriter
from toolgate.tenancy.plan import Plan
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.approvals import MemoryApprovals
from toolgate.testing.budgets import MemoryBudgets
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.ledger import MemoryLedger

_TIMEOUT = 30.0
_WAIT = 5.0


@asynccontextmanager
async def in_memory(  # noqa: PLR0913  each port can be handed in
    *functions: Callable[..., Any],
    directory: Directory | None = None,
    journal: Journal | None = None,
    approvals: Approvals | None = None,
    ledger: Ledger | None = None,
    extensions: Sequence[Extension] = (),
    providers: Mapping[str, Provider] = MappingProxyType({}),
    engines: Engines | None = None,
    decisions: Decisions | None = None,
    rules: Rules | None = None,
    relations: RelationWriter | None = None,
) -> AsyncGenerator[Runtime]:
    """The runtime with these functions as its only tools. Hand in twins to look into them.

    Without `engines` the last phase is layers and personas alone, and nobody needs a relation.
    """
    journal = journal or MemoryJournal()
    beside = journal if isinstance(journal, MemoryJournal) else MemoryJournal()
    budgets = MemoryBudgets(beside.owner)
    beside.charge = budgets.charge
    purses = Purses(budgets)
    purses.start()
    python = PythonProvider()
    people = People(
        approvals or MemoryApprovals(beside),
        decide=lambda: gate.decide,
        world=lambda: tenancy.world,
    )
    chain = (
        *built_in(
            journal=journal,
            people=people,
            wait=_WAIT,
            limits=(
                Rate(lambda: tenancy.world),
                Budget(purses, lambda: tenancy.world, default_plan=Plan.ENTERPRISE),
            ),
        ),
        *extensions,
    )
    executor = Executor({"python": python, **providers}, chain, default_timeout=_TIMEOUT)
    catalog = Catalog([], usable=executor.unusable)
    tenancy = Tenancy(directory or MemoryDirectory(), relations=relations)
    await tenancy.refresh()
    gate = Gate(
        catalog,
        tenancy,
        engines or Engines(),
        decisions=decisions,
        rules=rules or Rules(),
    )
    house = Runtime(
        catalog=catalog,
        tenancy=tenancy,
        gate=gate,
        executor=executor,
        journal=journal,
        functions=python,
        people=people,
        ledger=ledger or MemoryLedger(beside),
        decisions=decisions,
        usage=Usage(budgets, purses, lambda: tenancy.world, default_plan=Plan.ENTERPRISE),
    )
    house.add(*functions)
    try:
        yield house
    finally:
        await executor.close()
        await purses.close()
        people.bus.close()
        python.close()
