"""What a server says beside its answers: notes on the way, and questions of its own."""

from collections.abc import Coroutine
from typing import Any

from toolgate.asked import Line
from toolgate.protocol import INTERNAL_ERROR
from toolgate.upstreams import message
from toolgate.upstreams.message import Fault, FaultError, Json, params_of
from toolgate.upstreams.wire import Ear

LEVELS = frozenset(
    {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
)
_MOST_TEXT = 10_000
# An id comes back with the answer.
_MOST_ID = 256


class Beside:
    """Takes each such message to whom it is for."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear

    def heard(
        self, said: Json, line: Line | None, id_of: int | None = None
    ) -> Coroutine[Any, Any, bytes] | None:
        """One message that is no answer. Where it has to be answered: how.

        `id_of` is the request on whose stream it came: progress names the one that it is of.
        """
        method, id_ = said.get("method"), said.get("id")
        if type(method) is not str:
            return None
        params = params_of(said)
        if type(id_) is str and len(id_) > _MOST_ID:
            return None
        if type(id_) is int or type(id_) is str:
            return self._reply(id_, method, params, line)
        if method == "notifications/progress":
            if line is not None and (id_of is None or params.get("progressToken") == id_of):
                _progress(params, line)
        elif method == "notifications/message":
            if line is not None:
                _log(params, line)
        else:
            self._ear.noted(method, params)
        return None

    async def _reply(self, id_: int | str, method: str, params: Json, line: Line | None) -> bytes:
        try:
            return message.result(id_, await self._ear.asked(method, params, line))
        except FaultError as error:
            return message.error(id_, error.fault)
        except TypeError:
            # An answer that is no JSON.
            return message.error(id_, Fault(INTERNAL_ERROR, "There is no answer."))


def _progress(params: Json, line: Line) -> None:
    done, total, told = params.get("progress"), params.get("total"), params.get("message")
    if type(done) is not int and type(done) is not float:
        return
    known = total if type(total) is int or type(total) is float else None
    line.progress(done, known, told[:_MOST_TEXT] if type(told) is str else "")


def _log(params: Json, line: Line) -> None:
    level = params.get("level")
    line.log(level if type(level) is str and level in LEVELS else "info", params.get("data"))
