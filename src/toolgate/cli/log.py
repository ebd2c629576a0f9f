"""The server's log on stderr. An error is told by kind and place: its text can hold anything."""

import asyncio
import logging
import sys
from typing import Any

from toolgate.server.place import kind_of, place_of

log = logging.getLogger("toolgate")
# What would begin another line, or speak to the terminal.
_CONTROL = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class _Brief(logging.Formatter):
    """Also for records of libraries, which log whole traces."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the name is logging's
        """One line, whatever names it was given."""
        return super().formatMessage(record).translate(_CONTROL)

    def formatException(self, ei: Any) -> str:  # noqa: N802  the name is logging's
        """Kind and place."""
        return _shown(ei[1])

    def formatStack(self, stack_info: str) -> str:  # noqa: ARG002, N802  the name is logging's
        """Nothing."""
        return ""


def to_stderr() -> None:
    """Warnings and worse, and word of a policy that has changed."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Brief("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("toolgate.policy").setLevel(logging.INFO)


def unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no task waited for. The loop's own words would quote the error."""
    error = context.get("exception")
    log.error("an error that nobody waited for: %s", _shown(error))


def _shown(error: BaseException | None) -> str:
    return "unknown" if error is None else f"{kind_of(error)} in {place_of(error)}"
