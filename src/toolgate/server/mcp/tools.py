"""`tools/call`: one call through the gate, whatever the client does meanwhile."""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec
import orjson

from toolgate.call import Output, Turn
from toolgate.caller import Caller
from toolgate.errors import CallRefused, CannotAsk, InputNeeded, ToolgateError, ToolNotFound
from toolgate.executor.bare import bare
from toolgate.executor.people import presence
from toolgate.runtime import Runtime
from toolgate.server.ending import ENDING
from toolgate.server.mcp import answers, person, rpc
from toolgate.server.mcp.answers import KEY
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.line import ToolLine, answers_of
from toolgate.server.mcp.listing import Listing
from toolgate.server.mcp.promised import RETOLD
from toolgate.server.mcp.rpc import INVALID_PARAMS, MISSING_CAPABILITY, Fault, Id, mapping, text
from toolgate.server.mcp.seal import Seal
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

TURN_GROUP = "toolgate/turnGroup"
TURN_ID = "toolgate/turnId"
SESSION = "toolgate/session"
WAIT = "toolgate/waitSeconds"
Finish = Callable[[Exchange, Output], Awaitable[dict[str, Any]]]


class _Round(msgspec.Struct):
    """What one round of questions knows from those before it."""

    key: str | None
    answers: dict[str, Any]
    approval: str = ""
    turn: Turn | None = None
    # What an Output becomes, where it is not the result of `tools/call`.
    finish: Finish | None = None


