"""Whether a server's health page on loopback answers 200."""

from http.client import HTTPConnection, HTTPException

from tests.servers.process import LOOPBACK


def is_healthy(port: int, path: str) -> bool:
    connection = HTTPConnection(LOOPBACK, port, timeout=1.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except HTTPException:
        return False
    finally:
        connection.close()
