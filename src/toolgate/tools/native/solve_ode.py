"""`solve_ode`: ordinary differential equations from an initial state."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.native.given import check_expression, check_variables

_SECONDS = 45.0
_POINTS = 101


async def solve_ode(  # noqa: PLR0913  as its schema says
    means: Means,
    _call: Call,
    *,
    equations: dict[str, str],
    initial: dict[str, float],
    end: float,
    start: float = 0.0,
    points: int = _POINTS,
    times: list[float] | None = None,
    time: str = "t",
    constants: dict[str, float] | None = None,
    events: list[dict[str, Any]] | None = None,
    method: str = "auto",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    max_steps: int = 100_000,
) -> dict[str, Any]:
    """Solve ordinary differential equations.

    Args:
        equations: the derivative of each variable
        initial: the value of each at the start
        end: the time to go to
        start: the time of the initial values
        points: how many times, evenly spaced, to give values for
        times: these times instead
        time: the name of the time in expressions
        constants: names in expressions that have a fixed value
        events: expressions that are watched for crossing zero
        method: auto, rk45 or stiff
        rtol: the relative error that may be
        atol: the absolute error that may be
        max_steps: after which it ends where it is
    """
    known = check_variables((*equations, time), constants or ())
    if set(initial) != set(equations):
        odd = min(set(initial) ^ set(equations))
        raise ToolError(f'"{odd[:40]}" has an equation or an initial value alone. Give both.')
    for name, text in equations.items():
        check_expression(f"The equation of {name}", text, known)
    watched: list[dict[str, Any]] = [
        {"direction": "any", "stop": False, **one} for one in events or ()
    ]
    for number, one in enumerate(watched, 1):
        check_expression(f"Event {number}", one["expression"], known)
    if start == end:
        raise ToolError("The end is the start. Give a later time, or an earlier one.")
    args = {
        "equations": equations,
        "initial": initial,
        "constants": constants or {},
        "time": time,
        "start": start,
        "end": end,
        "times": _spaced(start, end, points) if times is None else _sorted(times, start, end),
        "events": watched,
        "method": method,
        "rtol": rtol,
        "atol": atol,
        "max_steps": max_steps,
    }
    return await means.workers.run("toolgate.tools.native.trajectory:solve", args, seconds=_SECONDS)


def _spaced(start: float, end: float, points: int) -> list[float]:
    width = (end - start) / (points - 1)
    return [*(start + width * number for number in range(points - 1)), end]


def _sorted(times: list[float], start: float, end: float) -> list[float]:
    low, high = min(start, end), max(start, end)
    if not all(low <= one <= high for one in times):
        raise ToolError("The times lie between the start and the end.")
    return sorted(times, reverse=end < start)
