"""The stream on which a server says what has changed, for as long as its connection lasts."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from toolgate import clock
from toolgate.net.errors import Lost, NotSent
from toolgate.retries import pause
from toolgate.upstreams import message
from toolgate.upstreams.events import EndlessError, Events
from toolgate.upstreams.failures import AwayError
from toolgate.upstreams.flood import BLANK, ENDLESS

if TYPE_CHECKING:
    from toolgate.upstreams.http import Http

LISTEN = "subscriptions/listen"
# What changes is told in a line; results do not come here.
_MOST_EVENT = 1024 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
# Nobody is asked for a stream more often.
LEAST_PAUSE = 0.5
# Who hears nothing for longer begins anew; proxies let go of a silent stream earlier.
_LASTING_NS = 5_000_000_000
_CHANGES: Mapping[str, str] = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}


def wanted(capabilities: Mapping[str, Any], uris: Sequence[str]) -> dict[str, Any]:
    """What to ask a server of the newer revision to say; nothing where it has nothing to say."""
    found: dict[str, Any] = {}
    for part, name in _CHANGES.items():
        has = capabilities.get(part)
        if type(has) is dict and cast("dict[str, Any]", has).get("listChanged") is True:
            found[name] = True
    if uris:
        found["resourceSubscriptions"] = list(uris)
    return found


class Hearing:
    """Listens until it is closed, and begins anew where the stream ends."""

    def __init__(self, http: "Http", uris: Sequence[str]) -> None:
        self._http = http
        self._uris = tuple(uris)
        self._events = Events(_MOST_EVENT)
        self._count = 0
        self._task = asyncio.create_task(self._listen())

    def close(self) -> None:
        """Hear no more."""
        self._task.cancel()

    async def _listen(self) -> None:
        attempt = 0
        while True:
            began_ns = clock.monotonic_ns()
            try:
                if not await self._heard(is_first=self._count == 0):
                    return
            except NotSent as error:
                self._http.lose(error.message)
                return
            except (Lost, EndlessError, message.TooManyError, AwayError):
                pass
            lasted = clock.monotonic_ns() - began_ns > _LASTING_NS
            attempt = 1 if lasted else attempt + 1
            roll = 0.5 + random.random() / 2  # noqa: S311  no secret
            wait = pause(attempt, base=_FIRST_PAUSE, most=_LONGEST_PAUSE, roll=roll)
            # Its server can ask for more time, and not for less.
            await asyncio.sleep(max(wait, self._events.retry or 0.0, LEAST_PAUSE))

    async def _heard(self, *, is_first: bool) -> bool:
        """One stream to its end; whether another one is to be had."""
        http = self._http
        modern = http.welcome.is_modern
        self._count += 1
        method, head, body = ("POST", *self._asked()) if modern else ("GET", self._head(), None)
        if body == b"":
            return False
        async with http.client.stream(
            method, http.url, headers=head, body=body, seconds=None
        ) as answer:
            if answer.status == 404 and not is_first and http.has_session:
                # What was there is gone. A session that has just begun has not: there is no stream.
                await http.renewed(head.get("Mcp-Session-Id", ""))
                return False
            if answer.status in {401, 403}:
                # A token that ended while nobody spoke: what changes is heard with the next one.
                return await http.met(answer, head)
            is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
            if answer.status != 200 or not is_stream:
                # 405: it has none. Anything else would not be better the next time.
                return False
            if not is_first and (modern or not self._events.last):
                http.ear.missed()
            if modern:
                self._events = Events(_MOST_EVENT)
            else:
                self._events.begin()
            async for piece in answer:
                for event in self._events.feed(piece):
                    await http.flood.said()
                    said = message.read(event.data, http.cover)
                    if said is not None and not message.is_answer(said):
                        await http.heard(said)
                    elif said is not None and "error" in said:
                        return False
                await http.flood.said(self._events.lines * BLANK)
                if http.flood.is_over:
                    http.lose(ENDLESS)
                    return False
        return True

    def _head(self) -> dict[str, str]:
        head = self._http.head_for("")
        del head["Content-Type"]
        head["Accept"] = "text/event-stream"
        if self._events.last:
            head["Last-Event-ID"] = self._events.last
        return head

    def _asked(self) -> tuple[dict[str, str], bytes]:
        filters = wanted(self._http.welcome.capabilities, self._uris)
        if not filters:
            return {}, b""
        return self._http.head_for(LISTEN), self._http.phrase(LISTEN, {"notifications": filters})
