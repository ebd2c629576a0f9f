"""`toolgate audit`: what is on record, and the proof of it."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
import orjson
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import Far, KeyFile, Place, Server, Url
from toolgate.cli.session import Config, Json, at_place, load, usage
from toolgate.storage import audit_trail
from toolgate.tenancy.audit import Anchor, Mark, Proof, Trail

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

    async def far(server: Server) -> list[Anchor]:
        told = await server.get("audit/anchors", tenant=tenant)
        return msgspec.convert(told["anchors"], list[Anchor])

    found = _on_trail(Place(config, url, key_file), work, far, json=json)
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

    async def far(server: Server) -> Proof:
        told = await server.post("audit/verify", tenant=tenant, anchors=anchors or [])
        return msgspec.convert(told, Proof)

    place = Place(config, url, key_file)
    found = _on_trail(place, work, far, json=json)
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
        if found.holds and place.is_far:
            show.line(
                "That is the server's own word. What it exports can be verified without it: "
                "toolgate audit export"
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

    async def work(trail: Trail) -> None:
        following: Mark | None = None
        while True:
            lines, following = await trail.export(tenant or None, following, most=_TOGETHER)
            _put(lines)
            if following is None:
                return

    async def far(server: Server) -> None:
        async for page in server.pages("audit/export", tenant=tenant, limit=_TOGETHER):
            _put(page["lines"])

    _on_trail(Place(config, url, key_file), work, far, json=json)


def _told(details: dict[str, Any]) -> str:
    """What a reader looks for first stands first; what is empty is left out."""
    first = {name: details[name] for name in _FIRST if details.get(name)}
    rest = {name: value for name, value in details.items() if name not in first and value != ""}
    return orjson.dumps(first | rest).decode()


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CELL else f"{text[:_MOST_CELL]}…"


def _put(lines: Sequence[str]) -> None:
    if lines:
        show.line("\n".join(lines))


def _on_trail(place: Place, work: Callable[[Trail], Awaitable[T]], far: Far[T], *, json: bool) -> T:
    async def run() -> T:
        async with audit_trail(load(place.config)) as trail:
            return await work(trail)

    return at_place(place, run, far, json=json)
