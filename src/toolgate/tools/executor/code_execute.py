"""Runs Python in the sandbox; files that it leaves stay for the next call of its session."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.sandbox.sandbox import Ended
from toolgate.tools.code.artifact import Artifacts
from toolgate.tools.code.execution import MOST_BYTES, Outcome, Work, executed
from toolgate.tools.code.session import Session
from toolgate.tools.means import Means

_LONGEST = 200_000
_ENDINGS = {
    Ended.OUT_OF_TIME: "The code was not done in time and was ended.",
    Ended.OUT_OF_MEMORY: "The code used too much memory and was ended.",
    Ended.TOO_MUCH_OUTPUT: "The code printed too much and was ended.",
    Ended.TOO_MUCH_WRITTEN: "The code put too much into its folders and was ended.",
    Ended.BY_SIGNAL: "The code was ended by a signal; it may have used too much memory.",
}


async def code_execute(
    means: Means, call: Call, *, code: str, language: str = "python"
) -> dict[str, Any]:
    """What the code printed, the value of its last expression, and the files that it left."""
    if language != "python":
        raise ToolError("Only Python is run here: leave `language` out.")
    if len(code) > _LONGEST:
        raise ToolError(f"Code has at most {_LONGEST:,} characters. Split it.")
    session = Session(means.shelf, call.caller)
    before = await session.files()
    work = Work(code=code, files=before, keeps=True, seconds=means.settings.code.seconds)
    outcome = await executed(means, call, work)
    notes = [_ENDINGS[outcome.ended]] if outcome.ended in _ENDINGS else []
    if not outcome.is_whole:
        notes.append("What it printed is lost, and the session's files are as they were.")
        return _told(outcome, session, [], sorted(before), notes)
    removed = sorted(set(before) - outcome.paths)
    if not await session.keep(outcome.changed, removed):
        notes.append(
            f"The session's files were not kept: there is room for {MOST_BYTES >> 20} MB of them."
        )
    if outcome.left_out:
        notes.append(f"{outcome.left_out} files were too large, too many or no files to be kept.")
    artifacts = Artifacts(means.outputs, call)
    files = [
        await artifacts.told(path, content, is_new=path not in before)
        for path, content in sorted(outcome.changed.items())
    ]
    files += [{"path": path, "change": "removed"} for path in removed]
    return _told(outcome, session, files, sorted(outcome.paths), notes)


def _told(
    outcome: Outcome,
    session: Session,
    files: list[dict[str, Any]],
    paths: list[str],
    notes: list[str],
) -> dict[str, Any]:
    value = outcome.value if isinstance(outcome.value, str) else None
    told: dict[str, Any] = {
        "ended": outcome.ended,
        "exit_code": outcome.code,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
        "value": value,
        "files": files,
        "session_files": paths if session.is_kept else [],
        "seconds": round(outcome.seconds, 3),
    }
    return told | ({"note": " ".join(notes)} if notes else {})
