"""The address that the server takes, and what to do when it cannot have it."""

import errno
import socket
from collections.abc import Mapping

from toolgate import clock
from toolgate.errors import ToolgateError
from toolgate.server.host import is_loopback
from toolgate.settings.settings import Settings
from toolgate.tenancy.tenancy import Tenancy


class CannotListen(ToolgateError):
    """The system refuses the address, for a reason we have no better word for."""

    code = "cannot_listen"
    advice = "Choose another: set [server] host and port, or toolgate serve --port 0"


class AddressInUse(CannotListen):
    """Another process has the port."""

    code = "address_in_use"
    advice = "Stop what uses it, or choose another port: toolgate serve --port 0"


class AddressNotHere(CannotListen):
    """The host is not an address of this machine."""

    code = "address_not_available"
    advice = (
        "This machine has no such address: set [server] host to one it has, such as 127.0.0.1, "
        "and public_url to the address that callers use."
    )


class PortNotPermitted(CannotListen):
    """A port below 1024 needs a permission."""

    code = "port_not_permitted"
    advice = "Ports below 1024 are the system's: choose a higher one, such as --port 8700"


class NotLocked(ToolgateError):
    """Other machines could reach a server that nobody has a key for."""

    code = "no_keys"


_KINDS: Mapping[int | None, type[CannotListen]] = {
    errno.EADDRINUSE: AddressInUse,
    errno.EADDRNOTAVAIL: AddressNotHere,
    errno.EACCES: PortNotPermitted,
}


def listen(host: str, port: int, *, advice: str = "") -> socket.socket:
    """A socket that listens, or `CannotListen`; `advice` where the address is not `[server]`'s."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # Taken from now on: two that start at once cannot both have it.
        listening.listen()
    except OSError as error:
        listening.close()
        # A name that nobody knows has numbers of its own.
        unknown_host = isinstance(error, socket.gaierror)
        kind = AddressNotHere if unknown_host else _KINDS.get(error.errno, CannotListen)
        told = f"Cannot listen on {host}:{port} ({error.strerror}). {advice or kind.advice}"
        raise kind(told) from None
    return listening


def locked(tenancy: Tenancy, settings: Settings) -> None:
    """`NotLocked` where other machines reach the server before anybody has a key for it.

    On this machine the first start makes keys and shows them; elsewhere they would be in its log.
    """
    if is_loopback(settings.server.host) or settings.auth.issuer:
        return
    now_ns = clock.unix_ns()
    if all(key.is_over(now_ns) for key in tenancy.world.keys.values()):
        raise NotLocked(
            f"Other machines can reach {settings.server.host}, and there is no key for this "
            "server. Make one first: toolgate keys add --role admin --tenant NAME --create"
        )
