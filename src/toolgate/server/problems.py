"""Errors to the wire: RFC 9457 problems with our code. The one mapper of this door."""

import math
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
    errors.InvalidPolicy: 422,
    errors.StoreError: 503,
    errors.StoreUnavailable: 503,
    errors.StoreMismatch: 503,
    errors.StoreQuarantined: 503,
    errors.ServerUnreachable: 502,
    errors.CallRefused: 403,
    errors.Unauthenticated: 401,
    errors.IssuerUnavailable: 503,
    errors.InsufficientScope: 403,
    errors.ToolNotFound: 404,
    errors.CallNotFound: 404,
    errors.ApprovalNotFound: 404,
    errors.PermissionDenied: 403,
    errors.PolicyUnavailable: 503,
    errors.RelationsUnavailable: 503,
    errors.InvalidArguments: 422,
    errors.InvalidRequest: 400,
    errors.UnsupportedProvider: 501,
    errors.IdempotencyConflict: 422,
    errors.InProgress: 409,
    errors.RateLimited: 429,
    errors.BudgetExceeded: 429,
    errors.LimitsUnavailable: 503,
    errors.Overloaded: 503,
    errors.OutOfTime: 504,
    errors.ProviderUnavailable: 503,
    errors.CircuitOpen: 503,
    errors.ApprovalPending: 409,
    errors.ApprovalDenied: 403,
    errors.Superseded: 409,
    errors.CallFailed: 500,
    errors.ExecutionFailed: 500,
    errors.ToolError: 500,
    errors.CannotAsk: 500,
    errors.InputNeeded: 422,
    errors.TimedOut: 504,
    errors.InvalidOutput: 500,
    errors.ExtensionFailed: 500,
}


# What only this door has to say: nothing was asked of the rooms below.
WIRE: Mapping[str, tuple[int, str]] = {
    "malformed_request": (
        400,
        "This is not an HTTP request for a path of this server; send one such as GET /v1/tools.",
    ),
    "not_found": (404, "There is nothing at this address. See /v1/tools."),
    "forbidden_origin": (
        403,
        "This page may not ask here; server.allowed_origins names those that may.",
    ),
    "method_not_allowed": (405, "This address takes another method; the Allow header names it."),
    "request_timeout": (408, "The body did not arrive in time; send all of it at once."),
    "misdirected_request": (
        421,
        "This server does not go by that name; server.public_url says which it has.",
    ),
    "headers_too_large": (431, "The request's headers are too long; send less than 64 KiB."),
}


# What only an operator may know.
_INSIDE = frozenset({"phase", "reason"})


def problem(error: ToolgateError, *, to_admin: bool = False) -> tuple[int, bytes]:
    """The status and the body that tell this error; which phase refused, and why, to an admin."""
    # An extension may refuse with a class of its own; it is told as the one it stands for.
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    details = dict(error.details)
    if not to_admin:
        details = {key: value for key, value in details.items() if key not in _INSIDE}
    if isinstance(error, errors.InvalidPolicy):
        details["problems"] = [str(one) for one in error.problems]
    return status, _body(status, error.code, error.message, details, retryable=error.retryable)


def retry_after(error: ToolgateError) -> bytes | None:
    """The header that says when to come back, in whole seconds, where the error tells."""
    seconds = error.details.get("retry_after")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    return b"%d" % max(math.ceil(seconds), 1) if math.isfinite(seconds) else None


def wire_problem(code: str, *, more: str = "") -> tuple[int, bytes]:
    """The status and the body of a problem that is about the request's address, not its call.

    `more` is what this address adds to the sentence.
    """
    status, sentence = WIRE[code]
    sentence += more and f" {more}"
    return status, _body(status, code, sentence, {}, retryable=False)


def _body(
    status: int, code: str, detail: str, details: Mapping[str, Any], *, retryable: bool
) -> bytes:
    body = {
        **details,
        "type": f"urn:toolgate:error:{code}",
        "title": code.replace("_", " "),
        "status": status,
        "code": code,
        "detail": detail,
        "retryable": retryable,
    }
    return orjson.dumps(body, default=lambda value: type(value).__name__)
