"""What every provider keeps, as tests for the package that brings one.

Derive a class from `ProviderSuite` in a test file, say how its provider is opened and what it can
do, and run pytest; no plugin is needed. Each call goes through a whole gate in memory.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any
from unittest import SkipTest

import msgspec
import orjson

from toolgate.call import Output
from toolgate.caller import Caller
from toolgate.errors import CallFailed, InvalidArguments, ToolgateError
from toolgate.executor.provider import NOT_BEGUN, Provider
from toolgate.runtime import Runtime
from toolgate.spec.effect import Effect
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

_ME = Caller(tenant="acme", agent="suite")
_AT_ONCE = 20
# Bounds a provider that never ends; nothing is measured by it.
_PATIENCE = 20.0
ANY_OBJECT: Mapping[str, Any] = MappingProxyType({"type": "object"})


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of this kind, and a call of it."""

    config: Mapping[str, Any]
    args: Mapping[str, Any] = MappingProxyType({})
    input_schema: Mapping[str, Any] = ANY_OBJECT
    effect: Effect = Effect.PURE

    def spec(self, kind: str, name: str = "sample", **fields: Any) -> ToolSpec:
        """Its definition, as a tool file here would have it."""
        given = {
            "name": name,
            "provider": kind,
            "config": dict(self.config),
            "input_schema": dict(self.input_schema),
            "effect": str(self.effect),
        }
        return read_tool(given | fields, origin=Origin("file", "suite.yaml"))


