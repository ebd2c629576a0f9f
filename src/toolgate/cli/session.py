"""What every command shares: where the settings are, who calls, how it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer

from toolgate import configuration
from toolgate.bootstrap import Toolgate
from toolgate.caller import Caller
from toolgate.cli import show
from toolgate.cli.far import NO_KEY, URL, Far, Place, reach
from toolgate.errors import ToolgateError
from toolgate.settings.settings import Settings
from toolgate.tenancy import first

T = TypeVar("T")

Config = Annotated[
    Path | None,
    typer.Option("--config", help=f"The settings file; ./{configuration.FILE} if there is one."),
]
# A flag takes no value, so help shows none.
Json = Annotated[bool, typer.Option("--json", metavar="", help="Answer with JSON.")]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant.")]
Agent = Annotated[str, typer.Option("--agent", help="The agent.")]
TENANT = first.TENANT
AGENT = first.AGENT


def load(config: Path | None) -> Settings:
    """The settings of `--config`, of the file here, or the defaults."""
    here = Path(configuration.FILE)
    return configuration.load(config or (here if here.is_file() else None))


def with_gate(
    place: Place,
    work: Callable[[Toolgate], Awaitable[T]],
    far: Far[T] | None = None,
    *,
    json: bool,
    works: bool = False,
) -> T:
    """Open the local store, or ask the server; end with a sentence when it cannot be done.

    `works`: whether queued calls are run meanwhile: one that is made here needs somebody.
    """

    async def run() -> T:
        # One command is not there for what others have scheduled or queued.
        async with Toolgate.open(load(place.config), scheduled=False, queued=works) as gate:
            return await work(gate)

    return at_place(place, run, far, json=json)


def at_place(
    place: Place, here: Callable[[], Coroutine[Any, Any, T]], far: Far[T] | None, *, json: bool
) -> T:
    """One of the two ways to do it; without `far`, it cannot be done on a server."""
    if place.is_far and far is None:
        raise usage(
            "This works on the store itself: run it where the store is, without --url and "
            f"without {URL} in the environment.",
            json=json,
        )
    if place.is_far and not place.has_key:
        raise usage(NO_KEY, json=json)
    with ending(json=json):
        if far is not None and place.is_far:
            return asyncio.run(_reached(place, far))
        return asyncio.run(here())
    raise AssertionError("an error always ends the command")


async def _reached(place: Place, far: Far[T]) -> T:
    return await reach(place, far)


class ending:  # noqa: N801  reads as a word: with ending(json=json): …
    """Turns an error of ours into its sentence and exit code 1."""

    def __init__(self, *, json: bool) -> None:
        self._json = json

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, ToolgateError):
            return False
        _tell(error.code, error.message, retryable=error.retryable, json=self._json)
        # What a command adds for the operator stands beside what a caller would be told.
        for note in getattr(error, "__notes__", ()):
            show.aside(note)
        raise typer.Exit(1)


def usage(message: str, *, json: bool) -> typer.Exit:
    """Wrong usage: say how, and exit with 2."""
    _tell("wrong_usage", message, retryable=False, json=json)
    return typer.Exit(2)


def interrupted(message: str, *, json: bool) -> typer.Exit:
    """Ctrl-C: say how things stand, and exit as a shell expects it."""
    _tell("interrupted", message, retryable=False, json=json)
    return typer.Exit(130)


def caller_of(tenant: str, agent: str, *, user: str = "", json: bool) -> Caller:
    """On whose behalf; a tenant is never left out."""
    if not tenant:
        raise usage("A caller belongs to a tenant: --tenant NAME.", json=json)
    with ending(json=json):
        return Caller(tenant=tenant, agent=agent, user=user)
    raise AssertionError("an error always ends the command")


def warn_of_sources(gate: Toolgate) -> None:
    """A source that did not answer is missed before its tools are."""
    for health in gate.catalog.health():
        if not health.ok:
            there = show.count(health.tools, "tool") if health.tools else "no tools"
            there += " as before" if health.stale and health.tools else ""
            show.warning(f"source {health.source} is unhealthy ({there}): {health.problem}")


def warn_of_engines(gate: Toolgate) -> None:
    """An engine that is not well refuses, or decides by an older policy."""
    for health in gate.gate.health():
        if not health.ok:
            show.warning(f"engine {health.engine} is unhealthy: {health.problem}")


def _tell(code: str, message: str, *, retryable: bool, json: bool) -> None:
    if json:
        told = {"code": code, "message": message, "retryable": retryable}
        show.line(orjson.dumps({"error": told}).decode())
    else:
        show.aside(f"{code}: {message}")
