"""What a look at one part found: fine, or what is wrong and what to do."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from toolgate.cli import show
from toolgate.gate.policy import Health

ENGINES: Mapping[str, str] = {
    "rego": "policy",
    "opa": "policy",
    "store": "relations",
    "spicedb": "relations",
    "redis": "cache",
}


_LATER = "not part of this version"
# Which has the built-in tools also where there is no database yet.
_SAID: Mapping[str, str] = {"database": "built-in and store"}


class Finding(NamedTuple):
    """One part: its name, whether it is fine, and the sentence."""

    part: str
    fine: bool
    says: str


def of_engine(health: Health) -> Finding:
    """How a policy or relations engine is."""
    part = ENGINES.get(health.engine, "engine")
    says = f"{health.engine}: "
    if not health.ok:
        kept = "; the last good policy stays" if part == "policy" and health.serves else ""
        says += f"{' '.join(health.problem.split())}{kept}"
    else:
        says += f"revision {health.revision}" if health.revision else "answers"
    return Finding(part, health.ok, says)


def of_sources(rows: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Where tools come from."""
    return [
        Finding(
            "source",
            row["ok"],
            f"{_SAID.get(row['source'], row['source'])}: "
            f"{' '.join(row['problem'].split()) or _tools(row['tools'])}",
        )
        for row in rows
    ]


def of_tools(ready: int, *, missing: int = 0, extras: str = "", waiting: int = 0) -> str:
    """How many can run. `missing`: built-in tools that lack something, which `extras` bring, or
    else another version; `waiting`: those that wait for a sandbox.
    """
    told = f"{ready:,} can run"
    if missing:
        lacks = f'not installed (make install EXTRAS="{extras}")' if extras else _LATER
        told += f", {show.count(missing, 'built-in')} {lacks}"
    if waiting:
        told += f", {show.count(waiting, 'built-in')} without a sandbox"
    return told


def of_plugin(row: Mapping[str, Any]) -> Finding:
    """How a plugin is; one that is switched off is as it should be."""
    name, problem = row["name"], " ".join(row["problem"].split())
    version = f" {row['version']}" if row["version"] else ""
    if row["state"] == "off":
        return Finding("plugin", True, f"{name}{version}: switched off")
    return Finding("plugin", not problem, f"{name}{version}: {problem or _tools(row['tools'])}")


def of_server(row: Mapping[str, Any]) -> Finding:
    """How an MCP server was when it was asked."""
    name, problem = row["name"], " ".join(row["problem"].split())
    if not row["ok"] or not problem:
        said = " ".join(row["server"].values())
        answers = f"answers{f' ({said})' if said else ''}; {_tools(row['tools'])}"
        return Finding("mcp server", not problem, f"{name}: {problem or answers}")
    look = f"; look at it: toolgate servers diff {name}" if row["held"] else ""
    return Finding("mcp server", False, f"{name}: answers, but {problem}{look}")


def of_listed(row: Mapping[str, Any]) -> Finding:
    """How an MCP server is, by the list of the house that uses it."""
    if row["state"] == "off":
        return Finding("mcp server", True, f"{row['name']}: switched off")
    answers = row["state"] == "up"
    problem = row["problem"] or ("" if answers else "does not answer")
    return of_server({**row, "ok": answers, "problem": problem, "server": {}})


def of_parts(parts: Mapping[str, str], tenants: str) -> list[Finding]:
    """What a house depends on, as it says itself; its engines tell more of themselves."""
    others = {name: state == "ok" for name, state in parts.items() if name not in ENGINES}
    others["store"] = parts["store"] == "ok"
    says = {True: "answers the server", False: "does not answer the server; look at its log"}
    return [
        Finding(name, fine, f"{says[fine]}; {tenants}" if name == "store" else says[fine])
        for name, fine in others.items()
    ]


def _tools(number: int) -> str:
    return f"{number:,} tool" if number == 1 else f"{number:,} tools"
