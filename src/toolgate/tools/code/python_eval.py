"""Evaluates Python that only computes, in a process apart."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means

_EVALUATED = "toolgate.tools.code.evaluation:evaluated"
# More than the interpreter's own limit, which tells better what happened.
_SECONDS = 5.0


async def python_eval(
    means: Means, call: Call, *, expression: str, variables: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The value of an expression, or of the last of a few lines."""
    return await means.workers.run(
        _EVALUATED,
        {
            "tenant": call.caller.tenant,
            "expression": expression,
            "variables": variables or {},
        },
        seconds=_SECONDS,
        starts=True,
    )
