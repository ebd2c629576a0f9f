"""Why no broker opened: clients do not say, and some reasons do not pass by themselves."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.admin import SaslHandShakeRequest
from aiokafka.protocol.metadata import MetadataRequest

from toolgate.errors import SettingsInvalid
from toolgate.settings.fleet import Fleet

_SECONDS = 3.0
# Of a large cluster that calls itself by names nobody finds, so many are looked for.
_MOST_ASKED = 4
_AWAY = (KafkaError, OSError, TimeoutError)
_STRANGER = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    SaslAuthenticationFailed,
)
# Nothing that says who we are; with TLS, what it is to be trusted by and shown.
_PLAINLY = ("client_id", "request_timeout_ms")
_ENCRYPTED = (*_PLAINLY, "ssl_context")
# OpenSSL's numbers.
_OUT_OF_TIME = {9, 10}
_OTHER_NAME = {62, 64}


async def knock(connection: Mapping[str, Any], fleet: Fleet) -> Sequence[str]:
    """`SettingsInvalid` where waiting does not help; else where nobody answered.

    The addresses of the settings only lead to those by which the brokers call themselves.
    """
    wanted = {name: value for name, value in connection.items() if name != "bootstrap_servers"}
    silent: list[str] = []
    called: dict[str, None] = {}
    for broker in fleet.brokers:
        found = await _asked(broker, broker, fleet, wanted)
        if found is None:
            silent.append(broker)
        else:
            called |= dict.fromkeys(found)
    others = [broker for broker in called if broker not in fleet.brokers]
    for broker in others[:_MOST_ASKED]:
        where = f"{broker} (so the brokers call themselves: their advertised.listeners)"
        if await _asked(broker, where, fleet, wanted) is None:
            silent.append(where)
    return silent


async def _asked(
    broker: str, where: str, fleet: Fleet, wanted: Mapping[str, Any]
) -> Sequence[str] | None:
    """By which addresses the brokers call themselves; nothing where it does not answer."""
    host, _, port = broker.rpartition(":")
    place = host.strip("[]"), int(port)
    try:
        async with asyncio.timeout(_SECONDS), _opened(place, wanted) as opened:
            answer: Any = await opened.send(MetadataRequest([]))
            return [f"{host}:{port}" for _, host, port, *_ in answer.brokers]
    except _AWAY as error:
        told = _why(error, where) or await _otherwise(error, where, place, fleet, wanted)
    if told:
        raise SettingsInvalid([told])
    return None


@contextlib.asynccontextmanager
async def _opened(place: tuple[str, int], wanted: Mapping[str, Any]) -> AsyncGenerator[Any]:
    opened: Any = await create_conn(*place, **wanted)
    try:
        yield opened
    finally:
        opened.close()


def _why(error: BaseException, where: str) -> str:
    """What it says itself; nothing where it says too little."""
    # A client that loses its line tells only that, and keeps what the line has said.
    said = error if isinstance(error, ssl.SSLError) else error.__cause__
    if isinstance(said, ssl.SSLCertVerificationError):
        return _unproven(said, where)
    if isinstance(said, ssl.SSLError) and _is_about_ours(said.reason or ""):
        return (
            f"queue.cert_file: {where} lets in only whom it knows by a certificate "
            f"({said.reason}); name ours and its key (queue.key_file), signed by whom the brokers "
            "trust"
        )
    if isinstance(error, IllegalSaslStateError):
        return (
            f"queue.sasl: {where} does not ask for a name and a password; leave out queue.sasl, "
            "or name a port of the broker that asks for them"
        )
    if isinstance(error, _STRANGER):
        return (
            f"queue.sasl: the brokers do not know us ({type(error).__name__}); look at the "
            "mechanism, and at the variables with name and password"
        )
    return ""


def _unproven(error: ssl.SSLCertVerificationError, where: str) -> str:
    said = error.verify_message.rstrip(".")
    if error.verify_code in _OTHER_NAME:
        return (
            f"queue.url: the certificate of {where} is for another name ({said}); write a name "
            "that it is for, or give the broker one for this name"
        )
    if error.verify_code in _OUT_OF_TIME:
        return (
            f"queue.url: the certificate of {where} is out of its time ({said}); give the broker "
            "a new one, or set this machine's clock"
        )
    return (
        f"queue.ca_file: the certificate of {where} is not trusted ({said}); name who signed it, "
        "or write kafka:// where there is no TLS"
    )


def _is_about_ours(reason: str) -> bool:
    return "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason)


async def _otherwise(
    error: BaseException,
    where: str,
    place: tuple[str, int],
    fleet: Fleet,
    wanted: Mapping[str, Any],
) -> str:
    """A broker hangs up on who does not speak as it does, so it is asked in other ways."""
    # Where nobody listens there is nobody to ask.
    if isinstance(error, ConnectionRefusedError):
        return ""
    if fleet.is_encrypted and await _speaks_plainly(place, wanted):
        return (
            f"queue.url: {where} speaks without TLS, and kafka+tls:// asks for it; write "
            "kafka://, or name a port of the broker that has TLS"
        )
    if not fleet.is_encrypted and await _speaks_tls(place):
        return f"queue.url: {where} speaks TLS only; write kafka+tls:// instead of kafka://"
    if isinstance(error, ssl.SSLError):
        return (
            f"queue.url: {where} and we agree on no TLS ({error.reason}); look at the versions "
            "and ciphers that the broker allows"
        )
    mechanism = fleet.sasl.mechanism
    if mechanism and not isinstance(error, UnsupportedSaslMechanismError):
        return ""
    taken = await _mechanisms(place, fleet, wanted)
    if not taken or mechanism in taken:
        return ""
    return (
        f"queue.sasl.mechanism: {where} asks who we are, by {' or '.join(taken)}; write one of "
        "them, and the variables with name and password"
    )


async def _speaks_plainly(place: tuple[str, int], wanted: Mapping[str, Any]) -> bool:
    """Whether it says which versions it knows: anybody may ask for that."""
    plain = {name: wanted[name] for name in _PLAINLY}
    try:
        async with asyncio.timeout(_SECONDS), _opened(place, plain):
            return True
    except _AWAY:
        return False


async def _speaks_tls(place: tuple[str, int]) -> bool:
    """Nothing is sent to it, so it need not be trusted."""
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(*place, ssl=anybody)
    except ssl.SSLError as error:
        # One that wants to know who we are first speaks it, too.
        return "ALERT" in (error.reason or "")
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _mechanisms(
    place: tuple[str, int], fleet: Fleet, wanted: Mapping[str, Any]
) -> Sequence[str]:
    """By which it would have us say who we are; asking says nothing of us."""
    quietly = {name: wanted[name] for name in _ENCRYPTED if name in wanted}
    protocol = "SSL" if fleet.is_encrypted else "PLAINTEXT"
    try:
        async with (
            asyncio.timeout(_SECONDS),
            _opened(place, {**quietly, "security_protocol": protocol}) as opened,
        ):
            answer: Any = await opened.send(SaslHandShakeRequest(fleet.sasl.mechanism or "PLAIN"))
    except _AWAY:
        return []
    return answer.enabled_mechanisms
