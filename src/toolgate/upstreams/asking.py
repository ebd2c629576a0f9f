"""What a server asks of us. Who may be asked is the operator's to say; else it is refused."""

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import orjson

from toolgate.asked import Line, Question
from toolgate.errors import CannotAsk, InputNeeded, ToolError
from toolgate.protocol import METHOD_NOT_FOUND
from toolgate.upstreams.message import Fault, FaultError, Json

ELICIT = "elicitation/create"
# What a caller's client has to be able to do, to be asked this.
_NEEDS: Mapping[str, str] = {
    ELICIT: "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_MOST_QUESTIONS = 20


class Asking:
    """Questions of one server. `asks` is what it may ask for, as clients say what they take."""

    def __init__(self, server: str, asks: frozenset[str]) -> None:
        self._server = server
        self._asks = asks

    async def request(self, method: str, params: Json, line: Line | None) -> Json:
        """The answer to a request on the older revision.

        `InputNeeded` where the caller answers by calling again: what runs now cannot wait for it.
        """
        if method == "ping":
            return {}
        needed = _NEEDS.get(method)
        if needed not in self._asks:
            raise FaultError(Fault(METHOD_NOT_FOUND, "This client does not take that request."))
        if line is None or needed not in line.capabilities:
            return _declined(method)
        # By what it asks: who calls again with the answers is asked the same in the same order.
        name = f"ask.{_digest(method, params)}"
        try:
            said = await line.ask({name: Question(method, params)})
        except InputNeeded:
            raise
        except ToolError:
            return _declined(method)
        return _answer(said.get(name), method, params)

    async def inputs(
        self, asked: Mapping[str, Any], line: Line | None, before: dict[str, str]
    ) -> Json:
        """The answers to what a result of the newer revision asks for, by name.

        `before` is what earlier rounds of the same call have asked: a name that comes again for
        something else must not get the answer of the first.
        """
        questions: dict[str, Question] = {}
        names: dict[str, str] = {}
        for name, one in asked.items():
            given = _mapping(one)
            method, params = given.get("method"), _mapping(given.get("params"))
            if type(method) is not str or _NEEDS.get(method) not in self._asks or line is None:
                raise self._refused(str(method)[:60])
            digest = _digest(method, params)
            known = name if before.setdefault(name, digest) == digest else f"{name}.{digest}"
            names[name] = known
            questions[known] = Question(method, params)
        if len(questions) > _MOST_QUESTIONS:
            raise ToolError(f"The MCP server {self._server!r} asks too much at once. Nothing ran.")
        if line is None:
            return {}
        needed = dict.fromkeys(_NEEDS[one.method] for one in questions.values())
        missing = tuple(one for one in needed if one not in line.capabilities)
        if missing:
            raise CannotAsk(missing)
        said = await line.ask(questions)
        return {
            name: _answer(said.get(known), questions[known].method, questions[known].params)
            for name, known in names.items()
        }

    def _refused(self, method: str) -> ToolError:
        named = _NEEDS.get(method, "elicitation")
        return ToolError(
            f"The MCP server {self._server!r} asks for {method}, which is not given to it. Nothing "
            f"ran. An operator can allow it: {named} = true in its settings."
        )


def _digest(method: str, params: Json) -> str:
    raw = orjson.dumps([method, params], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(raw).hexdigest()[:12]


def _declined(method: str) -> Json:
    if method == ELICIT:
        return {"action": "decline"}
    raise FaultError(Fault(METHOD_NOT_FOUND, "Whoever calls does not take that request."))


def _answer(answer: Any, method: str, params: Json) -> Json:
    if method == ELICIT:
        return _filled(answer, params)
    return _mapping(answer)


def _filled(answer: Any, params: Json) -> Json:
    """An answer, with the defaults of the form where a person left something out."""
    if type(answer) is not dict:
        return {"action": "decline"}
    said = cast("Json", answer)
    if said.get("action") != "accept":
        return said
    filled = dict(_mapping(said.get("content")))
    fields = _mapping(_mapping(params.get("requestedSchema")).get("properties"))
    for name, field in fields.items():
        if "default" in _mapping(field):
            filled.setdefault(name, field["default"])
    return {**said, "content": filled}


def _mapping(given: Any) -> Json:
    return cast("Json", given) if type(given) is dict else {}
