"""`toolgate audit`: what is on record, and the proof of it."""

import json as json_text
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import msgspec
import orjson
import typer

from toolgate.bootstrap import Toolgate, audit_trail
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.session import Config, Json, at_place, load, usage
from toolgate.tenancy.audit import Anchor, Proof, Trail

T = TypeVar("T")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="What is on record, and the proof of it.",
)
Tenant = Annotated[str, typer.Option("--tenant", help="Only what concerns this tenant.")]
_TOGETHER = 500
_ANCHOR = re.compile(r"[0-9]{1,18}:[0-9a-f]{64}\Z")
# What tells the records of calls apart.
_FIRST = ("tool", "state", "error_code", "rule", "call_id")
# So much of the details, in a list: the rest is in --json.
_MOST_CELL = 40


@app.command("list")
def list_(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """Show who changed, did or was refused what, when and why."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        records = await gate.tenancy.audit(tenant=tenant or None, limit=limit)
        return [
            msgspec.structs.asdict(record) | {"details": dict(record.details)} for record in records
        ]

    async def far(server: Server) -> list[dict[str, Any]]:
        return (await server.get("audit", tenant=tenant, limit=limit))["records"]

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("when", "who", "change", "tenant", "details", "why"),
        [
            (
                show.moment(row["at_ns"]),
                row["who"],
                row["change"],
                row["tenant"] or "(every one)",
                _short(_told(row["details"])),
                row["why"],
            )
            for row in rows
        ],
    )


@app.command()
def anchor(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = "",
    json: Json = False,
) -> None:
    """Show the newest link of each chain, to be kept where the store's owner cannot write."""

    async def work(trail: Trail) -> list[Anchor]:
        return await trail.anchors(tenant or None)

    found = _on_store(Place(config, url, key_file), work, json=json)
    if json:
        show.as_json([msgspec.structs.asdict(one) for one in found])
        return
    show.table(("tenant", "anchor"), [(one.tenant or "(every one)", str(one)) for one in found])


@app.command()
def verify(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = "",
    anchors: Annotated[
        list[str] | None,
        typer.Option("--anchor", help="An anchor that was kept elsewhere; can be repeated."),
    ] = None,
    json: Json = False,
) -> None:
    """Look at every record, seal and page again; exit with 1 where one does not hold."""

    for one in anchors or ():
        if not _ANCHOR.match(one):
            raise usage(
                f"{one[:80]!r} is no anchor; it looks as `toolgate audit anchor` shows it, "
                "a number, a colon and 64 digits and letters from a to f.",
                json=json,
            )

    async def work(trail: Trail) -> Proof:
        return await trail.verify(tenant=tenant or None, kept=anchors or ())

    found = _on_store(Place(config, url, key_file), work, json=json)
    if json:
        show.as_json(msgspec.structs.asdict(found) | {"holds": found.holds})
    else:
        for problem in found.problems:
            show.line(f"broken: {problem}")
        told = show.count(found.records, "record"), show.count(found.seals, "seal")
        pages = show.count(found.pages, "page")
        word = "The audit log holds" if found.holds else "The audit log does not hold"
        show.line(f"{word}: {told[0]}, {told[1]} and {pages} of calls were looked at.")
        if found.holds and not anchors:
            show.line(
                "Whether its end was cut off, only an anchor from elsewhere can tell: "
                "toolgate audit anchor"
            )
    if not found.holds:
        raise typer.Exit(1)


@app.command()
def export(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = "",
    json: Json = False,
) -> None:
    """Write records and seals as JSON lines, enough for others to verify."""

    lines: list[str] = []

    def take(row: dict[str, Any]) -> None:
        # ASCII: no reader takes a sign in a name for the end of a line.
        lines.append(json_text.dumps(row, separators=(",", ":")))
        if len(lines) >= _TOGETHER:
            show.line("\n".join(lines))
            lines.clear()

    async def work(trail: Trail) -> None:
        await trail.export(tenant or None, take)

    _on_store(Place(config, url, key_file), work, json=json)
    if lines:
        show.line("\n".join(lines))


def _told(details: dict[str, Any]) -> str:
    """What a reader looks for first stands first; what is empty is left out."""
    first = {name: details[name] for name in _FIRST if details.get(name)}
    rest = {name: value for name, value in details.items() if name not in first and value != ""}
    return orjson.dumps(first | rest).decode()


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CELL else f"{text[:_MOST_CELL]}…"


def _on_store(place: Place, work: Callable[[Trail], Awaitable[T]], *, json: bool) -> T:
    """A proof does not rest on what a server says of itself."""

    async def run() -> T:
        async with audit_trail(load(place.config)) as trail:
            return await work(trail)

    return at_place(place, run, None, json=json)
