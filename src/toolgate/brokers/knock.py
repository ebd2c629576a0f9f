"""Why no broker opened: clients do not say, and some reasons do not pass by themselves."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import ssl
from collections.abc import Mapping
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

from toolgate.errors import SettingsInvalid
from toolgate.settings.fleet import Fleet

_SECONDS = 3.0
_STRANGER = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
# Nothing that says who we are.
_PLAINLY = ("client_id", "request_timeout_ms")


async def knock(connection: Mapping[str, Any], fleet: Fleet) -> None:
    """`SettingsInvalid` where waiting does not help."""
    wanted = {name: value for name, value in connection.items() if name != "bootstrap_servers"}
    for broker in fleet.brokers:
        host, _, port = broker.rpartition(":")
        host = host.strip("[]")
        try:
            opened: Any = await create_conn(host, int(port), **wanted)
        except (ssl.SSLError, ssl.CertificateError) as error:
            told = (
                f"queue.ca_file: the certificate of {broker} is not trusted "
                f"({type(error).__name__}); name who signed it, or write kafka:// where there is "
                "no TLS"
            )
            raise SettingsInvalid([told]) from None
        except _STRANGER as error:
            told = (
                f"queue.sasl: the brokers do not know us ({type(error).__name__}); look at the "
                "mechanism, at the variables with name and password, and at kafka:// or "
                "kafka+tls://"
            )
            raise SettingsInvalid([told]) from None
        except (KafkaError, OSError, TimeoutError) as error:
            # Where nobody listens there is nobody to ask in another way.
            if not isinstance(error, ConnectionRefusedError):
                await _otherwise(broker, host, int(port), fleet, wanted)
            continue
        opened.close()


async def _otherwise(
    broker: str, host: str, port: int, fleet: Fleet, wanted: Mapping[str, Any]
) -> None:
    """A broker hangs up on who speaks TLS where it does not, and the other way round."""
    if fleet.is_encrypted:
        if await _speaks_plainly(host, port, wanted):
            told = (
                f"queue.url: {broker} speaks without TLS, and kafka+tls:// asks for it; write "
                "kafka://, or name a port of the broker that has TLS"
            )
            raise SettingsInvalid([told])
    elif await _speaks_tls(host, port):
        told = f"queue.url: {broker} speaks TLS only; write kafka+tls:// instead of kafka://"
        raise SettingsInvalid([told])


async def _speaks_plainly(host: str, port: int, wanted: Mapping[str, Any]) -> bool:
    """Whether it says which versions it knows: anybody may ask for that."""
    plain = {name: wanted[name] for name in _PLAINLY}
    try:
        async with asyncio.timeout(_SECONDS):
            opened: Any = await create_conn(host, port, **plain)
    except (KafkaError, OSError, TimeoutError):
        return False
    opened.close()
    return True


async def _speaks_tls(host: str, port: int) -> bool:
    """Nothing is sent to it, so it need not be trusted."""
    anybody = ssl.create_default_context()
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=anybody)
    except ssl.SSLError as error:
        # One that wants to know who we are first speaks it, too.
        return "ALERT" in (error.reason or "")
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
