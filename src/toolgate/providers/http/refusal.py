"""What an answer that says no means: whether it was not done, and whether to try again.

A status of 400 and above, below 500, says that it was not done; so does 429. Anything else that is
no success may come after the effect, so a side effect is unknown then.
"""

import logging
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ExecutionFailed, ToolError, ToolgateError
from toolgate.providers.http.words import told

log = logging.getLogger("toolgate.http")
_CREDENTIALS = frozenset({401, 403, 407})
# Said before anything was looked at.
_LATER = frozenset({425, 429})
# A gateway says it of its own patience, too: what stands behind may go on.
_UNSURE = frozenset({408, 499})
_LONGEST = 86_400.0


def refusal(call: Call, status: int, headers: Mapping[str, str], body: bytes) -> ToolgateError:
    """The error for an answer of which no result can be made; `body` holds no credentials."""
    name = call.spec.name
    said = told(headers.get("Content-Type", "").lower(), body)
    because = f": {said}" if said else ""
    told_so = f"The service behind {name!r} answered {_named(status)}{because}"
    wait = _retry_after(headers)
    if 300 <= status < 400:
        return _unsure(
            call,
            f"{told_so.rstrip('.')}, which leads elsewhere and is not followed. An operator "
            "corrects its url, or allows redirects on the same host.",
            status,
            None,
        )
    if status in _CREDENTIALS:
        log.warning("tool %s: the service refused its credentials with %s", name, status)
        return ToolError(
            f"{told_so.rstrip('.')}. It does not take the credentials that an operator has set "
            "for this tool, or they may not do this. Nothing was done: tell the operator.",
            status=status,
        )
    if 400 <= status < 500 and status not in _UNSURE:
        advice = (
            "Nothing was done: try again later."
            if status in _LATER
            else "Nothing was done: change the arguments, or do without it."
        )
        return ToolError(
            f"{told_so.rstrip('.')}. {advice}",
            retryable=status in _LATER,
            retry_after=wait if status in _LATER else None,
            status=status,
        )
    return _unsure(call, f"{told_so.rstrip('.')}.", status, wait)


def _unsure(call: Call, message: str, status: int, wait: float | None) -> ExecutionFailed:
    advice = (
        ""
        if call.spec.effect.repeatable
        else " It may have taken effect: check before you call it again."
    )
    details: dict[str, object] = {"status": status}
    if wait is not None:
        details["retry_after"] = wait
    return ExecutionFailed(message + advice, **details)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    given = headers.get("Retry-After", "").strip()
    if not given:
        return None
    if given.isascii() and given.isdecimal():
        seconds = float(given[:9])
    else:
        try:
            seconds = parsedate_to_datetime(given).timestamp() - clock.unix_ns() / 1e9
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST)
