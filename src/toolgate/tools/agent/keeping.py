"""What becomes of an appointment that has run: when it comes next, and what its agent is told."""

import msgspec

from toolgate.tools.agent.appointment import Appointment
from toolgate.tools.agent.inbox import Inbox
from toolgate.tools.agent.notice import to
from toolgate.tools.agent.telling import tell
from toolgate.tools.means import Means

_SECOND = 1_000_000_000
# How long a node that does not come back holds one; one that is there holds it again before.
HOLD = 300 * _SECOND
_AGAIN = 30 * _SECOND
# How often it is looked whether a person has agreed.
WAIT = 60 * _SECOND
_MOST_TRIES = 5
_MOST_REFUSALS = 5
_MOST_KEPT = 300


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`refused`: nothing ran. `retryable`: it may be let through a little later. `is_running`:
    another node is at it, and has yet to tell what came of it.
    """

    status: str
    text: str = ""
    call_id: str = ""
    retryable: bool = False
    is_running: bool = False

    @property
    def waits(self) -> bool:
        """Whether a person has to agree first: it is asked for again until one has decided."""
        return self.status == "pending_approval"

    def is_late(self, one: Appointment) -> bool:
        """Whether it is tried again, and nobody has to know yet."""
        return self.is_running or (self.retryable and one.tries < _MOST_TRIES)


def held(one: Appointment, now_ns: int) -> Appointment:
    """By one node, for a while."""
    return msgspec.structs.replace(one, held_ns=now_ns + HOLD)


def moved(one: Appointment, outcome: Outcome, now_ns: int) -> Appointment | None:
    """As it stands afterwards; nothing where it was the last time."""
    if outcome.is_late(one):
        tries = one.tries + (not outcome.is_running)
        return msgspec.structs.replace(one, held_ns=now_ns + _AGAIN, tries=tries)
    if outcome.waits:
        return msgspec.structs.replace(one, held_ns=now_ns + WAIT)
    following = one.schedule.after(now_ns) if one.schedule.repeats else None
    refusals = one.refusals + 1 if outcome.status == "refused" else 0
    if following is None or refusals >= _MOST_REFUSALS:
        return None
    return msgspec.structs.replace(
        one,
        next_ns=following,
        held_ns=0,
        runs=one.runs + 1,
        tries=0,
        refusals=refusals,
        last_ns=now_ns,
        last=f"{outcome.status}: {outcome.text}"[:_MOST_KEPT],
    )


async def kept(means: Means, one: Appointment, outcome: Outcome, *, is_over: bool) -> None:
    """Told to the agent. What went well is in its inbox; all else is sent out too."""
    if outcome.is_late(one):
        return
    inbox = Inbox(means.shelf, one.caller)
    # What waits is told once, and once more when it is over.
    state = "-waits" if outcome.waits else ""
    name = f"note_{one.next_ns:x}{one.id.removeprefix('task_')}{state}"
    text = f"Scheduled ({one.written}): {one.task.shown[:200]}\n{outcome.status}: {outcome.text}"
    if is_over and one.schedule.repeats:
        text += "\nIt was refused again and again, and is no longer scheduled."
    is_reminder = not one.task.tool and outcome.status == "success"
    notice = to(
        one.caller,
        name,
        "scheduled",
        outcome.text if is_reminder else text,
        tool=one.task.tool,
        call_id=outcome.call_id,
    )
    if not is_reminder and outcome.status == "success":
        await inbox.put(notice)
    elif not outcome.waits or await inbox.put(notice):
        await tell(means, one.caller, notice)
