"""Calls that failed, with their errors, and what the agent did after each."""

from collections.abc import Sequence

from toolgate import clock
from toolgate.caller import Caller
from toolgate.ledger.entry import Entry, Whose
from toolgate.ledger.journal import Journal
from toolgate.ledger.state import State
from toolgate.tools.canvas.drawing import Arrow, Card, Graph

_MOST_READ = 1_000
_MOST_SHOWN = 100
_LOST = frozenset({State.FAILED, State.UNKNOWN, State.COMPENSATION_FAILED})
_COLORS = {State.UNKNOWN: "2", State.SUCCEEDED: "4", State.COMPENSATED: "5"}
_RED = "1"
# What looks at failures is not one of them.
_OWN = frozenset({"export_reasoning_canvas", "import_canvas_edits", "list_canvases"})


async def failures(journal: Journal, caller: Caller, session: str) -> Graph:
    """The latest of this agent and its user, oldest first."""
    # What failed a moment ago may still wait to be written.
    await journal.drain()
    whose = Whose(caller.agent, caller.user, session)
    found = await journal.entries(caller.tenant, limit=_MOST_READ, of=whose)
    entries = [entry for entry in reversed(found) if entry.tool not in _OWN]
    places = [at for at, entry in enumerate(entries) if entry.state in _LOST][-_MOST_SHOWN:]
    cards: dict[str, Card] = {}
    arrows: list[Arrow] = []
    for at in places:
        failed = entries[at]
        cards[failed.call_id] = _card(failed, 0)
        for other, label in _followed(entries, at):
            cards.setdefault(other.call_id, _card(other, 0 if other.state in _LOST else 1))
            arrows.append(
                Arrow(begin=_id(failed), end=_id(other), label=label, color=_color(other))
            )
    return Graph("Failures", list(cards.values()), arrows)


def _followed(entries: Sequence[Entry], at: int) -> list[tuple[Entry, str]]:
    """The next call, and the first of the same tool that succeeded."""
    failed = entries[at]
    later = [entry for entry in entries[at + 1 :] if entry.session == failed.session]
    solved = next(
        (one for one in later if one.tool == failed.tool and one.state is State.SUCCEEDED), None
    )
    found = [] if solved is None else [(solved, "solved by")]
    if later and later[0] is not solved:
        found.insert(0, (later[0], "then"))
    return found


def _card(entry: Entry, column: int) -> Card:
    at = clock.moment_of(entry.started_ns).isoformat(timespec="seconds")
    lines = [f"**{entry.tool}** {entry.state}"]
    if entry.state in _LOST:
        lines.append(f"`{entry.error_code}` {entry.error_message}".rstrip())
    lines.append(f"*{at}*")
    return Card(id=_id(entry), text="\n".join(lines), column=column, color=_color(entry))


def _color(entry: Entry) -> str:
    return _RED if entry.state in _LOST - {State.UNKNOWN} else _COLORS.get(entry.state, "")


def _id(entry: Entry) -> str:
    return f"call:{entry.call_id}"
