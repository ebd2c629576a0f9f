"""`matrix_svd`: the singular value decomposition of any matrix."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means

_SECONDS = 20.0


async def matrix_svd(
    means: Means, _call: Call, *, matrix: list[list[float]], vectors: bool = True
) -> dict[str, Any]:
    """Take a matrix apart: A = U S V^T.

    Args:
        matrix: row by row
        vectors: whether to give U and V^T too
    """
    work = "toolgate.tools.native.linear:singular_values"
    args = {"a": matrix, "vectors": vectors}
    return await means.workers.run(work, args, seconds=_SECONDS)
