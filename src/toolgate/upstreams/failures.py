"""What goes wrong with a server, as the rest of the house knows it."""

from typing import NamedTuple, NoReturn, cast

from toolgate.errors import (
    CallFailed,
    CannotAsk,
    ExecutionFailed,
    ProviderUnavailable,
    RateLimited,
    TimedOut,
    ToolError,
    ToolgateError,
)
from toolgate.net.errors import Lost, NotSent
from toolgate.protocol import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
)
from toolgate.upstreams.message import Fault, FaultError, Json

UNREACHED = "it cannot be reached."
_MOST_REQUIRED = 8
# Faults that are found before anything is done.
_BEFORE = frozenset(
    {
        *(PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND),
        *(HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION),
    }
)


class FaultSaid(ToolError):
    """The server refused the request before it did anything, and said why."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault = fault


class FaultMet(ExecutionFailed):
    """The server met an error on its way: what it was asked may have happened."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault = fault


class BegunAnew(ProviderUnavailable):
    """The server has begun anew, and may be another. Nothing ran; it can be called again."""


class Ending(NamedTuple):
    """Why a connection is over: for whoever calls, and for an operator."""

    why: str
    detail: str
    # What its program wrote last, line by line.
    said: tuple[str, ...] = ()


class AwayError(Exception):
    """Nothing was sent, or what was sent was surely not done. `detail` is for an operator."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.detail = detail or why


class BegunAnewError(AwayError):
    """Its server did not know us any more. It does now, and may have changed since."""

    def __init__(self) -> None:
        super().__init__("it has begun anew.")


class StuckError(AwayError):
    """Its program takes nothing: what was to be sent has not left."""

    def __init__(self) -> None:
        super().__init__("its program takes nothing for now.")


class BrokenError(Exception):
    """It was sent, and no answer came that can be read."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class BusyError(Exception):
    """The server takes no more for now."""

    def __init__(self, retry_after: float | None) -> None:
        super().__init__("it takes no more requests for now")
        self.retry_after = retry_after


def unavailable(server: str, why: str, retry_after: float | None = None) -> ProviderUnavailable:
    """Nothing ran."""
    more = {} if retry_after is None else {"retry_after": round(retry_after, 3)}
    return ProviderUnavailable(_away(server, why), **more)


def _away(server: str, why: str) -> str:
    return f"The MCP server {server!r} is away: {why} Nothing ran. Try again in a moment."


def broken(server: str, why: str) -> CallFailed:
    """It may have happened; whether that matters, whoever knows the tool says."""
    return ExecutionFailed(f"The MCP server {server!r} was asked and gave no answer: {why}")


def late(server: str, seconds: float) -> TimedOut:
    """Its time was over, and it may have happened."""
    return TimedOut(
        f"The MCP server {server!r} did not answer within {seconds:g} s, and was told to stop."
    )


def told(server: str, error: Exception, seconds: float) -> ToolgateError:
    """Any of these as an error of the house."""
    if isinstance(error, FaultError):
        return _faulted(server, error.fault)
    if isinstance(error, AwayError):
        is_anew = isinstance(error, BegunAnewError)
        return BegunAnew(_away(server, error.why)) if is_anew else unavailable(server, error.why)
    if isinstance(error, NotSent):
        # Where it is, is an operator's to know.
        return unavailable(server, UNREACHED)
    if isinstance(error, BusyError):
        after = error.retry_after
        return RateLimited(
            f"The MCP server {server!r} takes no more requests for now. Wait, and try again.",
            **({} if after is None else {"retry_after": after}),
        )
    if isinstance(error, TimeoutError):
        return late(server, seconds)
    if isinstance(error, BrokenError):
        return broken(server, error.why)
    if isinstance(error, Lost):
        return broken(server, "its connection was lost.")
    return broken(server, f"{type(error).__name__}.")


def detail_of(error: Exception) -> str:
    """What an operator is told of it."""
    if isinstance(error, AwayError):
        return error.detail
    if isinstance(error, BrokenError):
        return error.why
    if isinstance(error, TimeoutError):
        return "it did not answer in time."
    if isinstance(error, FaultError):
        return f"it says: {error.fault.message[:300]} (code {error.fault.code})."
    if isinstance(error, ToolgateError):
        return error.message
    return f"{type(error).__name__}."


def raise_told(server: str, error: Exception, seconds: float) -> NoReturn:
    """Raise it; what is of the house already stays."""
    if isinstance(error, ToolgateError) and not isinstance(error, (NotSent, Lost)):
        raise error
    raise told(server, error, seconds) from None


def _faulted(server: str, fault: Fault) -> ToolgateError:
    said = f"The MCP server {server!r} says: {fault.message} (code {fault.code})."
    if fault.code == MISSING_CAPABILITY and (needed := _required(fault)):
        return CannotAsk(needed)
    if fault.code in _BEFORE:
        return FaultSaid(said, fault)
    return FaultMet(said, fault)


def _required(fault: Fault) -> tuple[str, ...]:
    """What a caller's client has to be able to do, as the server says."""
    data: object = fault.data
    told = cast("Json", data).get("requiredCapabilities") if type(data) is dict else None
    return tuple(cast("Json", told))[:_MOST_REQUIRED] if type(told) is dict else ()
