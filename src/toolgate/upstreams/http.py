"""Streamable HTTP: a request is a POST, its answer one JSON body or a stream that ends with it."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NoReturn, cast

from toolgate import clock
from toolgate.asked import Line
from toolgate.errors import InputNeeded
from toolgate.net.client import HttpClient, Streaming
from toolgate.net.errors import Late, NotSent
from toolgate.net.headers import Fixed
from toolgate.protocol import INVALID_REQUEST
from toolgate.upstreams import body as body_of
from toolgate.upstreams import headers as repeating
from toolgate.upstreams import message, revision
from toolgate.upstreams.aside import Aside, quietly
from toolgate.upstreams.beside import Beside
from toolgate.upstreams.callers import Callers
from toolgate.upstreams.cover import Cover
from toolgate.upstreams.failures import (
    UNREACHED,
    AwayError,
    BegunAnewError,
    BusyError,
    Ending,
)
from toolgate.upstreams.flood import ENDLESS, Flood
from toolgate.upstreams.hearing import Hearing
from toolgate.upstreams.message import Fault, FaultError, Json
from toolgate.upstreams.phrases import Phrases
from toolgate.upstreams.refusals import (
    Challenge,
    ChallengedError,
    MovedError,
    SessionGoneError,
    moved_to,
    refusal,
)
from toolgate.upstreams.streamed import Streamed
from toolgate.upstreams.wire import Ear, Welcome

MOST = 32 * 1024 * 1024
_ACCEPT = "application/json, text/event-stream"
_STREAM = "text/event-stream"
_JSON = "application/json"
_MOST_KEPT = 20_000
_MOST_MOVES = 3
_LAST_WORDS = 5.0


class Http:
    """One server by its address. Connections are the client's, and kept by it."""

    def __init__(
        self,
        url: str,
        client: HttpClient,
        ear: Ear,
        *,
        headers: Mapping[str, str],
        asks: frozenset[str] = frozenset(),
        challenge: Challenge | None = None,
    ) -> None:
        """`headers` go to this address and to no other."""
        self.url = url
        self.client = client
        self.ear = ear
        self._given = dict(headers)
        self._asks = asks
        self._challenge = challenge
        self.cover = self._covering()
        self._session = ""
        self._ids = 0
        self._params: Mapping[str, Mapping[tuple[str, ...], str]] = {}
        self._welcome = Welcome(version="", is_modern=True, capabilities={}, info={})
        self._phrases = Phrases(is_modern=True, asks=asks)
        self._heads: dict[str, Fixed] = {}
        self._aside = Aside()
        # Who could be asked what a server asks beside its calls; kept only where that is allowed.
        self._callers = Callers()
        self.flood = Flood()
        self.signs = 0
        self.beside = Beside(ear)
        self._hearing: Hearing | None = None
        self._renewing: asyncio.Task[None] | None = None
        self.renew: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.gone: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    @property
    def welcome(self) -> Welcome:
        """What its server said of itself."""
        return self._welcome

    def adopt(self, welcome: Welcome) -> None:
        """From now on its revision is spoken."""
        self._welcome = welcome
        self._phrases = Phrases(is_modern=welcome.is_modern, asks=self._asks)
        self._heads.clear()
        if not welcome.version:
            self._session = ""
            self._callers.forget()

    def repeat(self, headers: Mapping[str, Mapping[tuple[str, ...], str]]) -> None:
        """Arguments that stand in headers too, by tool; only the newer revision has them."""
        self._params = headers if self._welcome.is_modern else {}

    async def call(
        self,
        tool: str,
        args: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """Nearly all requests are this one."""
        if self._renewing is not None:
            await self._begun_anew(self._session)
        id_ = self._ids = self._ids + 1
        body = self._phrases.call(id_, tool, args, line, meta)
        head = self._heads.get(tool)
        if head is None:
            head = self._heads[tool] = Fixed(self._head("tools/call", tool))
            if len(self._heads) > _MOST_KEPT:
                self._heads.clear()
        wanted = self._params.get(tool)
        sent = {**head, **repeating.of_arguments(wanted, args)} if wanted else head
        try:
            return await self._posted(id_, body, sent, seconds, line)
        except SessionGoneError:
            return await self._begun_anew(head.get("Mcp-Session-Id", ""))

    async def ask(
        self,
        method: str,
        params: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """Any request."""
        if self._renewing is not None and asyncio.current_task() is not self._renewing:
            await asyncio.shield(self._renewing)
        id_ = self._ids = self._ids + 1
        body = self._phrases.other(id_, method, params, line, meta)
        named = revision.NAMED.get(method)
        name = params.get(named) if named else None
        head = self._head(method, name if type(name) is str else "")
        if method == "tools/call" and type(name) is str and self._params.get(name):
            args = params.get("arguments")
            if type(args) is dict:
                head |= repeating.of_arguments(self._params[name], cast("Json", args))
        try:
            return await self._posted(id_, body, head, seconds, line)
        except SessionGoneError:
            await self.renewed(head.get("Mcp-Session-Id", ""))
            return await self._posted(id_, body, {**head, **self._common()}, seconds, line)

    async def tell(self, method: str, params: Json | None = None) -> None:
        """A notification. The newer revision has none that a client sends."""
        if not self._welcome.is_modern:
            await self._sent(message.notification(method, params))

    async def _posted(
        self, id_: int, body: bytes, head: Mapping[str, str], seconds: float, line: Line | None
    ) -> Json:
        """Send, and once more where the server surely did nothing but say how."""
        if not self._asks or self._welcome.is_modern or not self._welcome.version:
            return await self._tried(id_, body, head, seconds, line)
        self._callers.begin(id_, line)
        try:
            result = await self._tried(id_, body, head, seconds, line)
        except (AwayError, BusyError, FaultError, NotSent):
            # Refused, or never sent: nothing is at work on it.
            self._callers.answered(id_)
            raise
        finally:
            self._callers.leave(id_)
        self._callers.answered(id_)
        return result

    async def _tried(
        self, id_: int, body: bytes, head: Mapping[str, str], seconds: float, line: Line | None
    ) -> Json:
        last: Exception | None = None
        is_known = False
        for _ in range(_MOST_MOVES):
            try:
                return await self._answered(id_, body, head, seconds, line)
            except MovedError as moved:
                self.url = moved.url
            except ChallengedError as challenged:
                last = challenged.error
                is_unknown = challenged.answer.status == 401
                # One more token would fare no better than a new one.
                if (is_unknown and is_known) or not await self.met(challenged.answer, head):
                    raise last from None
                is_known = is_known or is_unknown
                head = {**head, **self._proof()}
            except NotSent as error:
                self.lose(error.message)
                raise
            except Late:
                self._withdraw(id_)
                raise TimeoutError from None
            except (asyncio.CancelledError, InputNeeded):
                self._withdraw(id_)
                raise
        raise last or AwayError("it sends every request elsewhere.")

    async def met(self, answer: Streaming, sent: Mapping[str, str]) -> bool:
        """Whether the server, which wants to know who asks, can be told now."""
        challenge = self._challenge
        if challenge is None or answer.status not in {401, 403}:
            return False
        if not await challenge.met(answer, sent):
            return False
        self._heads.clear()
        self.cover = self._covering()
        return True

    def _covering(self) -> Cover:
        """Over all that it was given in secret, and what it was told since of who asks."""
        told = () if self._challenge is None else self._challenge.secrets
        return Cover((*self._given.values(), *told))

    async def _answered(
        self, id_: int, body: bytes, head: Mapping[str, str], seconds: float, line: Line | None
    ) -> Json:
        async with self.client.stream(
            "POST", self.url, headers=head, body=body, seconds=seconds
        ) as answer:
            self.signs += 1
            if answer.status == 200:
                kind = answer.headers.get("content-type", "")
                if kind.startswith(_JSON):
                    result = body_of.result(id_, await answer.read(MOST), self.cover)
                    self._note_session(answer)
                    return result
                if kind.startswith(_STREAM):
                    until_ns = clock.monotonic_ns() + int(seconds * 1e9)
                    self._note_session(answer)
                    return await Streamed(self, id_, line).result(answer, until_ns)
            raise await self._refused(answer, has_session="Mcp-Session-Id" in head)

    async def heard(self, said: Json) -> None:
        """What came on a stream of no call: a request is answered by a POST of its own."""
        _about, line = self._callers.meant(said)
        replying = self.beside.heard(said, line)
        if replying is not None:
            self.flood.asked()
            if self.flood.is_over:
                replying.close()
                self.lose(ENDLESS)
                return
            # Whoever takes no answers is not listened to meanwhile.
            await self._aside.room()
            self._aside.later(self._replied_aside(said.get("id"), replying))

    async def replied(self, replying: Coroutine[Any, Any, bytes]) -> None:
        """What a server asked is answered by a POST of its own."""
        await self._sent(await replying)

    async def _replied_aside(self, id_: Any, replying: Coroutine[Any, Any, bytes]) -> None:
        try:
            body = await replying
        except InputNeeded:
            # Which call would have to end for it, nobody knows.
            body = message.result(id_, {"action": "decline"})
        await self._sent(body)

    async def listen(self, uris: Sequence[str]) -> None:
        """Hear what changes, from now on."""
        if self._hearing is not None:
            self._hearing.close()
        self._hearing = Hearing(self, uris)

    @property
    def has_session(self) -> bool:
        """Whether its server knows us by one."""
        return bool(self._session)

    def phrase(self, method: str, params: Json) -> bytes:
        """A request whose answer nobody waits for."""
        self._ids += 1
        return self._phrases.other(self._ids, method, params)

    def head_for(self, method: str) -> dict[str, str]:
        """The headers of a request that names nothing."""
        return self._head(method, "")

    def _common(self) -> dict[str, str]:
        head = {**self._given, "Content-Type": _JSON, "Accept": _ACCEPT}
        if self._welcome.version:
            head["MCP-Protocol-Version"] = self._welcome.version
        if self._session:
            head["Mcp-Session-Id"] = self._session
        return head | self._proof()

    def _proof(self) -> dict[str, str]:
        """Who asks, for a server that wants to know."""
        return {} if self._challenge is None else self._challenge.headers

    def _head(self, method: str, name: str) -> dict[str, str]:
        head = self._common()
        if self._welcome.is_modern:
            head["Mcp-Method"] = method
            if name:
                head["Mcp-Name"] = repeating.value(name)
        return head

    def _note_session(self, answer: Streaming) -> None:
        """Only the answer to `initialize` begins a session."""
        if not self._welcome.is_modern and not self._welcome.version:
            self._session = answer.headers.get("mcp-session-id", "")

    async def _refused(self, answer: Streaming, *, has_session: bool) -> Exception:
        if (url := moved_to(answer, self.url)) is not None:
            return MovedError(url)
        error = await refusal(answer, has_session=has_session, cover=self.cover)
        if answer.status in {401, 403} and self._challenge is not None:
            return ChallengedError(answer, error)
        return error

    async def _sent(self, body: bytes) -> None:
        """What has no answer, or is one."""
        if not await self._took(body, is_last=self._challenge is None):
            await self._took(body, is_last=True)

    async def _took(self, body: bytes, *, is_last: bool) -> bool:
        """Whether the server took it; where it did not, it is told who asks, unless that was so."""
        head = self._common()
        async with self.client.stream(
            "POST", self.url, headers=head, body=body, seconds=_LAST_WORDS
        ) as answer:
            if answer.status < 400:
                return True
            if is_last or not await self.met(answer, head):
                raise FaultError(Fault(INVALID_REQUEST, f"HTTP {answer.status}"))
            return False

    async def renewed(self, session: str) -> None:
        """A new session, once for all who found that theirs has expired."""
        if self._renewing is None:
            if self._session != session:
                return
            if self.renew is None:
                raise AwayError("its session has ended.")
            self._renewing = asyncio.create_task(self._renewed(self.renew))
        await asyncio.shield(self._renewing)

    async def _renewed(self, renew: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await renew()
        except BaseException:
            # By this connection nothing more is to be had.
            self.lose("Its session could not be begun anew.")
            raise
        finally:
            self._renewing = None

    async def _begun_anew(self, session: str) -> NoReturn:
        """It may be another server: a call waits until what it has now was looked at."""
        await self.renewed(session)
        raise BegunAnewError

    def _withdraw(self, id_: int) -> None:
        """Nobody waits any more. On the newer revision the closed connection has said so."""
        if not self._welcome.is_modern and self._welcome.version:
            said = {"requestId": id_, "reason": "Nobody waits for it any more."}
            self._aside.later(self._sent(message.notification("notifications/cancelled", said)))

    def lose(self, why: str) -> None:
        """It cannot be reached any more."""
        if not self.gone.done():
            self.gone.set_result(Ending(UNREACHED, why))

    async def close(self) -> None:
        """The session ends; streams do."""
        self.lose("It is closed.")
        if self._hearing is not None:
            self._hearing.close()
        self._aside.close()
        if self._challenge is not None:
            self._challenge.close()
        if self._renewing is not None:
            self._renewing.cancel()
        if self._session:
            await quietly(self._ended())

    async def _ended(self) -> None:
        head = self._common()
        del head["Content-Type"]
        await self.client.send("DELETE", self.url, headers=head, most=65_536, seconds=_LAST_WORDS)
