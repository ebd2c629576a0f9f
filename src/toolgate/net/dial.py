"""A new connection to a checked address, with TLS where the scheme says so."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import TypeVar

from toolgate import clock
from toolgate.net.addresses import Address
from toolgate.net.errors import NotSent
from toolgate.net.guard import Target

_AT_LEAST = 0.05
P = TypeVar("P", bound=asyncio.Protocol)


def verified() -> ssl.SSLContext:
    """TLS that believes the authorities of this machine (`SSL_CERT_FILE` adds others)."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(
    target: Target, made: Callable[[], P], tls: ssl.SSLContext | None, until_ns: int
) -> P:
    """Try the addresses in turn; each gets its share of the time."""
    location, problem = target.location, "it does not answer"
    for tried, address in enumerate(target.addresses):
        left = (until_ns - clock.monotonic_ns()) / 1e9
        share = max(left / (len(target.addresses) - tried), _AT_LEAST)
        try:
            async with asyncio.timeout(share):
                return await _connected(address, location.port, location.host, made, tls)
        except TimeoutError:
            problem = "it does not answer in time"
        except ssl.SSLCertVerificationError as error:
            # Another of its addresses proves no more.
            raise NotSent(
                f"The host {location.host} does not prove who it is: {error.verify_message}. "
                "Nothing was sent."
            ) from None
        except ssl.SSLError:
            problem = "TLS cannot be agreed on"
        except ConnectionRefusedError:
            problem = "the connection is refused"
        except OSError as error:
            problem = f"there is no connection ({type(error).__name__})"
    raise NotSent(f"{location.place} cannot be reached: {problem}. Nothing was sent.")


async def _connected(
    address: Address, port: int, host: str, made: Callable[[], P], tls: ssl.SSLContext | None
) -> P:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003  its only parameter
        await loop.sock_connect(sock, (str(address), port))
        _, protocol = await loop.create_connection(
            made, sock=sock, ssl=tls, server_hostname=host if tls else None
        )
    except BaseException:
        sock.close()
        raise
    return protocol
