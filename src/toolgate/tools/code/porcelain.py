"""What `git status --porcelain=v2 -z` says, as a value."""

from collections.abc import Iterator
from typing import Any

MOST = 1_000
_CHANGES = {
    "M": "modified",
    "T": "type_changed",
    "A": "added",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "U": "unmerged",
}
# How many fields stand before the path.
_FIELDS = {"1": 8, "2": 9, "u": 10}


def status(raw: bytes) -> dict[str, Any]:
    """Branch and files; at most so many of each kind."""
    lines = iter(raw.decode("utf-8", "replace").split("\0"))
    told: dict[str, Any] = {
        "branch": None,
        "commit": None,
        "upstream": None,
        "ahead": None,
        "behind": None,
        "doing": next(lines, "") or None,
    }
    files: dict[str, list[Any]] = {"staged": [], "changed": [], "conflicts": [], "untracked": []}
    for line in lines:
        mark, _, rest = line.partition(" ")
        if mark == "#":
            _header(told, rest)
        elif mark == "?":
            files["untracked"].append(rest)
        elif mark in _FIELDS:
            _file(files, mark, rest.split(" ", _FIELDS[mark] - 1), lines)
    told["clean"] = not any(files.values())
    told["counts"] = {kind: len(some) for kind, some in files.items()}
    told["truncated"] = any(len(some) > MOST for some in files.values())
    return told | {kind: some[:MOST] for kind, some in files.items()}


def _header(told: dict[str, Any], rest: str) -> None:
    name, _, value = rest.partition(" ")
    if name == "branch.head":
        told["branch"] = None if value == "(detached)" else value
    elif name == "branch.oid":
        told["commit"] = None if value == "(initial)" else value
    elif name == "branch.upstream":
        told["upstream"] = value
    elif name == "branch.ab":
        ahead, _, behind = value.partition(" ")
        told["ahead"], told["behind"] = abs(int(ahead)), abs(int(behind))


def _file(files: dict[str, list[Any]], mark: str, fields: list[str], lines: Iterator[str]) -> None:
    here, there = fields[0][:1], fields[0][1:2]
    path = fields[-1]
    before = next(lines, "") if mark == "2" else None
    if mark == "u":
        files["conflicts"].append({"path": path, "change": fields[0]})
        return
    for kind, letter in (("staged", here), ("changed", there)):
        if letter != ".":
            entry = {"path": path, "change": _CHANGES.get(letter, letter)}
            if letter in "RC" and before is not None:
                entry["from"] = before
            files[kind].append(entry)
