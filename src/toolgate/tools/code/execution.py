"""Python code, run in the sandbox: a new one for every call, without network, of which only a
report comes back.
"""

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.sandbox import Ended, Finished
from toolgate.tools.code.interpreter import Interpreter, interpreter
from toolgate.tools.code.script import script
from toolgate.tools.code.turn import turn
from toolgate.tools.means import Means

LENGTH = struct.Struct("!I")
# In memory, and gone afterwards.
WORK = "/tmp/work"  # noqa: S108  inside of the sandbox, where it is the program's own
TEXT = 60_000
MOST_FILES = 64
MOST_FILE = 4 * MEGABYTE
MOST_BYTES = 8 * MEGABYTE
# What code may say before it is ended; most of it is not kept.
_MOST_OUTPUT = 16 * MEGABYTE
_MOST_VALUE = 4 * MEGABYTE
_REPORT = 2 * MOST_BYTES + 2 * _MOST_VALUE
_MEMORY = 512 * MEGABYTE
# The code gets less than all of it: files in memory count too.
_FOR_CODE = 400 * MEGABYTE
_SPARE = 5.0
_LEAST_SECONDS = 1.0
_ENV: Mapping[str, str] = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp",  # noqa: S108  as above
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
}
LONGEST_PATH = 300
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_PATH)]
# The supervisor looks at four times as many new files as are kept, and at all that were kept.
_MOST_NAMED = 5 * MOST_FILES


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Code, and what it has. `given` is known to it as `asked`.

    `keeps`: its folder is in memory, begins with `files`, and comes back. `is_json`: the value of
    its last expression comes back as JSON, and else as Python writes it.
    """

    code: str
    given: Any = None
    files: Mapping[str, bytes] = MappingProxyType({})
    keeps: bool = False
    is_json: bool = False
    folder: str = WORK
    readable: tuple[str, ...] = ()
    seconds: float = 30.0


class _File(msgspec.Struct, frozen=True):
    path: _Path
    size: Annotated[int, msgspec.Meta(ge=0, le=MOST_FILE)]
    sent: bool


class LeftOut(msgspec.Struct, frozen=True):
    """A file that is there and is not kept."""

    path: _Path
    why: Literal["too_large", "too_many", "too_much", "no_file", "its_name"]


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor says. Code may have had a hand in it: none of it is believed."""

    ended: Annotated[str, msgspec.Meta(max_length=30)]
    code: int
    stdout: str
    stderr: str
    value: Any = None
    seconds: float = 0.0
    files: Annotated[tuple[_File, ...], msgspec.Meta(max_length=MOST_FILES)] = ()
    left_out: Annotated[tuple[LeftOut, ...], msgspec.Meta(max_length=_MOST_NAMED)] = ()
    is_more: bool = False
    gone: Annotated[tuple[_Path, ...], msgspec.Meta(max_length=MOST_FILES)] = ()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `paths` are the files to be kept, `changed` those of them that are new or
    different; `left_out` are there and not to be kept (`is_more`: and others); `gone` were removed.

    One that `is_whole` has reported all; of another there are no files to be kept.
    """

    ended: Ended
    code: int
    stdout: str = ""
    stderr: str = ""
    value: Any = None
    seconds: float = 0.0
    paths: frozenset[str] = frozenset()
    changed: Mapping[str, bytes] = MappingProxyType({})
    left_out: tuple[LeftOut, ...] = ()
    is_more: bool = False
    gone: frozenset[str] = frozenset()
    is_whole: bool = False


_report = msgspec.json.Decoder(_Report)


async def executed(means: Means, call: Call, work: Work) -> Outcome:
    """Run it. `ProviderUnavailable` where there is no sandbox, and nothing ran."""
    python = interpreter(means)
    sandbox = await means.sandbox()
    async with turn(means, call):
        seconds = _seconds(call, work.seconds)
        finished = await sandbox.run(
            (python.program, "-I", "-c", script("supervisor")),
            _policy(python, work, seconds, means.unseen),
            stdin=_asked(work, seconds),
        )
    return reported(finished)


def _seconds(call: Call, wanted: float) -> float:
    """No longer than whoever waits: there has to be time to tell what came of it."""
    left = (call.until_ns - clock.monotonic_ns()) / 1e9 - _SPARE
    return max(_LEAST_SECONDS, min(wanted, left))


def _policy(python: Interpreter, work: Work, seconds: float, hidden: tuple[str, ...]) -> Policy:
    return Policy(
        readable=(*python.readable, *work.readable),
        agreed=python.agreed,
        hidden=hidden,
        env=_ENV,
        memory=_MEMORY,
        processes=32,
        # It looks at the time by itself; this is for one that is kept from it.
        cpu=2 * seconds + _SPARE,
        seconds=seconds + _SPARE,
        output=_REPORT,
    )


def _asked(work: Work, seconds: float) -> bytes:
    head = msgspec.json.encode(
        {
            "code": work.code,
            "given": work.given,
            "folder": work.folder,
            "files": [{"path": path, "size": len(one)} for path, one in work.files.items()],
            "is_json": work.is_json,
            "seconds": seconds,
            "memory": _FOR_CODE,
            "most_text": TEXT,
            "most_value": _MOST_VALUE,
            "most_output": _MOST_OUTPUT,
            "most_files": MOST_FILES if work.keeps else 0,
            "most_file": MOST_FILE,
            "most_bytes": MOST_BYTES,
            "most_path": LONGEST_PATH,
        }
    )
    return b"".join((LENGTH.pack(len(head)), head, *work.files.values()))


def reported(finished: Finished) -> Outcome:
    """What came of it, by its own report."""
    if finished.ended is not Ended.BY_ITSELF or finished.code != 0:
        # Nobody is left who could report: everything was ended, or the code ended its supervisor.
        return Outcome(ended=finished.ended, code=finished.code, seconds=finished.seconds)
    try:
        size = LENGTH.unpack(finished.stdout[: LENGTH.size])[0]
        report = _report.decode(finished.stdout[LENGTH.size : LENGTH.size + size])
        changed = _contents(report.files, finished.stdout[LENGTH.size + size :])
        ended = Ended(report.ended)
    except (struct.error, ValueError):
        raise ToolError(
            "What the code did cannot be told: it has meddled with what watches it. Nothing of it "
            "was kept."
        ) from None
    return Outcome(
        ended=ended,
        code=report.code,
        stdout=report.stdout,
        stderr=report.stderr,
        value=report.value,
        seconds=report.seconds,
        paths=frozenset(file.path for file in report.files),
        changed=changed,
        left_out=report.left_out,
        is_more=report.is_more,
        gone=frozenset(report.gone),
        is_whole=True,
    )


def _contents(files: Sequence[_File], raw: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    at = 0
    for file in files:
        _check(file.path)
        if file.sent:
            found[file.path] = raw[at : at + file.size]
            at += file.size
    if at != len(raw):
        raise ValueError
    return found


def _check(path: str) -> None:
    """They are only ever written in another sandbox, and there only below its folder."""
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        raise ValueError
