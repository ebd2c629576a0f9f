"""`toolgate doctor`: for each part, fine, or what is wrong and what to do."""

import asyncio
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.session import Config, Json, load
from toolgate.errors import ToolgateError
from toolgate.settings import Settings

app = typer.Typer(add_completion=False, help="Check every part and say what to do.")


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
    async with Toolgate.open(settings) as gate:
        world, snapshot = gate.tenancy.world, gate.catalog.current
        findings = [
            Finding("store", True, f"up to date; {len(world.tenants)} tenants"),
            *(
                Finding(
                    "source",
                    health.ok,
                    f"{health.source}: {health.problem or f'{health.tools} tools'}",
                )
                for health in gate.catalog.health()
            ),
        ]
        unusable = len(snapshot.unusable)
        ready = len(snapshot.specs) - unusable
        findings.append(
            Finding(
                "tools",
                True,
                f"{ready} can run, {unusable} lack an implementation"
                + (" (toolgate tools list)" if unusable else ""),
            )
        )
        told = "on record" if world.keys else "none yet; the first `toolgate serve` makes them"
        findings.append(Finding("keys", True, told))
        return findings
