"""Tells the state of a git repository, and runs nothing that the repository names."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ProviderUnavailable, ToolError
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.sandbox import Ended
from toolgate.tools.code.interpreter import interpreter
from toolgate.tools.code.porcelain import status
from toolgate.tools.code.program import note
from toolgate.tools.code.repository import repository
from toolgate.tools.code.script import script
from toolgate.tools.code.turn import turn
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded

_SECONDS = 20.0
_NO_GIT = 69


async def git_status(
    means: Means, call: Call, *, path: str = ".", untracked: str = "normal"
) -> dict[str, Any]:
    """Branch, commit, upstream, and which files are staged, changed or new."""
    found = await threaded(repository, Roots.of(means), path)
    python = interpreter(means)
    sandbox = await means.sandbox()
    async with turn(means, call):
        finished = await sandbox.run(
            (
                *(python.program, "-I", "-c", script("git")),
                *(found.top, found.data, found.common, untracked),
            ),
            Policy(
                readable=(*python.readable, *found.folders),
                agreed=python.agreed,
                hidden=means.unseen,
                env={"PYTHONDONTWRITEBYTECODE": "1"},
                processes=16,
                cpu=_SECONDS,
                seconds=_SECONDS,
                output=8 * MEGABYTE,
            ),
        )
    if finished.ended is not Ended.BY_ITSELF:
        raise ToolError(
            f"git did not get done. {note(finished.ended)} Ask without untracked files: "
            "untracked = 'no'."
        )
    if finished.code == _NO_GIT:
        raise ProviderUnavailable("git is not installed here. Nothing ran: ask the operator.")
    if finished.code != 0:
        raise ToolError(
            f"git cannot read the repository at {found.shown!r}: it is damaged, or of a kind that "
            "this git does not know."
        )
    return {"repository": found.shown, **status(finished.stdout)}
