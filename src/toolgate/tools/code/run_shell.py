"""Runs a shell line in the sandbox, in a folder that is open to tools."""

import posixpath
from pathlib import Path
from typing import Any

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.tools.code.program import note, text
from toolgate.tools.code.turn import turn
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded

_SHELL = "/bin/sh"
_MOST_OUTPUT = 4 * MEGABYTE
# Whoever waits is told before it stops waiting.
_SPARE = 5.0
# Else Python would take modules from the folder that it runs in.
_ENV = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}


async def run_shell(
    means: Means,
    call: Call,
    *,
    command: str,
    folder: str = ".",
    stdin: str = "",
    timeout: float = 60,  # noqa: ASYNC109  the sandbox ends it, and tells what it said until then
) -> dict[str, Any]:
    """What the line wrote, and its exit code."""
    if "\0" in command:
        raise ToolError("A command has no NUL character. Leave it out.")
    place = await threaded(_place, Roots.of(means), folder)
    sandbox = await means.sandbox()
    async with turn(means, call):
        left = (call.until_ns - clock.monotonic_ns()) / 1e9 - _SPARE
        seconds = max(1.0, min(timeout, left))
        finished = await sandbox.run(
            (_SHELL, "-c", command),
            Policy(
                writable=(place,),
                hidden=means.unseen,
                env=_ENV,
                cpu=seconds + _SPARE,
                seconds=seconds,
                output=_MOST_OUTPUT,
            ),
            stdin=stdin.encode(),
            folder=place,
        )
    told: dict[str, Any] = {
        "ended": finished.ended,
        "exit_code": finished.code,
        "stdout": text(finished.stdout),
        "stderr": text(finished.stderr),
        "seconds": round(finished.seconds, 3),
    }
    why = note(finished.ended)
    return told | ({"note": why} if why else {})


def _place(roots: Roots, folder: str) -> str:
    """The folder that it may write, and the only one of ours that it sees."""
    place = roots.location(folder)
    if not Path(place).is_dir():
        raise ToolError(f"{folder!r} is not a folder. Write the path of the one to run it in.")
    # Where nothing can be written, nothing is run: those are toolgate's own files.
    with roots.writing(posixpath.join(folder, "new")):
        return place
