"""Where a notice goes beside the inbox: a port, and what stands behind it as the settings say."""

import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec

from toolgate import clock
from toolgate.errors import SourceUnavailable, ToolgateError
from toolgate.net.address import authorization, without_user
from toolgate.net.signature import signature
from toolgate.tools.agent.notice import Notice
from toolgate.tools.means import Means

_SECONDS = 10.0
_MOST_READ = 65_536
# The receiver knows by its id what comes twice.
_ATTEMPTS = 2
_encode = msgspec.json.Encoder().encode


class Outlet(Protocol):
    """One way out."""

    name: str

    async def send(self, notice: Notice) -> str:
        """Nothing once it has arrived; else what went wrong."""
        ...


class Subscribers:
    """Whoever listens to the events of this house."""

    name = "events"

    def __init__(self, means: Means) -> None:
        self._means = means

    async def send(self, notice: Notice) -> str:
        """Nobody who listens can fail it."""
        await self._means.tell()(notice.event())
        return ""


class Console:
    """The terminal that the house runs in."""

    name = "console"

    async def send(self, notice: Notice) -> str:
        """Signs that steer a terminal are not passed on, and no line begins like another notice."""
        who = f"{notice.tenant}/{notice.agent}" if notice.agent else notice.tenant
        text = "".join(sign if sign.isprintable() or sign == "\n" else "�" for sign in notice.text)
        text = text.replace("\n", "\n  ")
        try:
            sys.stderr.write(f"[{who}] {text}\n")
            sys.stderr.flush()
        except OSError:
            return "it cannot be written to"
        return ""


class Webhook:
    """An address of the operator's, told as it is told of events, and signed in the same way."""

    name = "webhook"

    def __init__(self, means: Means) -> None:
        settings = means.settings.agent
        self._url = without_user(settings.notify_url)
        self._user = authorization(settings.notify_url)
        self._client = means.client.named(self._url)
        self._secret = means.environment.get(settings.notify_secret_env, "").encode()

    async def send(self, notice: Notice) -> str:
        """What it does not take with a 2xx has not arrived."""
        if not self._secret:
            return "the variable that [tools.agent] notify_secret_env names is empty"
        event = notice.event()
        body = _encode(event)
        problem = ""
        for _ in range(_ATTEMPTS):
            at = str(clock.unix_ns() // 1_000_000_000)
            headers = {
                "Content-Type": "application/json",
                "X-Toolgate-Event-Id": event.id,
                "X-Toolgate-Event": event.kind,
                "X-Toolgate-Timestamp": at,
                "X-Toolgate-Signature": signature(self._secret, at, body),
                **self._user,
            }
            problem = await self._sent(headers, body)
            if not problem:
                break
        return problem

    async def _sent(self, headers: dict[str, str], body: bytes) -> str:
        try:
            answer = await self._client.send(
                "POST",
                self._url,
                headers=headers,
                body=body,
                most=_MOST_READ,
                seconds=_SECONDS,
                repeatable=True,
            )
        except SourceUnavailable:
            # The address is the operator's, and nothing for a model to read.
            return "it cannot be reached"
        except ToolgateError as error:
            return f"it cannot be asked ({error.code})"
        return "" if 200 <= answer.status < 300 else f"it answers with {answer.status}"


def outlets(means: Means) -> Sequence[Outlet]:
    """Those that the settings name; whoever listens is always told."""
    settings = means.settings.agent
    found: list[Outlet] = [Subscribers(means)]
    if settings.console:
        found.append(Console())
    if settings.notify_url:
        found.append(Webhook(means))
    return found
