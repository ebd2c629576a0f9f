"""Places where a test may kill the process, by name; anywhere else they cost a call of nothing.

Only with `TOOLGATE_CRASH_AT=CP5` in the environment, or `CP5:7` for the seventh time it is passed.
Settings with a public address are refused beside it.
"""

import os
import signal

VARIABLE = "TOOLGATE_CRASH_AT"
POINTS = {
    "CP1": "the request was parsed, nothing stored",
    "CP2": "the policy allowed it",
    "CP3": "budget and rate are reserved",
    "CP4": "the key is claimed",
    "CP5": "the intent is on record, before the effect",
    "CP6": "the effect is done, its result not stored",
    "CP7": "the result is written, its audit record is not",
    "CP8": "committed, the event not sent",
    "CP9": "committed, the reply not sent",
    "CP10": "between two steps of an undo",
    "CP11": "in the middle of an undo's effect",
    "CP12": "the approval is on record, the call not started",
    "CP13": "in the middle of a reload",
    "CP14": "in the middle of a migration",
    "CP15": "the call is queued, its caller not told",
    "CP16": "a worker has taken it, and not begun",
    "CP17": "it was run, its end is not in the queue",
    "CP18": "its end is in the queue, nobody is told",
    "CP19": "a queued call was refused before it began, its claim is not given back",
    "CP20": "its claim is given back, the queue does not know",
    "CP21": "a worker has fetched a message, and neither claimed its call nor given it a row",
    "CP22": "what another system sent has a row, and nobody has claimed it",
}


# How often each armed point is still to be passed.
_left: dict[str, int] = {}


def arm(at: str) -> None:
    """Kill this process when it comes to a point, `CP5`, or to it for the seventh time, `CP5:7`."""
    name, _, times = at.partition(":")
    if name not in POINTS:
        raise ValueError(f"there is no crash point {name!r}")
    _left[name] = int(times or 1)


def crash_here(point: str) -> None:
    """The point of this name is passed."""
    if _left and point in _left:
        _left[point] -= 1
        if _left[point] == 0:
            os.kill(os.getpid(), signal.SIGKILL)


if _at := os.environ.get(VARIABLE, ""):
    arm(_at)
