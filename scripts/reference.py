"""Writes what the documentation says about the code from the code, and examples from their files.

`python -m scripts.reference` writes; with `--check` it says what is out of date and exits with 1.
Generated pages stand whole; examples stand in hand-written pages between markers:

    <!-- file: examples/first_call.py -->   the file's text
    <!-- output: examples/first_call.py --> what it printed when it was last run (a test compares)
"""

import inspect
import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, cast, get_args, get_origin

import typer.main
from pydantic.fields import FieldInfo
from typer.testing import CliRunner

import toolgate
from toolgate import codes, errors
from toolgate.catalog.catalog import Catalog
from toolgate.cli.main import COMMANDS, app
from toolgate.errors import ApprovalPending, CallFailed, Superseded, ToolgateError
from toolgate.executor.aftercare.report import Report
from toolgate.executor.aftercare.settling import Settling
from toolgate.executor.limits.usage import Usage
from toolgate.executor.people.bus import Subscription
from toolgate.executor.people.desk import Desk
from toolgate.gate.decision import Explanation
from toolgate.ledger.journal import Journal
from toolgate.queue.schema import schemas
from toolgate.server.admin.routes import ROUTES
from toolgate.server.problems import STATUS, WIRE
from toolgate.settings.part import Part
from toolgate.settings.settings import SECTIONS
from toolgate.spec.fields import FIELDS
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy
from toolgate.toolbox import Toolbox
from toolgate.tools.table import table

ROOMS: dict[str, type] = {
    "gate.tenancy": Tenancy,
    "gate.catalog": Catalog,
    "gate.journal": Journal,
    "gate.toolbox(…)": Toolbox,
    "gate.explain(…)": Explanation,
    "gate.undo(…)": Report,
    "gate.settling": Settling,
    "gate.approvals": Desk,
    "gate.usage": Usage,
    "gate.events(…)": Subscription,
}
# What a caller gets as an answer instead of an error.
OUTPUTS = (CallFailed, ApprovalPending, Superseded)
ROOT = Path(__file__).parent.parent
_MARKED = re.compile(r"(<!-- (file|output): (\S+) -->\n)```(\w*)\n.*?```\n", re.DOTALL)
_NOTE = "<!-- Written by `make docs` from the code. Do not edit. -->\n\n"


def main() -> int:
    """Write or check every page."""
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__)
        return 2
    stale: list[str] = []
    for path, text in pages().items():
        file = ROOT / path
        if file.exists() and file.read_text("utf-8") == text:
            continue
        stale.append(path)
        if not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    if stale and check:
        print("out of date, run `make docs`:", *stale)
        return 1
    return 0


def pages() -> dict[str, str]:
    """Every page that depends on the code, whole."""
    found = {
        "docs/reference/settings.md": settings(),
        "docs/reference/tool-files.md": tool_files(),
        "docs/reference/command-line.md": command_line(),
        "docs/reference/python.md": python(),
        "docs/reference/built-in-tools.md": built_in_tools(),
        "docs/reference/admin-routes.md": admin_routes(),
        "docs/errors.md": error_codes(),
        **{f"docs/reference/queue/{name}.json": text for name, text in schemas().items()},
    }
    written = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for file in written:
        path = file.relative_to(ROOT).as_posix()
        if path not in found:
            found[path] = _MARKED.sub(_filled, file.read_text("utf-8"))
    return found


def _filled(match: re.Match[str]) -> str:
    marker, kind, path, language = match.groups()
    source = ROOT / path if kind == "file" else (ROOT / path).with_suffix(".out")
    return f"{marker}```{language}\n{source.read_text('utf-8').rstrip()}\n```\n"


def settings() -> str:
    """Every key of toolgate.toml."""
    lines = [f"# Settings\n\n{_NOTE}"]
    lines.append(
        "`toolgate.toml`, or the environment: `TOOLGATE_SERVER__PORT=8800` sets `[server] port`; "
        "a list is separated by commas. An unknown key or a wrong value stops the start with its "
        "file, its line and the nearest valid name.\n"
    )
    for name, section in SECTIONS.items():
        lines.extend(_section(name, section))
    return "".join(lines)


