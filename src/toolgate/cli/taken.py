"""What came of an import, told: the tools, what changed, what to set, and what was left out."""

from collections.abc import Sequence
from typing import NamedTuple

from toolgate.cli import show
from toolgate.cli.far import Place
from toolgate.importing import Imported

_SHOWN = 20


class Taken(NamedTuple):
    """What came of it. `file` is empty where nothing was written."""

    found: Imported
    file: str = ""
    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    # Of those two: older and newer names of the same request.
    renamed: Sequence[tuple[str, str]] = ()
    unusable: Sequence[str] = ()
    # What it is imported again by.
    again: str = ""
    # The options of the last import, where those were others.
    last: str = ""


def tell(taken: Taken, *, json: bool, place: Place) -> None:
    """What came of an import: the tools, what changed, what to set, and what was left out.

    `place`: where it was brought to, so that the same again goes there too.
    """
    found = taken.found
    if json:
        show.as_json(_row(taken))
        return
    if taken.file:
        many = show.count(len(found.tools), "tool")
        moved = f"{len(taken.added)} new, {len(taken.changed)} changed, {len(taken.removed)} gone"
        show.line(f"{taken.file} has {many}: {moved}.")
        for word in ("changed", "removed"):
            names = getattr(taken, word)
            if names:
                show.line(f"{word}: {_some(names)}")
        if taken.renamed:
            pairs = [f"{older} is {newer} now" for older, newer in taken.renamed]
            show.line(f"renamed: {_some(pairs)}; who may use them is said by the older names")
    else:
        columns = ["name", "effect", "request", "description"]
        rows = [
            [
                tool["name"],
                str(tool["effect"]),
                f"{tool['config']['method']} {tool['config']['path']}",
                tool.get("description", "")[:60],
            ]
            for tool in found.tools
        ]
        show.table(columns, rows)
    _tell_rest(taken)
    if taken.again:
        again = f"--again {taken.again}{place.typed}"
        show.line(f"The same again: toolgate tools import openapi {again}")


def tell_tags(taken: Taken, *, json: bool) -> None:
    """The tags of a document, most used first."""
    tags = sorted(taken.found.tags.items(), key=lambda one: -one[1])
    if json:
        show.as_json({"tags": dict(tags)})
    elif tags:
        show.table(["tag", "operations"], [[tag, str(count)] for tag, count in tags])
    else:
        show.line("The document has no tags: choose by --path, --method or --operation.")


def _tell_rest(taken: Taken) -> None:
    found = taken.found
    for note in found.notes:
        if note.grave:
            show.warning(f"{note.message} ({_some(note.where)})")
    for secret in found.secrets:
        hosts = ", ".join(f'"{host}"' for host in secret.hosts[:10])
        show.line(f"Its tools need a secret, {secret.about}; set it in the settings:")
        show.line(f"  [providers.http.secrets.{secret.name}]")
        show.line(f'  value_env = "{secret.name.upper()}"')
        show.line(f"  hosts = [{hosts}]")
    reasons: dict[str, list[str]] = {}
    for one in found.skipped:
        reasons.setdefault(one.reason, []).append(one.operation)
    if reasons:
        show.line(f"{show.count(len(found.skipped), 'operation')} left out:")
        rows = [[str(len(where)), reason, where[0]] for reason, where in reasons.items()]
        show.table(["count", "reason", "such as"], rows[:_SHOWN])
    notes = [note for note in found.notes if not note.grave]
    for note in notes[:_SHOWN]:
        show.line(f"{note.message} ({_some(note.where)})")
    if len(notes) > _SHOWN or len(reasons) > _SHOWN:
        show.line("There is more: --json tells all of it.")
    if taken.unusable:
        told = taken.unusable[0]
        more = f" So do {len(taken.unusable) - 1:,} others." if taken.unusable[1:] else ""
        show.line(told + more)
    if taken.last:
        show.line(f"The last import had other options: {taken.last}")
        show.line("They no longer hold: to have them again, run this command with them added.")


def _row(taken: Taken) -> dict[str, object]:
    found = taken.found
    return {
        "title": found.title,
        "version": found.version,
        "operations": found.operations,
        "file": taken.file,
        "tools": [tool["name"] for tool in found.tools],
        "added": taken.added,
        "changed": taken.changed,
        "removed": taken.removed,
        "renamed": [{"from": older, "to": newer} for older, newer in taken.renamed],
        "skipped": [{"operation": one.operation, "reason": one.reason} for one in found.skipped],
        "notes": [
            {"message": one.message, "where": one.where, "grave": one.grave} for one in found.notes
        ],
        "tags": found.tags,
        "secrets": [
            {"name": one.name, "about": one.about, "hosts": one.hosts} for one in found.secrets
        ],
        "unusable": taken.unusable,
        "again": taken.again,
        "last": taken.last,
    }


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"
