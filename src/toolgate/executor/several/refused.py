"""Outputs for calls among several that did not run: refused, or not come to."""

from typing import Any

import orjson

from toolgate.call import Failure, Output
from toolgate.errors import ToolgateError

# What only an operator may know.
_INSIDE = frozenset({"phase", "reason"})


def refused(error: ToolgateError) -> Output:
    """What would be raised to the caller of one call is an Output among several."""
    return Output(
        status="error",
        error=Failure(
            code=error.code,
            message=error.message,
            retryable=error.retryable,
            details=_told(error),
        ),
    )


def skipped(why: str) -> Output:
    """It was not come to."""
    return Output(status="skipped", error=Failure(code="skipped", message=f"{why} It did not run."))


def _told(error: ToolgateError) -> dict[str, Any]:
    details = {name: of for name, of in error.details.items() if name not in _INSIDE}
    try:
        return orjson.loads(orjson.dumps(details, default=lambda value: type(value).__name__))
    except TypeError:
        return {}
