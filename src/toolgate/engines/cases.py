"""Cases for a policy, as YAML: who calls what, and whether that is to be allowed.

    - note: a guest reads
      caller: {persona: guest}
      tool: {name: get_order, effect: pure}
      want: allow

Every field of `input` has a plain default; see `docs/reference/policy-input.md`.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from toolgate.caller import Action
from toolgate.errors import InvalidPolicy
from toolgate.gate.document import time_document
from toolgate.gate.policy import Policy
from toolgate.spec.effect import Effect
from toolgate.text import document
from toolgate.text.refusal import Refusal

_FIELDS = frozenset({
    "note", "caller", "tool", "args", "history", "time", "context", "persona", "settings",
    "action", "want", "why",
})  # fmt: skip
_CALLER: dict[str, Any] = {
    "tenant": "acme", "agent": "agent", "user": "", "persona": "", "roles": [],
    "session": "session", "delegation": [],
}  # fmt: skip
_TOOL: dict[str, Any] = {
    "name": "", "effect": Effect.IRREVERSIBLE.value, "side_effects": [], "tags": [],
    "category": "", "categories": [], "permissions": [], "provider": "python",
    "destructive": False, "requires_confirmation": False, "requires_approval": False,
    "enabled": True, "source": "file",
}  # fmt: skip
_CONTEXT: dict[str, Any] = {"read_only": False, "no_web": False, "facts": {}}
_ENDS = ("succeeded", "failed", "in_flight", "unknown")
_DONE: dict[str, Any] = {"calls": 0, **dict.fromkeys(_ENDS, 0), "args": {}}
# A Monday, at noon.
_WHEN = "2026-01-05T12:00:00Z"


class PolicyCase(msgspec.Struct, frozen=True, kw_only=True):
    """One question with the answer it should have; `why` is part of one of the reasons."""

    note: str
    document: dict[str, Any]
    want: bool
    why: str = ""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a case came out."""

    note: str
    ok: bool
    got: bool
    want: bool
    reasons: tuple[str, ...] = ()


def read_cases(text: str, file: str) -> list[PolicyCase]:
    """All cases of a file, or `InvalidPolicy` with everything that is wrong with them."""
    try:
        loaded = document.read(text.encode("utf-8", "surrogatepass")).value
    except Refusal as refusal:
        problem = f"{file}:{refusal.line or 1}: it {refusal.message}. {refusal.write}"
        raise InvalidPolicy([problem]) from None
    if not isinstance(loaded, list) or not loaded:
        raise InvalidPolicy([f"{file}:1: cases are a list: - note: …, tool: …, want: allow"])
    cases: list[PolicyCase] = []
    problems: list[str] = []
    notes: set[str] = set()
    for number, given in enumerate(cast("list[Any]", loaded), 1):
        named = cast("dict[str, Any]", given).get("note") if isinstance(given, dict) else None
        note = str(named or f"case {number}")
        try:
            cases.append(_case(given))
        except _WrongCase as wrong:
            problems.append(f"{file}: {note}: {wrong}")
        if note in notes:
            problems.append(f"{file}: {note}: another case has the same note.")
        notes.add(note)
    if problems:
        raise InvalidPolicy(problems)
    return cases


async def run_case(policy: Policy, case: PolicyCase) -> Result:
    """Ask the policy, and compare."""
    got = await policy.allows(case.document)
    reasons = () if got else await policy.reasons(case.document)
    told = not case.why or any(case.why in reason for reason in reasons)
    return Result(
        note=case.note, ok=got is case.want and told, got=got, want=case.want, reasons=reasons
    )


class _WrongCase(Exception):
    """What to write instead."""

    def __str__(self) -> str:
        said = super().__str__()
        return said if said.endswith("?") else f"{said}."


def _case(given: Any) -> PolicyCase:
    fields = _mapping(given, "a case")
    _known(fields, _FIELDS, "a case")
    note, want, why = fields.get("note"), fields.get("want"), fields.get("why", "")
    if type(note) is not str or not note:
        raise _WrongCase("it needs a note of its own")
    if want not in {"allow", "deny"}:
        raise _WrongCase("`want` is allow or deny")
    if type(why) is not str or (why and want == "allow"):
        raise _WrongCase("`why` is part of the reason of a case with want: deny")
    return PolicyCase(note=note, document=_document(fields), want=want == "allow", why=why)


def _document(fields: Mapping[str, Any]) -> dict[str, Any]:
    action = fields.get("action", Action.REQUEST.value)
    if action not in set(Action):
        raise _WrongCase(f"`action` is one of {', '.join(Action)}")
    tool = fields.get("tool")
    named: Any = {"name": tool} if isinstance(tool, str) else tool
    document: dict[str, Any] = {
        "action": action,
        "caller": _filled(fields.get("caller"), _CALLER, "caller"),
        "tool": _filled(named, _TOOL, "tool"),
        "persona": _filled(fields.get("persona"), {"can_add_tools": None}, "persona"),
        "context": _filled(fields.get("context"), _CONTEXT, "context"),
        "time": time_document(_when(fields.get("time", _WHEN))),
        "history": _history(_mapping(fields.get("history"), "history")),
        "settings": _filled(
            fields.get("settings"), {"unlisted_personas_may_add": False}, "settings"
        ),
    }
    if not document["tool"]["name"]:
        raise _WrongCase("it needs a tool: a name, or {name: …, effect: …}")
    if action == Action.REQUEST:
        document["args"] = _mapping(fields.get("args"), "args")
    return document


def _when(given: Any) -> datetime:
    try:
        at = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise _WrongCase(f"`time` is a moment such as {_WHEN}") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _history(given: dict[str, Any]) -> dict[str, Any]:
    _known(given, ("session", "turn"), "history")
    return {
        part: _done(_mapping(given.get(part), f"history.{part}")) for part in ("session", "turn")
    }


def _done(given: dict[str, Any]) -> dict[str, Any]:
    """Tool by tool; how many calls there were follows from how they ended."""
    tools: dict[str, dict[str, Any]] = {}
    for name, record in given.items():
        tools[name] = _filled(record, _DONE, f"history of {name}")
        ended = sum(tools[name][key] for key in _ENDS)
        tools[name]["calls"] = max(tools[name]["calls"], ended)
    return {"calls": sum(done["calls"] for done in tools.values()), "tools": tools}


def _mapping(given: Any, what: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict) or any(type(key) is not str for key in _keys(given)):
        raise _WrongCase(f"{what} is a mapping with texts as keys")
    return cast("dict[str, Any]", given)


def _keys(given: Any) -> Iterator[Any]:
    yield from given


def _filled(given: Any, defaults: dict[str, Any], what: str) -> dict[str, Any]:
    fields = _mapping(given, what)
    _known(fields, defaults, what)
    return {**defaults, **fields}


def _known(fields: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    names = sorted(known)
    for name in fields:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
            raise _WrongCase(f"{name!r} is no field of {what}; {hint}")
