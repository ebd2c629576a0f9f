"""A server's answer that a command cannot show: an error of ours, and no trace."""

from typing import NoReturn

from toolgate.cli.session import ending
from toolgate.client.reading import misread


def tell(error: Exception, *, json: bool) -> NoReturn:
    """Say so, and end with 1."""
    with ending(json=json):
        raise misread(error)
    raise AssertionError("an error always ends the command")
