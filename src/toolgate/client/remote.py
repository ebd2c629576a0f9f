"""Remote: a gate on a server, with the verbs of one in this process.

A call is sent again after a lost connection only where the server knows it again: by its turn, by
its caller's key, or by one that is made for it here.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NoReturn, cast
from urllib.parse import quote

import msgspec

from toolgate.call import Output, Turn
from toolgate.caller import Caller
from toolgate.client.identity import Me, own_caller, sent_task, sent_turn
from toolgate.client.listening import Listening
from toolgate.client.looking import Looking, Outside, sent_query
from toolgate.client.reading import read, read_chain, read_output
from toolgate.client.sending import Sending
from toolgate.client.wire import Wire
from toolgate.errors import InvalidRequest, PermissionDenied, ServerUnreachable
from toolgate.executor.aftercare.report import Report
from toolgate.executor.bare import barely
from toolgate.executor.recording.claim import check_key, check_wait
from toolgate.executor.several.batch import Batch
from toolgate.executor.several.chain import Chain
from toolgate.executor.several.steps import Mode
from toolgate.gate.decision import Explanation
from toolgate.spec.tool import ToolSpec
from toolgate.toolbox import Toolbox

_ABOUT = ("tenant", "agent", "user", "persona")


class Remote:
    """A gate on a server. `caller` may be left out everywhere: it is the key's own."""

    def __init__(self, wire: Wire, me: Me) -> None:
        self._wire = wire
        self._me = me
        self._looking = Looking(wire, self._asked)
        self._listening: set[Listening] = set()
        self.caller = me.caller()
        # How many calls may be asked for at once.
        self.most_calls = me.most_calls

    def add(self, *functions: Callable[..., Any], **_fields: Any) -> NoReturn:
        """A function of this process does not run on a server."""
        names = ", ".join(getattr(one, "__name__", "?") for one in functions)
        raise InvalidRequest(
            f"A function of this process does not run on a server: {names[:200] or 'none given'}. "
            "Name it in a tool file there, with its module."
        )

    async def discover(self, caller: Caller | None = None) -> tuple[ToolSpec, ...]:
        """Exactly what the caller may call, by name."""
        return (await self._looking.listed(self._own(caller))).specs

    async def call(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        caller: Caller | None = None,
        turn: Turn | None = None,
        idempotency_key: str | None = None,
        wait_s: float | None = None,
    ) -> Output:
        """Run a tool once, as `Toolgate.call`: refusals are raised, failures are an Output.

        An answer that was lost is asked for again. Where none comes at all, `ServerUnreachable` has
        the `idempotency_key` in its details: the same call with it does not run twice.
        """
        body = _call(tool, args) | self._around(caller, turn)
        key = key_for(turn) if idempotency_key is None else check_key(idempotency_key)
        if key is not None:
            body["idempotency_key"] = key
        if wait_s is not None:
            body["wait_s"] = check_wait(wait_s)
        try:
            told = await self._posted("/v1/call", body, wait_s=wait_s or 0.0)
        except ServerUnreachable as error:
            error.details["idempotency_key"] = key
            raise
        return read_output(told, is_structured=self._me.structured_tool_output)

    async def batch(
        self, calls: Sequence[object], *, caller: Caller | None = None, turn: Turn | None = None
    ) -> Batch:
        """Run calls in order, until a critical one fails, as `Toolgate.batch`."""
        body = {"calls": _each(calls, turn)} | self._around(caller, turn)
        return read(await self._posted("/v1/batch", body), Batch)

    async def chain(
        self,
        steps: Sequence[object],
        *,
        caller: Caller | None = None,
        turn: Turn | None = None,
        mode: Mode = "parallel",
        parallel_mutations: bool = False,
        undo_on_failure: bool = False,
    ) -> Chain:
        """Run steps that may use each other's results, as `Toolgate.chain`."""
        body = {
            "steps": _each(steps, turn),
            "mode": mode,
            "parallel_mutations": parallel_mutations,
            "undo_on_failure": undo_on_failure,
        } | self._around(caller, turn)
        return read_chain(await self._posted("/v1/chain", body))

    async def undo(
        self,
        *,
        caller: Caller | None = None,
        call_id: str | None = None,
        turn_group: str | None = None,
        chain: str | None = None,
        reason: str = "",
    ) -> Report:
        """Take back what this key's caller did, as `Toolgate.undo`."""
        named = {"call_id": call_id, "turn_group": turn_group, "chain": chain}
        body = {name: of for name, of in named.items() if of is not None}
        body |= sent_task(self._own(caller)) | ({"reason": reason} if reason else {})
        return read(await self._posted("/v1/undo", body), Report)

    async def explain(
        self,
        tool: str,
        *,
        caller: Caller | None = None,
        args: dict[str, Any] | None = None,
        turn: Turn | None = None,
    ) -> Explanation:
        """Every phase's verdict. An agent's key may ask about what it sees; an admin's about
        anybody, whom the caller then names.
        """
        about = self._own(caller) if caller is None or self._me.role == "agent" else caller
        query: dict[str, Any] = {name: getattr(about, name) or None for name in _ABOUT}
        query["role"] = list(about.roles) or None
        query |= sent_query(about)
        if args is not None:
            query["args"] = msgspec.json.encode(args).decode()
        if turn is not None:
            query["turn_group"] = cast("dict[str, str]", sent_turn(turn))["group"]
        path = f"/v1/tools/{quote(tool, safe='')}/explain"
        return read(await self._asked(path, query), Explanation)

    def events(self, tenant: str | None = None) -> Listening:
        """What happens from now on, of the key's own tenant: `async for event in gate.events()`."""
        made = Listening(self._wire, tenant)
        self._listening.add(made)
        made.when_over(self._listening.discard)
        return made

    def toolbox(self, caller: Caller | None = None, turn: Turn | None = None) -> Toolbox:
        """What one agent holds during a turn, as `Toolgate.toolbox`.

        What needs no `await` is told from a list that is looked at again and again; with a session
        or a context of its own, `await box.refresh()` comes first. A call is always decided there.
        """
        own = self._own(caller)
        sent_turn(turn)
        run = self.call if self._me.structured_tool_output else barely(self.call)
        return Toolbox(Outside(self._looking, own), run, own, turn, together=self)

    async def close(self) -> None:
        """Nothing is listened to any more."""
        for one in list(self._listening):
            await one.aclose()

    async def look(self) -> None:
        """Ask what the key may call, and keep it for toolboxes."""
        await self._looking.look(self.caller)

    async def keep_looking(self) -> None:
        """Look again and again."""
        await self._looking.keep_looking(self.caller)

    def _own(self, caller: Caller | None) -> Caller:
        return own_caller(self.caller, caller)

    def _around(self, caller: Caller | None, turn: Turn | None) -> dict[str, Any]:
        sent = sent_turn(turn)
        return sent_task(self._own(caller)) | ({} if sent is None else {"turn": sent})

    async def _asked(self, path: str, query: dict[str, Any]) -> Any:
        """A question: it changes nothing, so it can always be asked again."""
        timeout = self._wire.timeout
        sending = Sending(repeatable=True, seconds=timeout, wait_s=timeout)
        return await sending.run(
            lambda left: self._wire.request("GET", path, query=query, seconds=min(left, timeout))
        )

    async def _posted(self, path: str, body: dict[str, Any], *, wait_s: float = 0.0) -> Any:
        """Whatever is sent here is known again by the server."""
        sending = Sending(repeatable=True, seconds=self._wire.timeout, wait_s=wait_s)
        return await sending.run(
            lambda left: self._wire.request("POST", path, body=body, seconds=left)
        )