def _section(name: str, section: type[Part]) -> Iterator[str]:
    """The keys of a section, then the sections inside of it."""
    fields = section.model_fields.items()
    inner = {key: part for key, field in fields if (part := _part(field)) is not None}
    if len(inner) < len(section.model_fields):
        yield f"\n## [{name}]\n\n{inspect.getdoc(section)}\n\n"
        yield "| key | default | meaning |\n|---|---|---|\n"
        for key, field in fields:
            if key not in inner:
                yield f"| `{key}` | `{_default(field)}` | {field.description} |\n"
    for key, (part, any_name) in inner.items():
        yield from _section(f"{name}.{key}{'.NAME' if any_name else ''}", part)


def _part(field: FieldInfo) -> tuple[type[Part], bool] | None:
    """The section that a key is, and whether there can be any number of them."""
    kind: Any = field.annotation
    any_name = get_origin(kind) is Mapping
    kind = get_args(kind)[1] if any_name else kind
    return (kind, any_name) if isinstance(kind, type) and issubclass(kind, Part) else None


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value: Any = field.get_default(call_default_factory=True)
    if isinstance(value, tuple):
        listed = ", ".join(f'"{one}"' for one in cast("tuple[str, ...]", value))
        return f"[{listed}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def tool_files() -> str:
    """Every field of a tool file."""
    lines = [f"# Tool files\n\n{_NOTE}"]
    lines.append(
        "A YAML or JSON file with one key, `tools`, and a list. These are the fields of the native "
        "layout. Two other layouts are read as well: `tool_type` / `implementation_config` / "
        "`metadata`, and `category` / `parameters` / `side_effects` / `destructive`.\n\n"
        "All problems of all files are told at once, each with file, line, tool, field and what to "
        "write instead; nothing is loaded until there are none.\n\n"
        "| field | meaning | default | example |\n|---|---|---|---|\n"
    )
    defaults = dict(zip(ToolSpec.__struct_fields__[1:], ToolSpec.__struct_defaults__, strict=True))
    for name, field in FIELDS.items():
        default = _shown(defaults.get(name)) if name != "name" else "required"
        example = field.example.replace("|", "\\|")
        lines.append(f"| `{name}` | {field.about} | {default} | `{example}` |\n")
    return "".join(lines)


def _shown(value: Any) -> str:
    if value in ("", (), None):
        return "none"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, tuple):
        return f"`[{', '.join(str(one) for one in value)}]`"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, str):
        return f"`{value}`"
    return "no arguments" if "additionalProperties" in repr(value) else "none"


def command_line() -> str:
    """The help of every command."""
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    lines = [f"# Command line\n\n{_NOTE}"]
    lines.append(
        "Every command has `--json`. Exit codes: 0 done, 1 refused or failed, 2 wrong usage. "
        "Tables on a terminal, plain text in a pipe.\n"
    )
    for arguments in _commands():
        shown = " ".join(("toolgate", *arguments))
        told = runner.invoke(app, [*arguments, "--help"]).output
        text = "\n".join(line.rstrip() for line in told.strip().splitlines())
        lines.append(f"\n## {shown}\n\n```text\n{text}\n```\n")
    return "".join(lines)


def _commands() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, entry in COMMANDS.items():
        module = __import__(entry.module, fromlist=["app"])
        command = typer.main.get_command(module.app)
        inner = getattr(command, "commands", None)
        found.extend([(name, sub) for sub in inner] if inner else [(name,)])
    return found


def python() -> str:
    """The public names."""
    lines = [f"# Python\n\n{_NOTE}`from toolgate import …`: these names are promises.\n"]
    for name in toolgate.__all__:
        value = getattr(toolgate, name)
        lines.append(f"\n## {name}\n\n{inspect.getdoc(value)}\n")
        if hasattr(value, "__struct_fields__"):
            lines.append(f"\nFields: {', '.join(f'`{one}`' for one in value.__struct_fields__)}.\n")
        if inspect.isclass(value) and issubclass(value, IntEnum):
            lines.append(f"\n{', '.join(f'`{one.name}` {one.value}' for one in value)}.\n")
        for member, function in _methods(value):
            lines.append(f"\n- `{member}{_signature(function)}`: {_first_line(function)}\n")
    lines.append("\n# The rooms behind it\n\nFor operators; they grow with the house.\n")
    for name, value in ROOMS.items():
        lines.append(f"\n## {name}\n\n{inspect.getdoc(value)}\n")
        for member, function in _methods(value):
            lines.append(f"\n- `{member}{_signature(function)}`: {_first_line(function)}\n")
    return "".join(lines)


