"""Errors to the wire: RFC 9457 problems with our code. The one mapper of this door."""

from collections.abc import Mapping
from typing import Any

import orjson

from toolgate import errors
from toolgate.errors import ToolgateError

STATUS: Mapping[type[ToolgateError], int] = {
    ToolgateError: 500,
    errors.SettingsInvalid: 500,
    errors.CatalogError: 500,
    errors.InvalidSpecs: 422,
    errors.NameClash: 409,
    errors.SourceUnavailable: 503,
    errors.StoreError: 503,
    errors.StoreUnavailable: 503,
    errors.StoreMismatch: 503,
    errors.CallRefused: 403,
    errors.Unauthenticated: 401,
    errors.ToolNotFound: 404,
    errors.PermissionDenied: 403,
    errors.InvalidArguments: 422,
    errors.InvalidRequest: 400,
    errors.UnsupportedProvider: 501,
    errors.RateLimited: 429,
    errors.BudgetExceeded: 429,
    errors.ApprovalPending: 409,
    errors.Superseded: 409,
    errors.CallFailed: 500,
    errors.ExecutionFailed: 500,
    errors.ToolError: 500,
    errors.TimedOut: 504,
    errors.InvalidOutput: 500,
    errors.ExtensionFailed: 500,
}


def problem(error: ToolgateError) -> tuple[int, bytes]:
    """The status and the body that tell this error."""
    # An extension may refuse with a class of its own; it is told as the one it stands for.
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    # What only an operator may know stays inside.
    details = {key: value for key, value in error.details.items() if key not in {"phase", "reason"}}
    body: dict[str, Any] = details | {
        "type": f"urn:toolgate:error:{error.code}",
        "title": error.code.replace("_", " "),
        "status": status,
        "code": error.code,
        "detail": error.message,
        "retryable": error.retryable,
    }
    return status, orjson.dumps(body, default=lambda value: type(value).__name__)
