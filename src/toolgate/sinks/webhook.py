"""Events over HTTP: one POST each, signed, to the address that the settings name.

The receiver knows an event that comes twice by its id, and one that was forged or held back by its
signature and time.
"""

import msgspec

from toolgate import clock
from toolgate.call import Event
from toolgate.errors import SourceUnavailable
from toolgate.net.address import authorization, without_user
from toolgate.net.client import HttpClient
from toolgate.net.signature import signature

_SECONDS = 10.0
# What the receiver says is not read, only whether it took the event.
_MOST_READ = 65_536
_encode = msgspec.json.Encoder().encode


class Webhook:
    """One receiver. What it does not take with a 2xx has not arrived."""

    def __init__(self, client: HttpClient, url: str, secret: str) -> None:
        self._client = client
        self._url = without_user(url)
        self._user = authorization(url)
        self._secret = secret.encode()

    async def send(self, event: Event) -> str:
        """Nothing once it has arrived; else what went wrong."""
        body = _encode(event)
        at = str(clock.unix_ns() // 1_000_000_000)
        headers = {
            "Content-Type": "application/json",
            "X-Toolgate-Event-Id": event.id,
            "X-Toolgate-Event": event.kind,
            "X-Toolgate-Timestamp": at,
            "X-Toolgate-Signature": signature(self._secret, at, body),
            **self._user,
        }
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
        except SourceUnavailable as error:
            return error.message
        return "" if 200 <= answer.status < 300 else f"it answers with {answer.status}"