def _methods(value: Any) -> list[tuple[str, Any]]:
    if not inspect.isclass(value) or issubclass(value, Exception):
        return []
    return [
        (name, member)
        for name, member in inspect.getmembers(value, inspect.isroutine)
        if not name.startswith("_") and inspect.getdoc(member) and _ours(member)
    ]


def _ours(member: Any) -> bool:
    return str(getattr(member, "__module__", "")).startswith("toolgate")


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in {"self", "cls"}
    ]
    return re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", str(inspect.Signature(parameters)))


def _first_line(function: Any) -> str:
    return (inspect.getdoc(function) or "").splitlines()[0]


def built_in_tools() -> str:
    """The default catalog."""
    lines = [f"# Built-in tools\n\n{_NOTE}"]
    lines.append(
        "They are in the catalog from the first start; `[tools] builtin` says which. One that "
        "lacks its extra is shown as unusable, with the line that installs it. A category's page "
        "has each tool's arguments, and calls with their answers.\n"
    )
    rows = sorted(table().values(), key=lambda row: (row.category, row.name))
    for category, some in itertools.groupby(rows, lambda row: row.category):
        lines.append(f"\n## [{category}](tools/{category}.md)\n\n")
        lines.append("| tool | what it does | effect | extra |\n|---|---|---|---|\n")
        for row in some:
            tool = row.definition
            extra = f"`{row.extra}`" if row.extra else "-"
            lines.append(f"| `{row.name}` | {tool['description']} | {tool['effect']} | {extra} |\n")
    return "".join(lines)


def admin_routes() -> str:
    """Every route of `/v1/admin/`."""
    lines = [f"# Admin routes\n\n{_NOTE}"]
    lines.append(
        "Below `/v1/admin/`, for the key of an admin or of a tenant's admin, who means no other "
        "tenant than their own and need not name it. A change takes its fields from the body, a "
        "JSON object, or texts from the query; a field that is not listed is refused. `why` is the "
        "reason that the audit shows beside the key's id. Without `tenant`, an admin means "
        "everyone where that can be meant.\n\n"
        "| route | fields | for |\n|---|---|---|\n"
    )
    for methods in ROUTES.values():
        for route in methods.values():
            text = " ".join((inspect.getdoc(route.answer) or "").split()).removesuffix(".")
            fields = ", ".join(f"`{name}`" for name in route.fields.__struct_fields__) or "-"
            whom = "admins" if route.house else "admins, a tenant's admin"
            lines.append(f"| {text} | {fields} | {whom} |\n")
    return "".join(lines)


def error_codes() -> str:
    """Every error: its code, where it shows, what it means."""
    tree = (errors.__doc__ or "").split("\n\n")[1]
    lines = [f"# Errors\n\n{_NOTE}"]
    lines.append(
        "One tree. A refusal (`CallRefused`) is raised: nothing ran. A tool's own failure "
        "(`CallFailed`), and a call that waits (`approval_pending`, `superseded`), is an Output "
        "with `ok: false`, and HTTP 200. Codes are stable.\n\n"
        f"```text\n{inspect.cleandoc(tree)}\n```\n\n"
        "| code | HTTP | retry can help | what it means, what to do |\n|---|---|---|---|\n"
    )
    lines.extend(
        f"| `{kind.code}` | {200 if issubclass(kind, OUTPUTS) else STATUS[kind]} | "
        f"{'yes' if kind.retryable else 'no'} | {_first_line(kind)} |\n"
        for kind in STATUS
        if kind is not ToolgateError and "code" in vars(kind)
    )
    lines.append(
        "\nThese codes stand in Outputs and on record, and are never raised.\n\n"
        "| code | what it means, what to do |\n|---|---|\n"
    )
    lines.extend(f"| `{code}` | {about} |\n" for code, about in codes.RESULTS.items())
    lines.append(
        "\nThe server has a few more, about the request itself; the command line `wrong_usage`.\n\n"
        "| code | HTTP | what it says |\n|---|---|---|\n"
    )
    lines.extend(f"| `{code}` | {status} | {told} |\n" for code, (status, told) in WIRE.items())
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
