"""`matrix_eigenvalues`: of a square matrix, with their vectors."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means

_SECONDS = 20.0


async def matrix_eigenvalues(
    means: Means, _call: Call, *, matrix: list[list[float]], vectors: bool = True
) -> dict[str, Any]:
    """Find the eigenvalues of a matrix.

    Args:
        matrix: row by row
        vectors: whether to give the vectors too
    """
    work = "toolgate.tools.native.linear:eigenvalues"
    args = {"a": matrix, "vectors": vectors}
    return await means.workers.run(work, args, seconds=_SECONDS)
