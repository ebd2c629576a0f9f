"""Network: to reach a listener of this machine, by whatever way there is."""

import os
import socket

from tests.sandbox.escapes.deed import Told, deed

_SECONDS = 2.0


def _greeted(family: int, kind: int, place: object) -> bool:
    with socket.socket(family, kind) as line:
        line.settimeout(_SECONDS)
        if kind == socket.SOCK_DGRAM and family == socket.AF_UNIX:
            line.bind("")
        line.connect(place)  # pyright: ignore[reportArgumentType] - each family has its own
        line.send(b"hello")
        return line.recv(5) == b"hello"


@deed
def tcp(told: Told) -> bool:
    return _greeted(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", told["tcp"]))


@deed
def tcp_to_any_address(told: Told) -> bool:
    return _greeted(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", told["tcp"]))  # noqa: S104


@deed
def tcp_to_another_loopback(told: Told) -> bool:
    return _greeted(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.2", told["tcp"]))


@deed
def tcp6(told: Told) -> bool:
    return _greeted(socket.AF_INET6, socket.SOCK_STREAM, ("::1", told["tcp6"]))


@deed
def tcp_mapped(told: Told) -> bool:
    return _greeted(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", told["tcp"]))


@deed
def tcp_by_name(told: Told) -> bool:
    with socket.create_connection(("localhost", told["tcp"]), timeout=_SECONDS) as line:
        line.send(b"hello")
        return line.recv(5) == b"hello"


@deed
def udp(told: Told) -> bool:
    return _greeted(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", told["udp"]))


@deed
def udp6(told: Told) -> bool:
    return _greeted(socket.AF_INET6, socket.SOCK_DGRAM, ("::1", told["udp6"]))


@deed
def ask_a_resolver(told: Told) -> bool:
    question = b"\x12\x34\x01\x00\x00\x01" + b"\0" * 6 + b"\x04test\0\0\x01\0\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(_SECONDS)
        line.connect(("127.0.0.1", told["udp"]))
        line.send(question)
        return line.recv(512)[:2] == b"\x12\x34"


@deed
def unix(told: Told) -> bool:
    return _greeted(socket.AF_UNIX, socket.SOCK_STREAM, told["unix"])


@deed
def ask_an_engine_of_containers(told: Told) -> bool:
    return _greeted(socket.AF_UNIX, socket.SOCK_STREAM, told["engine"])


@deed
def ask_an_engine_by_its_older_path(told: Told) -> bool:
    place = told["engine"]
    older = f"/var{place}" if place.startswith("/run/") else place
    return _greeted(socket.AF_UNIX, socket.SOCK_STREAM, older)


@deed
def unix_abstract(told: Told) -> bool:
    return _greeted(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + told["abstract"])


@deed
def unix_abstract_datagram(told: Told) -> bool:
    return _greeted(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + told["abstract_datagram"])


@deed
def netlink(_: Told) -> bool:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as line:
        line.bind((0, 0))
        return True


@deed
def icmp(_: Told) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as line:
        line.settimeout(_SECONDS)
        line.sendto(b"\x08\0\xf7\xff\0\0\0\0", ("127.0.0.1", 0))
        return bool(line.recv(99))


@deed
def packets(_: Told) -> bool:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close()
    return True


@deed
def to_the_host_of_the_machine(_: Told) -> bool:
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


@deed
def serve_on_the_port_of_another(told: Told) -> bool:
    """Where the network is shared, the port is taken; else nobody outside would come."""
    with socket.socket() as line:
        try:
            line.bind(("127.0.0.1", told["tcp"]))
        except OSError as error:
            return error.errno == 98
        return False


@deed
def name_the_machine(_: Told) -> bool:
    socket.sethostname(socket.gethostname())
    return True


@deed
def know_the_machine(told: Told) -> bool:
    return os.uname().nodename == told["host"]
