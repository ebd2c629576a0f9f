"""What a tool can tell its caller, and ask, while it runs."""

from collections.abc import Mapping
from typing import Any, cast

from toolgate.asked import Question
from toolgate.errors import CannotAsk, InputNeeded
from toolgate.server.mcp.answers import CALL_ID
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.rpc import Params

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
# What a client has to be able to do, to be asked this.
NEEDS: Mapping[str, str] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class ToolLine:
    """The line of one call: notifications on the way, and questions.

    On the older revision a question is a request to the client. On the newer one the call ends with
    it, and is made again with the `answers`.
    """

    def __init__(self, exchange: Exchange, answers: Mapping[str, Any]) -> None:
        self._exchange = exchange
        self._answers = answers

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client said it takes."""
        return self._exchange.peer.capabilities

    @property
    def wants_progress(self) -> bool:
        """Whether the client has named a token for it."""
        token = self._exchange.meta.get("progressToken")
        return type(token) is str or type(token) is int

    @property
    def log_level(self) -> str:
        """What is no level is none that is wanted."""
        wanted = self._exchange.log_level
        return wanted if wanted in LEVELS else ""

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Only where the client wants it."""
        told: dict[str, Any] = {"progress": done}
        if total is not None:
            told["total"] = total
        if message:
            told["message"] = message
        self._tell(told)

    def log(self, level: str, message: Any) -> None:
        """Only from the level on that the client wants."""
        wanted = self.log_level
        # A client's odd word must not fail a tool.
        if not wanted or level not in LEVELS:
            return
        if LEVELS.index(level) >= LEVELS.index(wanted):
            told = {"level": level, "logger": "toolgate.tool", "data": message}
            self._exchange.back.notify("notifications/message", told)

    def queued(self, call_id: str) -> None:
        """Progress that has not begun, with the call's id beside it."""
        self._tell({"progress": 0, "message": f"queued as {call_id}", "_meta": {CALL_ID: call_id}})

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """All of them at once."""
        open_ = {name: one for name, one in questions.items() if not self._is_answered(name)}
        needed = [NEEDS.get(one.method, one.method) for one in open_.values()]
        if missing := tuple(one for one in needed if one not in self.capabilities):
            raise CannotAsk(missing)
        found = {name: self._answers[name] for name in questions if name not in open_}
        if open_ and self._exchange.peer.is_modern:
            raise InputNeeded(
                {name: {"method": one.method, "params": one.params} for name, one in open_.items()}
            )
        for name, one in open_.items():
            found[name] = await self._exchange.back.ask(one.method, one.params)
        return found

    def _tell(self, progress: Params) -> None:
        if self.wants_progress:
            token = self._exchange.meta["progressToken"]
            told = {"progressToken": token, **progress}
            self._exchange.back.notify("notifications/progress", told)

    def _is_answered(self, name: str) -> bool:
        """What is no object is no answer."""
        return type(self._answers.get(name)) is dict


def answers_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a client answers with a call that it makes again; anything odd is no answer."""
    given = params.get("inputResponses")
    if type(given) is not dict:
        return {}
    return {
        name: answer
        for name, answer in cast("dict[str, Any]", given).items()
        if type(answer) is dict
    }
