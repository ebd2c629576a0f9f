"""What an HTTP status means where it is no success."""

import re
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from toolgate.net.client import Streaming
from toolgate.net.errors import Lost
from toolgate.protocol import INVALID_REQUEST, METHOD_NOT_FOUND
from toolgate.upstreams import message
from toolgate.upstreams.cover import NOTHING, Cover
from toolgate.upstreams.failures import AwayError, BrokenError, BusyError
from toolgate.upstreams.message import Fault, FaultError

_MOST = 1024 * 1024
_SECONDS = re.compile(r"\d{1,6}\Z")
_MOVED = frozenset({307, 308})
_ELSEWHERE = range(300, 400)


class SessionGoneError(AwayError):
    """The session has expired; the request was not looked at."""

    def __init__(self) -> None:
        super().__init__("its session has ended.")


class MovedError(Exception):
    """The same server has another address for this."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class ChallengedError(Exception):
    """The server wants to know who asks; `error` is what it is where nobody can say."""

    def __init__(self, answer: Streaming, error: Exception) -> None:
        super().__init__("it wants to know who asks")
        self.answer = answer
        self.error = error


class Challenge(Protocol):
    """Who can answer a server that wants to know who asks."""

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """What the server must not say again."""
        ...

    async def met(self, answer: Streaming, sent: Mapping[str, str]) -> bool:
        """Whether another try can succeed, after one with these headers."""
        ...

    def close(self) -> None:
        """Nobody has to be told any more."""
        ...


def moved_to(answer: Streaming, url: str) -> str | None:
    """The same server's other address for this; it was not looked at."""
    if answer.status not in _MOVED:
        return None
    try:
        target = urljoin(url, answer.headers.get("location", ""))
        here, there = urlsplit(url), urlsplit(target)
    except ValueError:
        # Half an address.
        return None
    # What is sent belongs to one host, credentials above all.
    return target if (here.scheme, here.netloc) == (there.scheme, there.netloc) else None


async def refusal(answer: Streaming, *, has_session: bool, cover: Cover = NOTHING) -> Exception:
    """Why there is no result: what the server says, or what its status means.

    `has_session`: whether the request was of one.
    """
    status = answer.status
    fault = await _said(answer, cover)
    if status == 404 and has_session and (fault is None or _is_about_session(fault)):
        return SessionGoneError()
    if status in {401, 403}:
        return AwayError(f"it does not take our credentials (HTTP {status}).")
    if status == 429:
        return BusyError(retry_after(answer))
    if fault is not None:
        return FaultError(fault)
    if status in _ELSEWHERE:
        return AwayError("it leads to another address: write that one into the settings.")
    if status in {200, 202, 204}:
        kind = answer.headers.get("content-type", "nothing")[:60]
        return BrokenError(f"it answers with {kind}, which is no MCP.")
    if status >= 500:
        return BrokenError(f"it failed (HTTP {status}).")
    why = "There is nothing at its address" if status == 404 else "It refused the request"
    return FaultError(Fault(INVALID_REQUEST, f"{why} (HTTP {status})."))


def retry_after(answer: Streaming) -> float | None:
    """Seconds that a server asks to be left alone."""
    given = answer.headers.get("retry-after", "")
    return float(given) if _SECONDS.match(given) else None


def _is_about_session(fault: Fault) -> bool:
    """On the older revision 404 is about the session, whatever code stands beside it."""
    return fault.code != METHOD_NOT_FOUND


async def _said(answer: Streaming, cover: Cover) -> Fault | None:
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        document = message.read(await answer.read(_MOST), cover)
    except (Lost, message.TooManyError):
        return None
    if document is None or type(document.get("error")) is not dict:
        return None
    return message.fault_of(document["error"])
