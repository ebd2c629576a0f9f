"""Runs Python in the sandbox; files that it leaves stay for the next call of its session."""

from collections.abc import Mapping
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.sandbox.sandbox import Ended
from toolgate.tools.code.artifact import Artifacts
from toolgate.tools.code.execution import (
    LONGEST_PATH,
    MOST_BYTES,
    MOST_FILE,
    MOST_FILES,
    LeftOut,
    Outcome,
    Work,
    executed,
)
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
# So many are told by name.
_MOST_NAMED = 20
_WHY = {
    "too_large": f"It has more than {MOST_FILE >> 20} MB.",
    "too_many": f"No more than {MOST_FILES} files are kept.",
    "too_much": f"No more than {MOST_BYTES >> 20} MB are kept, of all files together.",
    "no_file": "It is no file, or cannot be read.",
    "its_name": f"Its path is no UTF-8, or has more than {LONGEST_PATH} bytes.",
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
    removed = sorted(outcome.gone & before.keys())
    after = sorted((before.keys() - outcome.gone) | outcome.paths)
    if not await session.keep(outcome.changed, removed):
        notes.append(
            f"The session's files were not kept, and are as they were: there is room for "
            f"{MOST_BYTES >> 20} MB of them."
        )
        after = sorted(before)
    if outcome.left_out:
        count = f"{'more than ' if outcome.is_more else ''}{len(outcome.left_out)}"
        notes.append(f"Files that are not kept: {count}; `left_out` says why.")
    artifacts = Artifacts(means.outputs, call)
    files = [
        await artifacts.told(path, content, is_new=path not in before)
        for path, content in sorted(outcome.changed.items())
    ]
    files += [{"path": path, "change": "removed"} for path in removed]
    left_out = [_left_out(one, before) for one in outcome.left_out[:_MOST_NAMED]]
    told = _told(outcome, session, files, after, notes)
    return told | ({"left_out": left_out} if left_out else {})


def _left_out(one: LeftOut, before: Mapping[str, bytes]) -> dict[str, str]:
    stays = " The session has it as it was before this call." if one.path in before else ""
    return {"path": one.path, "why": _WHY[one.why] + stays}


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
