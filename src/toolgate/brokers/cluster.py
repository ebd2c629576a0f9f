"""Where the brokers are, and how they know us: what every client of them is made with."""

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

from toolgate.errors import SettingsInvalid
from toolgate.settings.settings import Settings

# A broker that has not answered by then is taken to be away.
ANSWER_MS = 10_000
_START_SECONDS = 3.0
# It tells of each attempt to reach a broker that is away; we say so once.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


class Client(Protocol):
    """Any of aiokafka's."""

    async def start(self) -> Any: ...


async def started(client: Client) -> None:
    """Start it. Who is told to end meanwhile lets it come to its feet, or its connection leaks."""
    begun = asyncio.ensure_future(client.start())
    try:
        await asyncio.shield(begun)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception, asyncio.CancelledError):
            async with asyncio.timeout(_START_SECONDS):
                await begun
        raise


def connection(settings: Settings) -> Mapping[str, Any]:
    """What aiokafka's clients take; `SettingsInvalid` says what is missing."""
    fleet = settings.queue
    found: dict[str, Any] = {
        "bootstrap_servers": list(fleet.brokers),
        "client_id": "toolgate",
        "request_timeout_ms": ANSWER_MS,
        "security_protocol": _protocol(settings),
    }
    if fleet.is_encrypted:
        found["ssl_context"] = _trust(settings)
    if fleet.sasl.mechanism:
        found["sasl_mechanism"] = fleet.sasl.mechanism
        found["sasl_plain_username"] = _variable("username_env", fleet.sasl.username_env)
        found["sasl_plain_password"] = _variable("password_env", fleet.sasl.password_env)
    return found


def _protocol(settings: Settings) -> str:
    under = "SSL" if settings.queue.is_encrypted else "PLAINTEXT"
    return f"SASL_{under}" if settings.queue.sasl.mechanism else under


def _variable(name: str, variable: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise SettingsInvalid(
            [f"queue.sasl.{name}: the environment variable {variable} is not set"]
        )
    return value


def _trust(settings: Settings) -> ssl.SSLContext:
    fleet = settings.queue
    try:
        found = ssl.create_default_context(
            cafile=str(settings.path(fleet.ca_file)) if fleet.ca_file else None
        )
        if fleet.cert_file:
            key = str(settings.path(fleet.key_file)) if fleet.key_file else None
            found.load_cert_chain(str(settings.path(fleet.cert_file)), key)
    except (OSError, ssl.SSLError) as error:
        kind = type(error).__name__
        raise SettingsInvalid(
            [f"queue.ca_file, queue.cert_file, queue.key_file: one cannot be read ({kind})"]
        ) from None
    return found
