"""`toolgate doctor`: for each part, fine, or what is wrong and what to do."""

import asyncio
import contextlib
import platform
import sys
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.caller import Caller
from toolgate.catalog.plugins import SOURCE as PLUGIN
from toolgate.cli import log, show
from toolgate.cli.around import around
from toolgate.cli.despite import open_despite
from toolgate.cli.examined import examined
from toolgate.cli.far import KeyFile, Place, Url
from toolgate.cli.finding import Finding, of_engine, of_plugin, of_server, of_sources, of_tools
from toolgate.cli.fleet import fleet
from toolgate.cli.session import AGENT, TENANT, Config, Json, load, usage
from toolgate.errors import CallRefused, ToolgateError
from toolgate.furnishing import extras_for, programs_among
from toolgate.sandbox.choosing import chosen
from toolgate.settings.settings import Settings, Store
from toolgate.storage import store_state
from toolgate.upstreams.review import SOURCE

app = typer.Typer(add_completion=False, help="Check every part and say what to do.")
# Where the tools that are not ours come from.
_OWN = frozenset({"file", "http", "openapi"})
_MOST_NAMED = 20
_PARTS: Mapping[str, str] = {"invalid_policy": "policy", "settings_invalid": "settings"}
# To open these would make or change them, and who only asks how things are wants neither.
_LEFT_ALONE = {
    "empty": "not made yet; the first start makes it",
    "old": "an older version; the next start upgrades it",
}


@app.command()
def doctor(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    together: Annotated[
        bool, typer.Option("--fleet", help="Also whether several machines can share it.")
    ] = False,
    json: Json = False,
) -> None:
    """Check every part and say what to do."""
    log.to_nobody()
    place = Place(config, url, key_file)
    if place.is_far and together:
        raise usage("--fleet looks at what the settings name: leave --url out.", json=json)
    far = place.is_far
    findings = asyncio.run(examined(place)) if far else list(_examined(config, together=together))
    if json:
        show.as_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            mark = show.coloured("ok  ", 32) if finding.fine else show.coloured("BAD ", 31)
            show.line(f" {finding.part:11} {finding.says}", mark=mark)
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)


def _examined(config: Path | None, *, together: bool) -> Iterator[Finding]:
    new_enough = sys.version_info >= (3, 11)
    yield Finding("python", new_enough, f"{platform.python_version()}; 3.11 or later is needed")
    try:
        settings = load(config)
    except ToolgateError as error:
        yield Finding("settings", False, error.message)
        return
    try:
        found = asyncio.run(_opened(settings, together=together))
    except ToolgateError as error:
        found = [_failed(error)]
    if not any(finding.part == "settings" for finding in found):
        yield Finding("settings", True, "readable")
    yield from found


def _failed(error: ToolgateError) -> Finding:
    part = "store" if error.code.startswith("store_") else _PARTS.get(error.code, "catalog")
    return Finding(part, False, error.message)


async def _opened(settings: Settings, *, together: bool) -> list[Finding]:
    named = settings
    store = _LEFT_ALONE.get(await store_state(settings), "")
    if store:
        # All but the store can be looked at all the same.
        settings = settings.model_copy(update={"store": Store(url="sqlite:///:memory:")})
    async with AsyncExitStack() as stack:
        gate, problems = await open_despite(settings, stack)
        world = gate.tenancy.world
        tenants = show.count(len(world.tenants), "tenant")
        broken = {_failed(problem).part for problem in problems}
        keys = "on record" if world.keys else "none yet; the first `toolgate serve` makes them"
        # Asked by connections for this alone: nothing of them is agreed to.
        servers = await gate.servers.examined()
        programs = [one["name"] for one in servers if one["is_program"]]
        programs += [
            one.name for one in gate.catalog.current.specs.values() if one.provider == "shell"
        ]
        snapshot = gate.catalog.current
        ours = programs_among(
            one for name, one in snapshot.specs.items() if name not in snapshot.unusable
        )
        beside = await around(settings, is_new=bool(store), programs=programs, builtin=ours)
        # It was tried by now.
        waiting = ours if (await chosen(settings.sandbox)).refusal else []
        return [
            _store(gate, store or f"up to date; {tenants}"),
            *map(_failed, problems),
            # What stands in for a part that cannot be read is none of the operator's.
            *[finding async for finding in _tools(gate, waiting) if "catalog" not in broken],
            *map(of_plugin, gate.plugins.rows()),
            *map(of_server, servers),
            *[finding async for finding in _engines(gate, settings) if finding.part not in broken],
            *([] if store else [Finding("keys", True, keys)]),
            *beside,
            *(await fleet(gate, named) if together else []),
        ]


def _store(gate: Toolgate, says: str) -> Finding:
    why = gate.held()
    if not why:
        return Finding("store", True, says)
    return Finding("store", False, f"in quarantine: {why}; see toolgate store show")


async def _engines(gate: Toolgate, settings: Settings) -> AsyncGenerator[Finding]:
    """Each is asked first: one that nobody has asked yet does not know that it is away."""
    with contextlib.suppress(CallRefused):
        await gate.discover(Caller(tenant=TENANT, agent=AGENT))
    for health in gate.gate.health():
        found = of_engine(health)
        if found.part == "policy" and settings.policy.mode == "observe":
            says = f"{found.says}; it only observes: what it would refuse passes"
            found = found._replace(says=says)
        yield found


async def _tools(gate: Toolgate, waiting: Collection[str]) -> AsyncGenerator[Finding]:
    """Where they come from, and whether they run: one of one's own has to; a built-in may wait.

    `waiting`: those that wait for a sandbox.
    """
    apart = (SOURCE, PLUGIN)
    own_sources = [one for one in gate.catalog.health() if not one.source.startswith(apart)]
    for found in of_sources(map(msgspec.structs.asdict, own_sources)):
        yield found
    snapshot = gate.catalog.current
    own = [name for name in snapshot.unusable if snapshot.specs[name].origin.kind in _OWN]
    ready = len(snapshot.specs) - len(snapshot.unusable) - len(waiting)
    apart = [name for name in snapshot.unusable if snapshot.specs[name].origin.kind == "plugin"]
    missing = snapshot.unusable.keys() - {*own, *apart}
    extras = " ".join(extras_for(missing))
    says = of_tools(ready, missing=len(missing), extras=extras, waiting=len(waiting))
    yield Finding("tools", True, says)
    for name in own[:_MOST_NAMED]:
        explained = await gate.explain(name, caller=Caller(tenant=TENANT, agent=AGENT))
        verdict = explained.deciding
        says = f"{name} ({snapshot.specs[name].origin}): {verdict.reason}. {verdict.remedy}"
        yield Finding("tool", False, says)
    if more := len(own[_MOST_NAMED:]):
        yield Finding("tool", False, f"{more:,} more cannot run; see toolgate tools list")
