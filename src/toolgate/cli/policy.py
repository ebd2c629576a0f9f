"""`toolgate policy`: check, test, replay and keep policies."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Why, signed
from toolgate.cli.session import Config, Json, ending, load, usage, with_gate
from toolgate.cli.since import is_ago, parse_since
from toolgate.client.reading import Pages
from toolgate.engines.cases import Result
from toolgate.errors import InvalidPolicy, InvalidRequest
from toolgate.gate.replay import replay
from toolgate.policies import Checked, check_policy, policy_at, run_cases, texts_at
from toolgate.server.admin.replay import shown

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Check, test and replay policies."
)
At = Annotated[
    Path | None,
    typer.Option("--path", help="A folder with policies; without it, the one in the settings."),
]
Name = Annotated[str, typer.Argument(help="The module's name.")]
_WORDS = {True: "allow", False: "deny"}


@app.command()
def check(path: At = None, config: Config = None, json: Json = False) -> None:
    """Read the policies as the gate would, and say what is wrong with them."""
    found = Checked()
    with ending(json=json):
        found = check_policy(load(config), path)
    if json:
        show.as_json(msgspec.to_builtins(found))
    else:
        _tell_checked(found)
    if found.problems:
        raise typer.Exit(1)


@app.command("test")
def run_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="YAML files with cases; without any, cases.yaml and *_cases.yaml in the folder.",
        ),
    ] = None,
    path: At = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Run YAML cases against the policies."""
    results: list[Result] = []
    with ending(json=json):
        results = asyncio.run(run_cases(load(config), path, files or []))
    failed = [result for result in results if not result.ok]
    if json:
        show.as_json([msgspec.to_builtins(result) for result in results])
    else:
        _tell_results(results)
    if failed or not results:
        raise typer.Exit(1)


@app.command("replay")
def replay_(
    since: Annotated[
        str, typer.Option("--since", help="From when: 90m, 24h, 7d, or a moment.")
    ] = "24h",
    path: At = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Only decisions of this tenant.")] = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    json: Json = False,
) -> None:
    """Ask a changed policy about recorded decisions, and show which calls would flip."""
    try:
        since_ns = parse_since(since)
    except ValueError as error:
        raise usage(f"--since: {error}.", json=json) from None

    async def work(gate: Toolgate) -> dict[str, Any]:
        policy = policy_at(load(config), path, gate.tenancy.world.everyone.policies)
        decisions = await gate.decisions.since(since_ns, tenant=tenant)
        found = await replay(decisions, policy)
        wanted = {flip.decision.id for flip in found.flips}
        return shown(found, await gate.journal.calls_of(wanted, since_ns))

    async def far(server: Server) -> dict[str, Any]:
        return await _replayed_there(server, path, since_ns=since_ns, tenant=tenant)

    found = with_gate(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(found)
    else:
        _tell_replay(found, since)


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """The modules that are kept in the store."""

    async def work(gate: Toolgate) -> dict[str, str]:
        return dict(gate.tenancy.world.everyone.policies)

    async def far(server: Server) -> dict[str, str]:
        return (await server.get("policies"))["modules"]

    found = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(found)
    else:
        rows = [(name, str(len(text.splitlines()))) for name, text in sorted(found.items())]
        show.table(("module", "lines"), rows)


@app.command()
def put(
    name: Name,
    file: Annotated[Path, typer.Argument(help="The Rego file.")],
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Keep a Rego module in the store, for every node. It is checked with all the others first."""
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise usage(f"{file} cannot be read ({error.strerror}).", json=json) from None
    except UnicodeDecodeError:
        raise usage(f"{file} is not UTF-8 text.", json=json) from None

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).set_policy_module(name, text)

    async def far(server: Server) -> None:
        await server.put("policies", name, text=text, why=why)

    with_gate(Place(config, url, key_file), work, far, json=json)
    show.told({"name": name}, f"Module {name} is kept and counts from now on.", json=json)


@app.command()
def remove(
    name: Name,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Take a module out of the store."""

    async def work(gate: Toolgate) -> None:
        if name not in gate.tenancy.world.everyone.policies:
            raise InvalidRequest(
                f"There is no module {name[:80]!r} in the store; nothing was changed. "
                "See which there are: toolgate policy list"
            )
        await signed(gate, why).set_policy_module(name, None)

    async def far(server: Server) -> None:
        await server.delete("policies", name, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    show.told({"name": name, "removed": True}, f"Module {name} is gone.", json=json)


def _tell_checked(found: Checked) -> None:
    if found.problems:
        show.line(InvalidPolicy(found.problems).message)
        return
    files, data = show.count(found.files, "Rego file"), show.count(found.documents, "data file")
    show.line(f"The policy is fine: {files} and {data}, revision {found.revision}.")
    if found.reads:
        parts = ", ".join(sorted(found.reads))
        show.line(f"It reads {parts} of each call, so that each call is decided by itself.")
    else:
        show.line("It reads nothing of a single call, so that its decisions are remembered.")


def _tell_results(results: list[Result]) -> None:
    for result in results:
        if not result.ok:
            show.line(f"FAIL  {result.note}: {_difference(result)}")
    good = sum(result.ok for result in results)
    if results:
        show.line(f"{good} of {show.count(len(results), 'case')} passed.")
    else:
        show.line("There are no cases. Write some: docs/how-to/write-a-policy.md")


def _difference(result: Result) -> str:
    reasons = "; ".join(result.reasons) or "the policy gives no reason"
    if result.got is result.want:
        return f"refused for another reason: {reasons}"
    why = "" if result.got else f" ({reasons})"
    return f"wanted {_WORDS[result.want]}, got {_WORDS[result.got]}{why}"


async def _replayed_there(server: Server, path: Path | None, **asked: Any) -> dict[str, Any]:
    """Only the files go there. Without a folder, the server's own is read there as it stands."""
    if path is not None:
        asked["files"] = texts_at(path)
    found: dict[str, Any] = {"asked": 0, "flips": [], "untold": []}
    cursor, known = "", Pages()
    while True:
        page = await server.post("replay", cursor=cursor, **asked)
        found = {name: part + page[name] for name, part in found.items()}
        cursor = known.following(page)
        if not cursor:
            return found


def _tell_replay(found: dict[str, Any], since: str) -> None:
    rows = found["flips"]
    if rows:
        show.table(
            ("when", "tool", "tenant", "agent", "user", "was", "now", "calls", "why"),
            [
                (
                    row["at"],
                    row["tool"],
                    row["tenant"],
                    row["caller"]["agent"],
                    row["caller"]["user"],
                    row["was"] + (", only observed" if row["observed"] else ""),
                    row["now"],
                    ", ".join(row["calls"]) or "-",
                    "; ".join(row["reasons"]),
                )
                for row in rows
            ],
        )
    told = f"{since} ago" if is_ago(since) else since
    show.line(f"{len(rows)} of {show.count(found['asked'], 'decision')} since {told} would flip.")
    if untold := found["untold"]:
        missing = sorted({part for one in untold for part in one["missing"]})
        show.line(
            f"{show.count(len(untold), 'decision')} cannot be asked again: the policy reads "
            f"{', '.join(missing)}, which was not recorded. Set [policy] record_calls = true."
        )
