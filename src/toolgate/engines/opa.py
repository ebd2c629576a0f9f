"""The policy on an OPA server. Whatever is not a literal yes or no is `PolicyUnavailable`."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolgate.caller import Action
from toolgate.engines.bundle import Bundle
from toolgate.engines.guard import Guarded
from toolgate.engines.modules import external
from toolgate.engines.opa_push import push as push_bundle
from toolgate.engines.opa_server import LARGE, MISSING, SMALL, OpaServer, Refused
from toolgate.errors import InvalidPolicy, PolicyUnavailable
from toolgate.gate.document import tool_document
from toolgate.gate.policy import Health
from toolgate.net.address import shown
from toolgate.net.client import HttpClient
from toolgate.spec.tool import ToolSpec

_RULES = {
    Action.VIEW.value: "toolgate_gate/listed",
    Action.REQUEST.value: "toolgate_gate/call",
    Action.ENABLE.value: "toolgate/allow",
}
# Who may do nothing; what counts is that there is an answer.
_NOBODY: dict[str, Any] = {"action": Action.REQUEST.value, "caller": {}, "tool": {}}
_NOT_THERE = "The policy server has no policy of ours; nothing ran. Look at its health."
_REFUSED = "The policy server refuses the policy; nothing ran. Look at its health."
_NO_ALLOW = (
    "The policy server has no policy of its own that says true or false for every input; nothing "
    "ran. Give it a bundle with package toolgate and `default allow := false`."
)
_OWN_ROOTS = (
    "the server's own bundle owns every root, so the gate's module cannot be put beside it; "
    'declare "roots": ["toolgate"] in the bundle\'s manifest'
)


class Opa:
    """A policy that decides on a server: ours, sent there, or one that is there by itself."""

    def __init__(
        self,
        client: HttpClient,
        bundle: Bundle | None,
        url: str,
        *,
        token: str = "",
        timeout: float = 1.0,
        guard: Guarded | None = None,
    ) -> None:
        """Without a bundle, the policy is there by the server's own."""
        self._server = OpaServer(client, url, token=token, seconds=timeout)
        self._shown = shown(url)
        self._pushes = bundle is not None
        self._seconds = timeout
        self._bundle = external() if bundle is None else bundle
        # The last one that the server took.
        self._good: Bundle | None = None
        self._refused: Bundle | None = None
        self._guard = guard or Guarded(PolicyUnavailable, "policy server")
        self._bringing: asyncio.Task[None] | None = None
        self._ready = False
        self._outage = "it was not asked yet"
        self._problem = ""

    @property
    def revision(self) -> str:
        """Names the policy; `external` where it is not ours."""
        return self._bundle.revision

    @property
    def reads(self) -> frozenset[str]:
        """Which parts of a single call it looks at; all of them where it is not ours."""
        return self._bundle.reads

    async def start(self) -> None:
        """Bring the policy. Where that fails it is unhealthy and says no, until it succeeds."""
        try:
            await self._guard(self._bring)
        except PolicyUnavailable as error:
            self._down(error)

    async def swap(self, bundle: Bundle) -> None:
        """Decide by another policy from now on. `InvalidPolicy` where the server refuses it."""
        self._problem = ""
        if not self._pushes:
            return
        self._bundle, self._ready = bundle, False
        await self.start()
        if self._problem:
            raise InvalidPolicy(self._problem.splitlines())

    def note(self, problem: str) -> None:
        """A policy could not be taken; the last good one stays."""
        self._problem = problem

    async def allows(self, document: Mapping[str, Any]) -> bool:
        """Whether this `input` is allowed."""
        rule = _RULES.get(document["action"])
        if rule is None:
            return False
        value = await self._ask(rule, document, SMALL, _truth)
        return value is True

    async def visible(
        self, document: Mapping[str, Any], tools: Sequence[ToolSpec]
    ) -> frozenset[str]:
        """Of these tools, those that may be seen."""
        if not tools:
            return frozenset()
        names = frozenset(spec.name for spec in tools)
        asked = {**document, "action": Action.VIEW.value}
        if self._bundle.by_name:
            asked["names"] = list(names)
        else:
            asked["tools"] = {spec.name: tool_document(spec) for spec in tools}
        found = await self._ask("toolgate_gate/visible", asked, LARGE, _texts)
        if not names.issuperset(found):
            raise PolicyUnavailable("The policy server names tools that it was not asked about.")
        return frozenset(found)

    async def reasons(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Why this `input` is refused."""
        return tuple(await self._ask("toolgate_gate/reasons", document, LARGE, _texts))

    async def probe(self) -> bool:
        """Ask about nobody. A policy of the server's own may have gone, and our module not."""
        rule = "toolgate_gate/call" if self._pushes else "toolgate/allow"
        try:
            await self._ask(rule, _NOBODY, SMALL, _truth)
        except PolicyUnavailable:
            return False
        return True

    def health(self) -> Health:
        """Well, when the last question was answered and the last policy was taken."""
        said = [f"{self._shown}: {self._outage}"] if self._outage else []
        problem = "\n".join([*said, *([self._problem] if self._problem else [])])
        return Health(
            engine="opa",
            ok=not problem,
            serves=not self._outage,
            problem=problem,
            # Nothing decides while it is away, not even the last good one.
            revision="" if self._outage else self.revision,
        )

    async def close(self) -> None:
        """Stop bringing what is under way."""
        if self._bringing is not None:
            self._bringing.cancel()
            await asyncio.gather(self._bringing, return_exceptions=True)

    async def _ask(self, rule: str, document: Mapping[str, Any], most: int, read: Any) -> Any:
        try:
            value = await self._guard(lambda: self._answer(rule, document, most, read))
        except PolicyUnavailable as error:
            self._down(error)
            raise
        self._outage = ""
        return value

    async def _answer(self, rule: str, document: Mapping[str, Any], most: int, read: Any) -> Any:
        if not self._ready:
            await self._bring()
        value = await self._server.ask(rule, document, most=most)
        if value is MISSING:
            # It was started again, and is empty.
            self._ready = False
            await self._bring()
            value = await self._server.ask(rule, document, most=most)
        if value is MISSING:
            raise PolicyUnavailable(_NOT_THERE)
        return read(value)

    async def _bring(self) -> None:
        """Once for all who wait for it, and nobody waits longer than for an answer."""
        if self._bringing is None or self._bringing.done():
            self._bringing = asyncio.create_task(self._brought())
            self._bringing.add_done_callback(_looked_at)
        try:
            async with asyncio.timeout(self._seconds):
                await asyncio.shield(self._bringing)
        except TimeoutError:
            raise PolicyUnavailable(_NOT_THERE) from None

    async def _brought(self) -> None:
        """Until the server has what is wanted by then; the last good one where it refuses that."""
        while not self._ready:
            wanted = self._bundle
            try:
                await push_bundle(self._server, wanted)
            except Refused as refused:
                said = refused.problems if self._pushes else [_OWN_ROOTS, *refused.problems]
                self._problem, self._refused = "\n".join(said), wanted
                if self._good is None or self._good is wanted:
                    raise PolicyUnavailable(_REFUSED) from None
                if self._bundle is wanted:
                    self._bundle = self._good
                continue
            if wanted is self._refused:
                self._problem, self._refused = "", None
            if not self._pushes:
                await self._has_its_own()
            self._good = wanted
            self._outage = ""
            self._ready = self._bundle is wanted

    async def _has_its_own(self) -> None:
        if await self._server.ask("toolgate/allow", _NOBODY) is MISSING:
            raise PolicyUnavailable(_NO_ALLOW)

    def _down(self, error: PolicyUnavailable) -> None:
        self._outage = str(error.details.get("detail") or error.message)


def _looked_at(task: asyncio.Task[None]) -> None:
    """It may fail when nobody waits any more; whoever asks next is told."""
    if not task.cancelled():
        task.exception()


def _truth(value: Any) -> bool:
    if value is not True and value is not False:
        raise PolicyUnavailable("The policy server says neither true nor false; nothing ran.")
    return value


def _texts(value: Any) -> list[str]:
    parts = cast("list[Any]", value) if isinstance(value, list) else None
    if parts is None or any(type(part) is not str for part in parts):
        raise PolicyUnavailable("The policy server gives no list of texts.")
    return parts