class Calls:
    """Runs tools for clients."""

    def __init__(self, listing: Listing, seal: Seal) -> None:
        self._listing = listing
        self._seal = seal

    async def call(self, exchange: Exchange) -> dict[str, Any]:
        """The result, or what the client has to answer first."""
        (name, spec), args = self.meant(exchange), mapping(exchange.params, "arguments")
        found = self._round(exchange, name, args, spec)
        return await self._gone_on(exchange, name, args, found, spec)

    async def plainly(self, exchange: Exchange, spec: ToolSpec, id_: Id) -> bytes:
        """The whole answer to a call of a pure tool that says nothing but its arguments.

        What `call` gives, by a straighter way: nearly all calls come by here.
        """
        args = mapping(exchange.params, "arguments")
        try:
            output = await exchange.gate.call(
                spec.name, args, caller=exchange.peer.caller, line=ToolLine(exchange, {})
            )
        except CallRefused as error:
            return rpc.result(id_, _refused(error, exchange, _Round(None, {})))
        if output.error is None and exchange.gate.features.structured_tool_output:
            shape = self._listing.shape(spec)
            if shape.is_bare:
                written = answers.written(id_, output, has_output=shape.has_output, fits=shape.fits)
                if written is not None:
                    return written
        found = _Round(None, {})
        told = await self._told(exchange, spec.name, args, found, output, spec)
        return rpc.result(id_, told)

    async def standing(
        self, exchange: Exchange, spec: ToolSpec, args: dict[str, Any], finish: Finish
    ) -> dict[str, Any]:
        """What `finish` makes of a call of the tool that stands for something else: a resource, a
        prompt. It may ask its client, as any call; a refusal is a fault.
        """
        found = self._round(exchange, spec.name, args, spec)
        found.finish = finish
        return await self._gone_on(exchange, spec.name, args, found, spec)

    async def _gone_on(
        self,
        exchange: Exchange,
        name: str,
        args: dict[str, Any],
        found: _Round,
        spec: ToolSpec | None,
    ) -> dict[str, Any]:
        """Run it, unless the person whom the client asked has said anything but yes."""
        said = found.answers.get(person.NAME)
        if said is not None and found.approval and person.word(said) is not True:
            return await self._unwanted(exchange, name, found, said)
        output = await self._run(exchange, name, args, found)
        return await self._told(exchange, name, args, found, output, spec)

    async def _unwanted(
        self, exchange: Exchange, name: str, found: _Round, said: Any
    ) -> dict[str, Any]:
        """Nothing runs, also where somebody else agreed meanwhile. It waits on: who asks their user
        the same again and again would never end.
        """
        await person.decided(exchange, found.approval, said)
        return _refused(person.refusal(name, said, found.approval), exchange, found)

    async def _told(
        self,
        exchange: Exchange,
        name: str,
        args: dict[str, Any],
        found: _Round,
        output: Output | ToolgateError,
        spec: ToolSpec | None,
    ) -> dict[str, Any]:
        """What became of a call, or what has to be answered before it can go on."""
        if isinstance(output, ToolgateError):
            return _refused(output, exchange, found)
        asked = person.waits_for(output)
        if asked:
            return await self._person(exchange, name, args, found, asked, output)
        if output.error is not None and output.error.code in _QUESTIONS:
            return await self._questions(exchange, name, args, found, output)
        return await self._finished(exchange, output, spec, found)

    def _queued(
        self, exchange: Exchange, output: Output, spec: ToolSpec | None, found: _Round
    ) -> dict[str, Any]:
        """Who takes no task for it is told how to ask later."""
        modern = exchange.peer.is_modern
        shape = None if spec is None or spec.provider not in RETOLD else self._listing.shape(spec)
        # Another server's schema knows of no queue, and a client that checks would raise.
        is_held = shape is not None and (shape.has_output if modern else shape.has_older_output)
        # What changes nothing is run again for whoever asks again.
        once = found if _changes(spec) else _Round(None, {})
        return answers.queued(
            output, key=once.key, turn=once.turn, modern=modern, structured=not is_held
        )

    def meant(self, exchange: Exchange) -> tuple[str, ToolSpec | None]:
        """The tool, by its own name or by the one that it is listed under."""
        name = text(exchange.params, "name")
        snapshot = exchange.gate.catalog.current
        spec = snapshot.get(name)
        if spec is None:
            meant = self._listing.meant(snapshot, name)
            return (name, None) if meant is None else (meant, snapshot.get(meant))
        return name, spec

    async def _finished(
        self,
        exchange: Exchange,
        output: Output,
        spec: ToolSpec | None,
        found: _Round,
    ) -> dict[str, Any]:
        if found.finish is not None:
            return await found.finish(exchange, output)
        if output.status == "queued":
            return self._queued(exchange, output, spec, found)
        return self.told(exchange.gate, output, spec, modern=exchange.peer.is_modern)

    def told(
        self, gate: Runtime, output: Output, spec: ToolSpec | None, *, modern: bool
    ) -> dict[str, Any]:
        """How a call ended, as the result of its tool."""
        if not gate.features.structured_tool_output and output.error is None:
            output = msgspec.structs.replace(output, data=bare(output))
        of_server = spec is not None and spec.provider in RETOLD
        if spec is not None:
            shape = self._listing.shape(spec)
            # What the client was promised nothing of is held against nothing.
            spec = spec if (shape.has_output if modern else shape.has_older_output) else None
        return answers.finished(output, spec, modern=modern, of_server=of_server)

    async def _run(
        self, exchange: Exchange, name: str, args: dict[str, Any], found: _Round
    ) -> Output | ToolgateError:
        """An Output, or why nothing ran."""
        wait_s = _seconds(exchange.meta)
        with _patient() if wait_s else nullcontext():
            try:
                return await exchange.gate.call(
                    name,
                    args,
                    caller=_caller(exchange),
                    turn=found.turn,
                    idempotency_key=found.key,
                    wait_s=wait_s,
                    line=ToolLine(exchange, found.answers),
                )
            except CallRefused as error:
                return error

    def _round(
        self, exchange: Exchange, name: str, args: dict[str, Any], spec: ToolSpec | None
    ) -> _Round:
        """What this request goes on with. A side effect has a key from its first round on, so that
        no other request with the same state can make it happen again.
        """
        params, meta = exchange.params, exchange.meta
        found = _Round(_word(meta, KEY), {}, turn=_turn(meta))
        state = params.get("requestState")
        if state is not None:
            if type(state) is not str:
                raise Fault(INVALID_PARAMS, "'requestState' is a text.")
            kept = self._seal.open(state, _bound(exchange, name, args))
            found = _joined(found, kept)
        found.answers |= answers_of(params)
        if found.key is None and found.turn is None and _changes(spec):
            found.key = f"mcp.{secrets.token_urlsafe(18)}"
        return found

    async def _person(
        self,
        exchange: Exchange,
        name: str,
        args: dict[str, Any],
        found: _Round,
        approval: str,
        output: Output,
    ) -> dict[str, Any]:
        """The client puts it to them: by a request on the older revision, by its next call on the
        newer one. Where it cannot, the result says where to go.
        """
        modern = exchange.peer.is_modern
        said = found.answers.pop(person.NAME, None)
        if modern and said is not None and found.approval == approval:
            await person.decided(exchange, approval, said)
            again = await self._run(exchange, name, args, found)
            if isinstance(again, ToolgateError):
                return _refused(again, exchange, found)
            spec = exchange.gate.catalog.current.get(name)
            return await self._finished(exchange, again, spec, found)
        form = await person.question(exchange, approval)
        if form is None:
            return await self._finished(exchange, output, None, found)
        if modern:
            found.approval = approval
            asked = {person.NAME: {"method": "elicitation/create", "params": form}}
            return self._ask(exchange, name, args, found, asked)
        said = await exchange.back.ask("elicitation/create", form)
        await person.decided(exchange, approval, said)
        if person.word(said) is not True:
            return _refused(person.refusal(name, said, approval), exchange, found)
        again = await self._run(exchange, name, args, found)
        if isinstance(again, ToolgateError):
            return _refused(again, exchange, found)
        spec = exchange.gate.catalog.current.get(name)
        return await self._finished(exchange, again, spec, found)

    async def _questions(
        self,
        exchange: Exchange,
        name: str,
        args: dict[str, Any],
        found: _Round,
        output: Output,
    ) -> dict[str, Any]:
        """What a tool asks."""
        assert output.error is not None  # noqa: S101  its caller has looked
        if not exchange.peer.is_modern:
            return await self._finished(exchange, output, None, found)
        if output.error.code == CannotAsk.code:
            needed = output.error.details.get("needed", [])
            raise Fault(
                MISSING_CAPABILITY,
                output.error.message,
                {"requiredCapabilities": {one: {} for one in needed}},
            )
        return self._ask(exchange, name, args, found, output.error.details["questions"])

    def _ask(
        self,
        exchange: Exchange,
        name: str,
        args: dict[str, Any],
        found: _Round,
        questions: Mapping[str, Any],
    ) -> dict[str, Any]:
        kept = {
            "key": found.key,
            "answers": found.answers,
            "approval": found.approval,
            "group": "" if found.turn is None else found.turn.group,
            "turn": "" if found.turn is None else found.turn.id,
            # Another one each time.
            "round": secrets.token_hex(4),
        }
        return {
            "resultType": "input_required",
            "inputRequests": dict(questions),
            "requestState": self._seal.close(kept, _bound(exchange, name, args)),
        }


