"""`toolgate doctor`: for each part, fine, or what is wrong and what to do."""

import asyncio
import platform
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import NamedTuple

import typer

from toolgate.bootstrap import Toolgate, store_state
from toolgate.call import Caller
from toolgate.cli import show
from toolgate.cli.session import AGENT, TENANT, Config, Json, load
from toolgate.errors import ToolgateError
from toolgate.settings import Settings

app = typer.Typer(add_completion=False, help="Check every part and say what to do.")
# Where the tools that are not ours come from.
_OWN = frozenset({"file", "http"})
_MOST_NAMED = 20
# To open these would make or change them, and who only asks how things are wants neither.
_LEFT_ALONE = {
    "empty": "not made yet; the first start makes it",
    "old": "an older version; the next start upgrades it",
}


class Finding(NamedTuple):
    """One part: its name, whether it is fine, and the sentence."""

    part: str
    fine: bool
    says: str


@app.command()
def doctor(config: Config = None, json: Json = False) -> None:
    """Check every part and say what to do."""
    findings = list(_examined(config))
    if json:
        show.as_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            mark = "ok  " if finding.fine else "BAD "
            show.line(f"{mark} {finding.part:10} {finding.says}")
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)


def _examined(config: Path | None) -> Iterator[Finding]:
    new_enough = sys.version_info >= (3, 11)
    yield Finding("python", new_enough, f"{platform.python_version()}; 3.11 or later is needed")
    try:
        settings = load(config)
    except ToolgateError as error:
        yield Finding("settings", False, error.message)
        return
    yield Finding("settings", True, "readable")
    try:
        yield from asyncio.run(_opened(settings))
    except ToolgateError as error:
        yield Finding(_part_of(error), False, error.message)


def _part_of(error: ToolgateError) -> str:
    return "store" if error.code.startswith("store_") else "catalog"


async def _opened(settings: Settings) -> list[Finding]:
    if told := _LEFT_ALONE.get(await store_state(settings)):
        return [Finding("store", True, told)]
    async with Toolgate.open(settings) as gate:
        world = gate.tenancy.world
        tenants = show.count(len(world.tenants), "tenant")
        told = "on record" if world.keys else "none yet; the first `toolgate serve` makes them"
        return [
            Finding("store", True, f"up to date; {tenants}"),
            *(
                Finding(
                    "source",
                    health.ok,
                    f"{health.source}: {health.problem or show.count(health.tools, 'tool')}",
                )
                for health in gate.catalog.health()
            ),
            *[finding async for finding in _tools(gate)],
            Finding("keys", True, told),
        ]


async def _tools(gate: Toolgate) -> AsyncGenerator[Finding]:
    """A built-in without an implementation is as it should be; a tool of one's own has to run."""
    snapshot = gate.catalog.current
    own = [name for name in snapshot.unusable if snapshot.specs[name].origin.kind in _OWN]
    ready = len(snapshot.specs) - len(snapshot.unusable)
    told = f"{ready:,} can run"
    if missing := len(snapshot.unusable) - len(own):
        told += f", {show.count(missing, 'built-in')} not part of this version"
    yield Finding("tools", True, told)
    for name in own[:_MOST_NAMED]:
        explained = await gate.explain(name, caller=Caller(tenant=TENANT, agent=AGENT))
        verdict = explained.deciding
        says = f"{name} ({snapshot.specs[name].origin}): {verdict.reason}. {verdict.remedy}"
        yield Finding("tool", False, says)
    if more := len(own[_MOST_NAMED:]):
        yield Finding("tool", False, f"{more:,} more cannot run; see toolgate tools list")
