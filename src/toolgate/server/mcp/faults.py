"""What went wrong, as the fault that a client is told."""

import logging

from toolgate.errors import ToolgateError
from toolgate.server.mcp.rpc import INTERNAL_ERROR, Fault
from toolgate.telemetry.place import kind_of, place_of

log = logging.getLogger("toolgate.server")


def told(error: ToolgateError) -> Fault:
    """An error of ours where only a fault can tell it."""
    return Fault(INTERNAL_ERROR, error.message, {"code": error.code})


def fault_of(error: BaseException, method: str) -> Fault:
    """Whatever it is. What nobody expected is in the log, and the client hears no more of it."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, ToolgateError):
        return told(error)
    log.error("%s failed with %s in %s", method, kind_of(error), place_of(error))
    return Fault(INTERNAL_ERROR, "Something went wrong here; it is in the log.")
