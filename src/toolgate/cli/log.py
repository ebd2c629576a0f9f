"""The server's log on stderr. An error is told by kind and place: its text can hold anything."""

import asyncio
import logging
import sys
from typing import Any

from toolgate.settings.execution import Telemetry
from toolgate.telemetry.lines import Brief, JsonLines, shown

log = logging.getLogger("toolgate")


def to_stderr() -> logging.Handler:
    """Warnings and worse, and word of a policy that has changed."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Brief())
    logging.basicConfig(handlers=[handler])
    logging.getLogger("toolgate.policy").setLevel(logging.INFO)
    return handler


def to_nobody() -> None:
    """For a command whose answer is what a warning would say."""
    log.addHandler(logging.NullHandler())


def follow(handler: logging.Handler, telemetry: Telemetry) -> None:
    """From here on as the settings say."""
    if telemetry.log == "json":
        handler.setFormatter(JsonLines())
    log.setLevel(telemetry.level.upper())
    policy = logging.getLogger("toolgate.policy")
    policy.setLevel(min(logging.INFO, log.level))


def unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no task waited for. The loop's own words would quote the error."""
    error = context.get("exception")
    log.error("an error that nobody waited for: %s", shown(error))
