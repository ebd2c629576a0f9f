"""Runs the tests of a folder with pytest, in the sandbox, and tells what came of each."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.code.execution import Outcome, Work, executed
from toolgate.tools.code.program import note
from toolgate.tools.code.script import script
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded

_FAILURES = 50
_TESTS = 500
_PRINTED = 10_000
# By pytest's exit code.
_OUTCOMES = {0: "passed", 1: "failed", 2: "interrupted", 5: "no_tests"}
# Its summary would say again what is told by test.
_USUAL = ("-q", "--no-header", "--no-summary", "--tb=short", "--color=no", "-p", "no:cacheprovider")


class _Failure(msgspec.Struct, frozen=True, kw_only=True):
    test: str
    outcome: str
    message: str
    traceback: str
    file: str | None
    line: int | None
    seconds: float


class _Test(msgspec.Struct, frozen=True):
    test: str
    outcome: str
    seconds: float


class _Told(msgspec.Struct, frozen=True):
    """What the witness wrote down. The tests may have had a hand in it: it is only shown."""

    code: int
    failures: tuple[_Failure, ...]
    tests: tuple[_Test, ...]


async def run_tests(
    means: Means,
    call: Call,
    *,
    folder: str = ".",
    tests: list[str] | None = None,
    keyword: str = "",
    stop_early: bool = False,
    timeout: float = 120,  # noqa: ASYNC109  the sandbox ends it, and tells what it said until then
) -> dict[str, Any]:
    """How many passed and failed, and why those that failed did."""
    place = await threaded(_place, Roots.of(means), folder)
    args = [*_USUAL, f"--rootdir={place}"]
    args += ["-x"] if stop_early else []
    args += [f"-k{keyword}"] if keyword else []
    # With our own Python, plugins are those of toolgate's surroundings, and none of the project's.
    args += [] if means.settings.code.python else ["--disable-plugin-autoload"]
    outcome = await executed(
        means,
        call,
        Work(
            code=script("pytest"),
            given={"args": [*args, *(tests or ())]},
            is_json=True,
            folder=place,
            readable=(place,),
            seconds=timeout,
        ),
    )
    return _result(outcome, place)


def _place(roots: Roots, folder: str) -> str:
    place = roots.location(folder)
    if not Path(place).is_dir():
        raise ToolError(f"{folder!r} is not a folder. Write the one that the tests are in.")
    return place


def _result(outcome: Outcome, place: str) -> dict[str, Any]:
    try:
        told = msgspec.convert(outcome.value, _Told)
    except msgspec.ValidationError:
        told = _Told(code=-1, failures=(), tests=())
    printed = (outcome.stdout + outcome.stderr).replace(f"{place}/", "")
    result: dict[str, Any] = {
        "outcome": _OUTCOMES.get(told.code, "broken" if told.code >= 0 else "interrupted"),
        "counts": dict(Counter(one.outcome for one in told.tests)),
        "failures": [_failure(one, place) for one in told.failures[:_FAILURES]],
        "tests": [msgspec.to_builtins(one) for one in told.tests[:_TESTS]],
        "truncated": len(told.tests) > _TESTS or len(told.failures) > _FAILURES,
        "output": printed[-_PRINTED:].replace(place, "."),
        "seconds": round(outcome.seconds, 3),
    }
    why = note(outcome.ended)
    if told.code < 0:
        why = f"{why} The run did not come to its end; `output` has what it said.".strip()
    return result | ({"note": why} if why else {})


def _failure(one: _Failure, place: str) -> dict[str, Any]:
    """Paths are told from the folder on."""
    told: dict[str, Any] = msgspec.to_builtins(one)
    for name in ("message", "traceback", "file"):
        if told[name] is not None:
            told[name] = told[name].replace(f"{place}/", "").replace(place, ".")
    return told
