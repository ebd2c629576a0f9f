"""`scheduler`: has a call made, or the agent told something, at a later time."""

from typing import Any

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError, ToolNotFound
from toolgate.spec.secret import without_secrets
from toolgate.tools.agent.appointment import Appointment, read_task
from toolgate.tools.agent.diary import Diary
from toolgate.tools.agent.schedule import HOW, read_schedule
from toolgate.tools.means import Means


async def scheduler(means: Means, call: Call, *, task: str, schedule: str) -> dict[str, Any]:
    """Note it. What may be called is decided when it runs, and looked at now."""
    now_ns, caller = clock.unix_ns(), call.caller
    when, what = read_schedule(schedule, now_ns), read_task(task)
    if what.tool == call.spec.name:
        raise ToolError("What is scheduled does not schedule. Name the tool that is to be called.")
    if what.tool:
        try:
            spec = await means.may()(caller, what.tool)
        except ToolNotFound:
            raise ToolError(
                f"There is no tool {what.tool[:64]!r} that you may call. Nothing was scheduled: "
                "list the tools to see which there are."
            ) from None
        # What waits is kept as it is, and told when it has run.
        if without_secrets(spec.input_schema.raw, what.args) != what.args:
            raise ToolError(
                f"{what.tool!r} was given a secret, and what is scheduled is kept in the open. "
                "Nothing was scheduled: an operator gives the tool its secret in the settings."
            )
    next_ns = when.after(now_ns)
    if next_ns is None:
        raise ToolError(f"That time does not come. {HOW}")
    if caller.until_ns and next_ns > caller.until_ns:
        raise ToolError(
            "What you came by ends before that time, and so would what is scheduled. Take an "
            "earlier time, or call with a key."
        )
    appointment = Appointment(
        id=f"task_{call.id.removeprefix('call_')}",
        task=what,
        schedule=when,
        written=" ".join(schedule.split()),
        caller=caller,
        next_ns=next_ns,
    )
    await Diary(means.shelf, caller.tenant).add(appointment)
    means.scheduled.set()
    told = appointment.told()
    return {name: told[name] for name in ("id", "task", "schedule", "repeats", "next")}