class ProviderSuite:
    """Say what is asked for below; what cannot be had here is `None`, and its test is skipped."""

    kind: str = ""
    # What it holds and must never tell, such as a key.
    secret: str = ""

    def opened(self) -> AbstractAsyncContextManager[Provider]:
        """The provider with all that it needs; closed at the end of the context."""
        raise NotImplementedError

    def says(self, text: str) -> Sample:
        """A call whose result is or holds this text."""
        raise NotImplementedError

    def wrong(self) -> Sequence[Sample]:
        """Definitions that can never work."""
        raise NotImplementedError

    def fails(self) -> Sample | None:
        """A call that is begun and does not succeed."""
        raise NotImplementedError

    def slow(self) -> Sample | None:
        """A call that takes at least ten seconds."""
        raise NotImplementedError

    def absent(self) -> Sample | None:
        """A call of something that is not there, so that nothing can be begun."""
        raise NotImplementedError

    def unfit(self) -> Sample | None:
        """A call whose arguments fit the schema and that it refuses all the same, by rules of its
        own: only for a provider that has the method `unfit`.
        """
        return None

    def test_a_right_definition_is_taken_and_its_call_answers(self) -> None:
        async def check() -> None:
            async with self._house() as (house, _journal):
                output = await self._call(house, self.says("a word"))
                _holds(output.ok, f"the call failed: {output.error}")
                _holds("a word" in _written(output.data), "the result does not hold the text")

        _run(check())

    def test_a_wrong_definition_is_refused_before_any_call(self) -> None:
        async def check() -> None:
            async with self.opened() as provider:
                right = self.says("x").spec(self.kind)
                _holds(provider.unusable(right) is None, "a right definition is refused")
                for sample in self.wrong():
                    reason = provider.unusable(sample.spec(self.kind))
                    _holds(bool(reason), f"{dict(sample.config)!r} is taken")
                    self._tells_nothing(reason or "")
                _holds(provider.unusable(right) is None, "a wrong one has spoilt a right one")

        _run(check())

    def test_a_result_is_json_that_nobody_else_holds(self) -> None:
        async def check() -> None:
            async with self._house() as (house, _journal):
                first = (await self._call(house, self.says("same"))).data
                before = _written(first)
                if isinstance(first, dict):
                    first.clear()
                again = (await self._call(house, self.says("same"))).data
                _holds("same" in before and "same" in _written(again), "results share their values")

        _run(check())

    def test_calls_at_once_do_not_cross(self) -> None:
        async def check() -> None:
            async with self._house() as (house, _journal):
                texts = [f"text-{number}-of-{_AT_ONCE}" for number in range(_AT_ONCE)]
                for number, text in enumerate(texts):
                    self._put(house, self.says(text), f"sample{number}")
                outputs = await asyncio.gather(
                    *(
                        house.call(f"sample{number}", dict(self.says(text).args), caller=_ME)
                        for number, text in enumerate(texts)
                    )
                )
                for text, output in zip(texts, outputs, strict=True):
                    shown = _written(output.data)
                    _holds(text in shown, f"{text} was answered with {shown[:200]}")

        _run(check())

    def test_a_call_ends_with_its_time_and_is_not_known_to_have_failed(self) -> None:
        async def check() -> None:
            async with self._house() as (house, journal):
                sample = _given(self.slow(), effect=Effect.IRREVERSIBLE)
                output = await self._call(house, sample, timeout=0.5)
                code = output.error.code if output.error else ""
                _holds(code == "timed_out", f"it ended with {code or 'a result'}")
                await _recorded(journal, "unknown")
                _holds((await self._call(house, self.says("x"))).ok, "it runs nothing any more")

        _run(check())

    def test_a_call_that_is_cancelled_ends_and_others_go_on(self) -> None:
        async def check() -> None:
            async with self._house() as (house, _journal):
                work = asyncio.create_task(self._call(house, _given(self.slow())))
                # Until it has begun, there is nothing to cancel; a turn of the loop is not enough.
                await asyncio.wait([work], timeout=0.5)
                work.cancel()
                done, _ = await asyncio.wait([work], timeout=_PATIENCE)
                _holds(work in done and work.cancelled(), "it goes on after its caller has gone")
                _holds((await self._call(house, self.says("x"))).ok, "it runs nothing any more")

        _run(check())

    def test_where_nothing_was_begun_it_says_so(self) -> None:
        async def check() -> None:
            async with self._house() as (house, _journal):
                sample = _given(self.absent(), effect=Effect.IRREVERSIBLE)
                try:
                    output = await self._call(house, sample)
                except NOT_BEGUN as refusal:
                    self._tells_nothing(refusal.message)
                    return
                told = output.error.code if output.error else "a result"
                raise AssertionError(f"nothing was begun, and it answers {told}")

        _run(check())

    def test_what_it_refuses_by_its_own_rules_nobody_is_asked_about(self) -> None:
        async def check() -> None:
            async with self._house() as (house, journal):
                sample = _given(self.unfit(), effect=Effect.IRREVERSIBLE)
                try:
                    output = await self._call(house, sample, requires_approval=True)
                except InvalidArguments as refusal:
                    self._tells_nothing(refusal.message)
                else:
                    told = output.error.code if output.error else "a result"
                    raise AssertionError(f"it never runs, and the call is answered with {told}")
                await _recorded(journal, "failed")
                right = await self._call(house, self.says("x"), requires_approval=True)
                code = right.error.code if right.error else ""
                _holds(
                    code == "approval_pending", f"what fits is answered with {code or 'a result'}"
                )

        _run(check())

    def test_a_failure_is_told_in_words_without_secrets(self) -> None:
        async def check() -> None:
            async with self._house() as (house, _journal):
                sample = _given(self.fails(), effect=Effect.IRREVERSIBLE)
                try:
                    output = await self._call(house, sample)
                except ToolgateError as error:
                    _holds(isinstance(error, (*NOT_BEGUN, CallFailed)), f"it raises {error.code}")
                    self._tells_nothing(error.message)
                    return
                _holds(output.error is not None, "it succeeded")
                self._tells_nothing(_written(output.to_machine()))

        _run(check())

    def test_what_it_opened_is_closed(self) -> None:
        async def check() -> None:
            async with self._house() as (house, _journal):
                await self._call(house, self.says("x"))
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if left:
                # What was told to end may need a moment for it.
                _, left = await asyncio.wait(left, timeout=_PATIENCE / 10)
            _holds(not left, f"it leaves {len(left)} tasks behind")

        _run(check())

    @asynccontextmanager
    async def _house(self) -> AsyncGenerator[tuple[Runtime, MemoryJournal]]:
        journal = MemoryJournal()
        async with (
            self.opened() as provider,
            in_memory(providers={self.kind: provider}, journal=journal) as house,
        ):
            yield house, journal

    def _put(self, house: Runtime, sample: Sample, name: str = "sample", **fields: Any) -> None:
        specs = {spec.name: spec for spec in house.catalog.part("suite")}
        specs[name] = sample.spec(self.kind, name, **fields)
        house.catalog.put("suite", list(specs.values()))
        reason = house.catalog.current.unusable.get(name)
        _holds(reason is None, f"a right definition is refused: {reason}")

    async def _call(self, house: Runtime, sample: Sample, **fields: Any) -> Output:
        self._put(house, sample, **fields)
        return await house.call("sample", dict(sample.args), caller=_ME)

    def _tells_nothing(self, text: str) -> None:
        _holds(bool(text.strip()), "it says nothing")
        _holds(not self.secret or self.secret not in text, "it tells a secret")
        _holds("Traceback" not in text, "it tells a trace")


def _run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(3 * _PATIENCE):
            await work

    asyncio.run(bounded())


def _holds(condition: bool, said: str) -> None:  # noqa: FBT001  an assertion, with its words
    if not condition:
        raise AssertionError(said)


def _given(sample: Sample | None, **changes: Any) -> Sample:
    if sample is None:
        raise SkipTest("this provider has no such call")
    return msgspec.structs.replace(sample, **changes)


def _written(value: Any) -> str:
    return orjson.dumps(value).decode()


async def _recorded(journal: MemoryJournal, state: str) -> None:
    entries = await journal.entries(_ME.tenant)
    found = [str(entry.state) for entry in entries if entry.tool == "sample"]
    _holds(state in found, f"it is on record as {', '.join(found) or 'nothing'}, not {state}")