@contextmanager
def _patient() -> Generator[None]:
    """Who waits for a person waits no longer than the server is there, and asks again elsewhere."""
    left = asyncio.Event()
    with presence.until(left), ENDING.told(left.set):
        yield


_QUESTIONS = frozenset({InputNeeded.code, CannotAsk.code})


def _joined(given: _Round, kept: Mapping[str, Any]) -> _Round:
    """This request and the state that it goes on with: one turn and one key for all rounds of a
    call. With another it would be another call, and could happen beside the first.
    """
    turn = Turn(group=kept["group"], id=kept["turn"]) if kept.get("group") else None
    if given.turn is not None and given.turn != turn:
        raise _strange(TURN_GROUP)
    if given.key is not None and given.key != kept.get("key"):
        raise _strange(KEY)
    return _Round(kept.get("key"), kept["answers"], kept.get("approval", ""), turn)


def _strange(name: str) -> Fault:
    return Fault(
        INVALID_PARAMS,
        f"This 'requestState' is of a call with another {name!r}. Nothing ran: send what the first "
        "request had, or begin anew without the state.",
    )


def _refused(error: ToolgateError, exchange: Exchange, found: _Round) -> dict[str, Any]:
    if isinstance(error, ToolNotFound):
        # By the name that was sent: which tool a listed one stands for is for those who may see it.
        sent = error if found.finish is not None else ToolNotFound(text(exchange.params, "name"))
        raise Fault(INVALID_PARAMS, sent.message)
    if found.finish is not None:
        # Only the result of a tool can say it in words.
        raise Fault(INVALID_PARAMS, error.message, {"code": error.code})
    return answers.refused(error, modern=exchange.peer.is_modern)


def _changes(spec: ToolSpec | None) -> bool:
    return spec is not None and spec.effect is not Effect.PURE


def _bound(exchange: Exchange, name: str, args: dict[str, Any]) -> str:
    """Whose state it is, and of which call."""
    try:
        raw = orjson.dumps(args, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        raise Fault(INVALID_PARAMS, "'arguments' is no JSON that can be sent.") from None
    return f"{exchange.peer.key.id}\0{name}\0{hashlib.sha256(raw).hexdigest()}"


def _caller(exchange: Exchange) -> Caller:
    session = _word(exchange.meta, SESSION)
    caller = exchange.peer.caller
    return caller if session is None else msgspec.structs.replace(caller, session=session)


def _turn(meta: Mapping[str, Any]) -> Turn | None:
    group = _word(meta, TURN_GROUP)
    return None if group is None else Turn(group=group, id=_word(meta, TURN_ID) or "")


def _seconds(meta: Mapping[str, Any]) -> float | None:
    given = meta.get(WAIT)
    if given is None or (isinstance(given, (int, float)) and type(given) is not bool):
        return given
    raise Fault(INVALID_PARAMS, f"{WAIT!r} in '_meta' is a number of seconds.")


def _word(meta: Mapping[str, Any], name: str) -> str | None:
    given = meta.get(name)
    if given is None:
        return None
    if type(given) is not str or not 0 < len(given) <= 256 or not given.isprintable():
        raise Fault(
            INVALID_PARAMS, f"{name!r} in '_meta' is a visible text of at most 256 characters."
        )
    return given
