"""Python, looked at by ruff: text in, findings out. Nothing of it is run, nor any settings read.

This runs in a worker of ours, apart, with bounds of time and memory.
"""

import json
import re
import subprocess
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.code.finding import finding

_SECONDS = 10
_REASON = re.compile(r"^(?:error|\s*Cause): (.+)$", re.MULTILINE)
_ENV = {"RAYON_NUM_THREADS": "1"}


def checked(
    *, code: str, name: str, select: list[str], ignore: list[str], line_length: int
) -> list[dict[str, Any]]:
    """Every finding, in the order of lines."""
    # Deferred: only a worker needs it, and it may not be installed.
    from ruff import find_ruff_bin  # noqa: PLC0415

    words = [find_ruff_bin(), "check", "--isolated", "--no-cache", "--exit-zero", "--quiet"]
    words += ["--output-format=json", f"--stdin-filename={name}", f"--line-length={line_length}"]
    words += [f"--select={','.join(select)}"] if select else []
    words += [f"--ignore={','.join(ignore)}"] if ignore else []
    try:
        told = subprocess.run(  # noqa: S603  a list of words, of which none is a caller's own
            [*words, "-"],
            input=code.encode("utf-8", "replace"),
            capture_output=True,
            env=_ENV,
            cwd="/",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError("ruff was not done in time. Check a shorter text.") from None
    if told.returncode != 0:
        raise ToolError(_refusal(told.stderr.decode("utf-8", "replace")))
    return [_finding(one) for one in json.loads(told.stdout)]


def _finding(one: dict[str, Any]) -> dict[str, Any]:
    fix = one.get("fix")
    end = one.get("end_location") or one["location"]
    return finding(
        line=one["location"]["row"],
        column=one["location"]["column"],
        end_line=end["row"],
        end_column=end["column"],
        code=one.get("code") or "invalid-syntax",
        message=one["message"],
        url=one.get("url"),
        fix=fix and {"hint": fix.get("message"), "safe": fix.get("applicability") == "safe"},
    )


def _refusal(said: str) -> str:
    reason = _REASON.search(said)
    if reason is None:
        return "ruff gave up on this text. Check a shorter or simpler one."
    return (
        f"ruff does not take that: {reason[1][:300]}. Rules are written like F, E501 or UP; leave "
        "out those that it does not know."
    )