@asynccontextmanager
async def connected(wire: Wire) -> AsyncGenerator[Remote]:
    """The gate behind a wire, until the end of the block; the wire ends with it."""
    async with wire:
        me = read(await wire.request("GET", "/v1/me"), Me)
        remote = Remote(wire, me)
        # Some keys look after calls, and make none.
        with suppress(PermissionDenied):
            await remote.look()
        looking = asyncio.create_task(remote.keep_looking())
        try:
            yield remote
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            await remote.close()


def _call(tool: object, args: object) -> dict[str, Any]:
    if type(tool) is not str or not tool:
        raise InvalidRequest("Name the tool: await gate.call('echo', {'text': 'hi'}).")
    if args is None:
        return {"tool": tool, "args": {}}
    if type(args) is not dict:
        raise InvalidRequest(
            f"Arguments are an object of names and values, not a {type(args).__name__}."
        )
    return {"tool": tool, "args": args}


def key_for(turn: Turn | None) -> str | None:
    """A key for a call that nothing else names: in a turn, the server knows it by its business."""
    return None if turn is not None else f"sent-{secrets.token_hex(16)}"


def _each(given: object, turn: Turn | None) -> object:
    """Calls as they are sent, each with a key where nothing else names it.

    What is no list of calls is sent as it is: the server says what is wrong with it.
    """
    if isinstance(given, (list, tuple)):
        return [_named(one, turn) for one in cast("Sequence[object]", given)]
    return given


def _named(one: object, turn: Turn | None) -> object:
    told = msgspec.to_builtins(one) if isinstance(one, msgspec.Struct) else one
    if not isinstance(told, dict):
        return told
    fields = cast("dict[str, Any]", told)
    key = key_for(turn) if fields.get("idempotency_key") is None else None
    return fields if key is None else {**fields, "idempotency_key": key}
