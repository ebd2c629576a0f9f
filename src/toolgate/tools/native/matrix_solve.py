"""`matrix_solve`: linear equations, by QR decomposition."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means

_SECONDS = 20.0


async def matrix_solve(
    means: Means, _call: Call, *, a: list[list[float]], b: list[Any]
) -> dict[str, Any]:
    """Solve A x = b.

    Args:
        a: the matrix, row by row
        b: the right-hand side, or several as columns
    """
    work = "toolgate.tools.native.linear:solve"
    args = {"a": a, "b": b}
    return await means.workers.run(work, args, seconds=_SECONDS)
