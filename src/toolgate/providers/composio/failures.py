"""What the SDK raises, as what it means here: nothing began, it was refused, or nobody knows."""

import httpx
from composio_client import (
    APIConnectionError,
    APIResponseValidationError,
    APIStatusError,
    APITimeoutError,
)

from toolgate.call import Call
from toolgate.errors import (
    ExecutionFailed,
    ProviderUnavailable,
    RateLimited,
    ToolError,
    ToolgateError,
)
from toolgate.executor.failure import execution_failed
from toolgate.executor.resilience.deadline import timed_out
from toolgate.providers.composio.client import NoAnswer

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_MOST_TOLD = 1_000
_MOST_DIGITS = 9
_MOST_SECONDS = 3_600.0
_TOO_MANY = 429


def failure(call: Call, error: BaseException, *, key: str) -> ToolgateError:
    """The error for a caller, without a key in it."""
    name = call.spec.name
    if isinstance(error, APIConnectionError):
        if isinstance(error.__cause__, _NOT_SENT):
            return ProviderUnavailable("Composio cannot be reached; nothing was sent. Try again.")
        if isinstance(error, APITimeoutError):
            return timed_out(call)
        return ExecutionFailed(
            f"The connection to Composio broke while {name!r} ran. {advice(call)}",
            composio_error="connection",
        )
    if isinstance(error, APIStatusError):
        return _answered(call, error, key)
    if isinstance(error, (APIResponseValidationError, NoAnswer)):
        return ExecutionFailed(
            f"Composio's answer to {name!r} is not one. {advice(call)}", composio_error="answer"
        )
    return execution_failed(call, error)


def advice(call: Call) -> str:
    """What to do when it is not known whether it happened."""
    if call.spec.effect.repeatable:
        return "The same call may fail again: change the arguments, or do without it."
    return "It may have taken effect: check before you call it again."


def said(text: str, key: str) -> str:
    """Words of the far side: bounded, and without the key."""
    plain = text.replace(key, "…") if key else text
    return plain if len(plain) <= _MOST_TOLD else plain[:_MOST_TOLD] + "…"


def _seconds(after: str) -> float:
    """How long to wait, as far as anybody would."""
    is_number = after.isdecimal() and len(after) <= _MOST_DIGITS
    return min(float(after), _MOST_SECONDS) if is_number else 1.0


def _answered(call: Call, error: APIStatusError, key: str) -> ToolgateError:
    details = error.details or {}
    code = said(str(details.get("slug") or details.get("code") or error.status_code), key)
    told = said(str(details.get("message") or ""), key)
    name, status = call.spec.name, error.status_code
    if status == _TOO_MANY:
        after = error.response.headers.get("retry-after", "")
        return RateLimited(
            f"Composio takes no more calls of {name!r} for now; nothing ran. Try again later.",
            retry_after=_seconds(after),
            composio_error=code,
        )
    if status >= 500 or status < 400:
        return ExecutionFailed(
            f"Composio answered {status} to {name!r}. {advice(call)}", composio_error=code
        )
    # Refused as it came in: nothing was done with it.
    return ToolError(f"Composio refused {name!r} ({code}). {told}".strip(), composio_error=code)
