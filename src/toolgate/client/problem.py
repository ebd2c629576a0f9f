"""Problems from the wire become the errors they were: class by code, with the same words."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolgate import errors
from toolgate.errors import ToolgateError

# What a problem says of itself; everything beside it are details.
_OWN = frozenset({"type", "title", "status", "code", "detail", "retryable"})


class Told(ToolgateError):
    """What only the server's door says: an address that is not there, a body that came late."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # pyright: ignore[reportAttributeAccessIssue]


def error_of(problem: Mapping[str, Any]) -> ToolgateError:
    """The error that a problem tells of."""
    code, message = str(problem["code"]), str(problem.get("detail", ""))
    details = {name: value for name, value in problem.items() if name not in _OWN}
    kind = _BY_CODE.get(code)
    if kind is None:
        error: ToolgateError = Told(code, message)
    else:
        # Their own arguments, from which the message was made, are not on the wire.
        error = kind.__new__(kind)
        ToolgateError.__init__(error, message)
        _complete(error, details)
    error.details = details
    error.retryable = problem.get("retryable") is True
    return error


def _complete(error: ToolgateError, details: dict[str, Any]) -> None:
    """What some classes have beside their details."""
    if isinstance(error, errors.PermissionDenied):
        # An agent is not told them.
        error.phase, error.reason = details.get("phase", ""), details.get("reason", "")
    elif isinstance(error, (errors.InvalidPolicy, errors.InvalidSpecs, errors.SettingsInvalid)):
        listed: object = details.pop("problems", None)
        error.problems = tuple(cast("list[object]", listed)) if isinstance(listed, list) else ()
    elif isinstance(error, errors.TimedOut):
        error.produced = None
    elif isinstance(error, errors.ExtensionFailed):
        error.ran = None


def _every(kind: type[ToolgateError]) -> Iterator[type[ToolgateError]]:
    if "code" in vars(kind):
        yield kind
    for below in kind.__subclasses__():
        if vars(errors).get(below.__name__) is below:
            yield from _every(below)


_BY_CODE = {kind.code: kind for kind in _every(ToolgateError)}
