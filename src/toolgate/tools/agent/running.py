"""One appointment, done: a call through the gate, or a text that the agent is told."""

from toolgate.call import Output, Turn
from toolgate.errors import InProgress, ToolgateError
from toolgate.tools.agent.appointment import Appointment
from toolgate.tools.agent.keeping import Outcome
from toolgate.tools.means import Means

_TOOL = "scheduler"
_MOST_SHOWN = 2_000


async def ran(means: Means, one: Appointment) -> Outcome:
    """Who may not schedule any more has nothing run for them either."""
    try:
        await means.may()(one.caller, _TOOL)
        if not one.task.tool:
            return Outcome(status="success", text=one.task.text)
        # The same run has the same turn: begun twice, it happens once.
        turn = Turn(group=f"scheduled:{one.id}:{one.next_ns}")
        output = await means.perform()(
            one.task.tool, dict(one.task.args), caller=one.caller, turn=turn
        )
    except ToolgateError as error:
        return Outcome(
            status="refused",
            text=f"{error.code}: {error.message}",
            retryable=error.retryable,
            is_running=isinstance(error, InProgress),
        )
    return _outcome(output)


def _outcome(output: Output) -> Outcome:
    return Outcome(
        status=output.status, text=output.to_human()[:_MOST_SHOWN], call_id=output.call_id
    )
