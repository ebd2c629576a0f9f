"""Runs one call: the chain, composed once and entered once, then the provider."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

import msgspec

from toolgate import clock
from toolgate.asked import PLAINLY, Asked
from toolgate.call import Call, Grant, Output, Turn, new_call_id
from toolgate.errors import (
    CallRefused,
    ExecutionFailed,
    InvalidArguments,
    OutOfTime,
    SettingsInvalid,
    ToolgateError,
    UnsupportedProvider,
)
from toolgate.executor import queued
from toolgate.executor.aftercare import recalled
from toolgate.executor.answer import answer, is_answer, labelled
from toolgate.executor.aside import Aside, told
from toolgate.executor.bound import Bound
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.failure import execution_failed
from toolgate.executor.mistakes import mistake
from toolgate.executor.people.people import People
from toolgate.executor.provider import KINDS, NOT_BEGUN, Choosy, Provider, keyless
from toolgate.executor.recording.entries import downstream_key
from toolgate.executor.recording.record import Record
from toolgate.executor.recording.remember import Remember
from toolgate.executor.recording.stored import Stored
from toolgate.executor.resilience.breaking import Breaking
from toolgate.executor.resilience.bulkhead import Bulkhead
from toolgate.executor.resilience.deadline import NEVER, Deadline, latest_ns
from toolgate.executor.resilience.retry import Retry
from toolgate.executor.trace.trace import Provided, Trace
from toolgate.executor.trace.watch import Watch
from toolgate.executor.validate import Validate
from toolgate.ledger.entry import Entry
from toolgate.ledger.history import Sessions
from toolgate.ledger.journal import Journal
from toolgate.ledger.outputs import Outputs
from toolgate.spec.effect import Execution
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.secret import secret_texts
from toolgate.spec.tool import Retry as Patience
from toolgate.spec.tool import ToolSpec

# How long calls that run, and what is still to be written, are waited for at the end.
_PATIENCE = 10.0


def built_in(  # noqa: PLR0913  what every link needs, by its name
    *,
    journal: Journal,
    people: People,
    wait: float = 0.0,
    sessions: Sessions | None = None,
    looks_back: Callable[[], bool] = lambda: False,
    outputs: Outputs | None = None,
    output_limit: int = 100_000,
    redactor: Redactor = PLAIN,
    concurrency: int = 64,
    waiting: int = 1_000,
    watch: Watch | None = None,
    limits: tuple[Extension, ...] = (),
    queue: queued.Queued | None = None,
    guarded: bool = False,
    patience: Mapping[str, Patience] = MappingProxyType({}),
) -> tuple[Extension, ...]:
    """The links that every call passes, outermost first.

    `guarded`: a side effect is begun only in the world that it was decided on.
    `looks_back`: whether the policy reads what sessions did, so that it has to be kept.
    `patience`: how often tools of a provider are tried that do not say.
    """
    recorded, watch = set[str](), watch or Watch()
    supersede = people.supersede(journal)
    asking = people.ask(redactor, recorded)
    return (
        # around all others: what any of them refuses is counted, and on record
        Trace(watch.meter, journal, recorded),
        Deadline(),  # first, so that nothing inside can wait for ever
        Validate(),  # before anything reads the arguments, and before anyone is asked
        *limits,  # what is too much is refused before anyone is asked, and what it costs is held
        # behind the rate, which counts what comes; what follows is for whoever runs it. Who can be
        # asked is here: a person agrees before it is queued, and what they said holds where it runs
        *(() if queue is None else (queue.behind(*asking, supersede, Stored(journal, redactor)),)),
        *asking,  # a person agrees to arguments that are known to be valid
        supersede,  # behind every wait for a person, and before the effect
        *people.outlet(),  # no effect whose event could not be kept
        # before the next decision is made, which may look back at this call
        *(() if sessions is None else (Remember(sessions, looks_back, redactor),)),
        # last before the effect: what is on record is what will be tried
        Record(
            journal,
            wait=wait,
            listeners=people.bus,
            redactor=redactor,
            recorded=recorded,
            guarded=guarded,
        ),
        # one record for all attempts; nothing further in tries again
        Retry(usual=patience, tell=watch.meter.retry),
        Breaking(),  # each attempt counts, and one that is refused takes nobody's place
        # last before the tool: a place is held only while it runs
        Bulkhead(concurrency=concurrency, waiting=waiting, behind=supersede.again),
        # nobody further out holds, records or sends more than the limit
        *(() if outputs is None else (Bound(outputs, limit=output_limit, redactor=redactor),)),
        # the provider's own time
        *(() if watch.spans is None else (Provided(watch.spans),)),
    )


class Executor:
    """What is done. It does not know how permission was reached."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        extensions: Iterable[Extension],
        *,
        default_timeout: float,
        redactor: Redactor = PLAIN,
        others: Callable[[str], Provider | None] = lambda _kind: None,
    ) -> None:
        """`others` finds what runs a kind of tool that is not among `providers`."""
        self._providers = dict(providers)
        self._others = others
        self._redactor = redactor
        self._timeout = default_timeout
        links = list(extensions)
        mistakes = [found for link in links if (found := mistake(link)) is not None]
        if mistakes:
            raise SettingsInvalid([f"extensions: {found}" for found in mistakes])
        self._deadline = next((one for one in links if isinstance(one, Deadline)), Deadline())
        self._lasting = [one for one in links if isinstance(one, (Record, Remember))]
        self._validate = next((one for one in links if isinstance(one, Validate)), Validate())
        for kind, provider in self._providers.items():
            self._heed(kind, provider)
        chain: Handler = self._provide
        # Equal priorities keep their order: the built-in ones come first, then as registered.
        for extension in sorted(links, key=lambda one: one.priority)[::-1]:
            if isinstance(extension, Record):
                self._record, self._inside = extension, chain
            chain = extension.link(chain)
        self._chain = chain

    @property
    def redactor(self) -> Redactor:
        """What takes secrets out of what is stored."""
        return self._redactor

    def unusable(self, spec: ToolSpec) -> str | None:
        """Why a spec cannot run here, or `None`."""
        provider = self._provider(spec.provider)
        if provider is None:
            close = get_close_matches(spec.provider, {*self._providers, *KINDS}, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            return f"no provider {spec.provider!r} is available{meant}"
        reason = provider.unusable(spec) or keyless(provider, spec)
        self._heed(spec.provider, provider)
        return reason

    async def run(
        self, grant: Grant, args: dict[str, object], turn: Turn | None, asked: Asked = PLAINLY
    ) -> Output:
        """Run a granted call. A refusal is raised; what waits and what failed is an Output."""
        started_ns = clock.unix_ns()
        seconds = grant.spec.timeout or self._timeout
        began_ns, latest, parent_ns = clock.monotonic_ns(), latest_ns(), 0
        if grant.spec.execution is Execution.QUEUED and not asked.delivered:
            # How long its tool takes is the worker's business; this is how long it is waited for.
            seconds = queued.patience(asked.wait_s, seconds)
            if latest < NEVER and asked.wait_s != 0:
                # Nobody wants it any more once the call around it is over.
                parent_ns = started_ns + latest - began_ns
        elif asked.wait_s and grant.needs_a_person:
            # A person's time is not the tool's: the link that waits sees to that.
            seconds += asked.wait_s
        until_ns = min(began_ns + int(seconds * 1e9), latest)
        call = Call(
            asked.delivered or new_call_id(started_ns),
            grant,
            args,
            turn,
            started_ns,
            until_ns,
            asked,
            began_ns=began_ns,
            parent_ns=parent_ns,
        )
        try:
            output = await self._chain(call)
            if type(output.data) is Aside:
                output = told(output)
            if grant.spec.retells:
                # Also what an extension put in its place, or what is on record without it.
                output = labelled(output)
            return output if output.call_id else msgspec.structs.replace(output, call_id=call.id)
        except ToolgateError as error:
            if not is_answer(error):
                raise
            return answer(call, error)
        except Exception as error:  # noqa: BLE001  an extension's own link can raise anything
            return answer(call, error)

    async def resume(self, grant: Grant, entry: Entry, args: dict[str, object]) -> Output:
        """Run a call again that is on record as started, under its own id, key and fence.

        It enters the chain where its intent was written: what stands before that, it has passed.
        """
        started_ns, began_ns = clock.unix_ns(), clock.monotonic_ns()
        seconds = grant.spec.timeout or self._timeout
        call = Call(
            entry.call_id,
            grant,
            args,
            recalled.turn_of(entry),
            started_ns,
            began_ns + int(seconds * 1e9),
            recalled.asked_of(entry),
            entry.approval,
            downstream_key=downstream_key(entry),
            began_ns=began_ns,
        )
        record, inside = self._record, self._inside
        within = self._deadline.link(lambda one: record.resumed(inside, one, entry))
        try:
            return told(await within(call))
        except Exception as error:  # noqa: BLE001  it is on record; nobody waits for it
            return answer(call, error)

    async def close(self, patience: float = _PATIENCE) -> None:
        """No new calls; those that run finish, or end in time, and how they ended is on record."""
        await self._deadline.drain(patience)
        for one in self._lasting:
            await one.drain(patience)

    def _provider(self, kind: str) -> Provider | None:
        return self._providers.get(kind) or self._others(kind)

    def _heed(self, kind: str, provider: Provider) -> None:
        """The rules of a provider hold before anyone is asked, where it has some."""
        if kind not in self._validate.checks and isinstance(provider, Choosy):
            self._validate.checks[kind] = lambda call: self._check(provider, call)

    def _check(self, provider: Choosy, call: Call) -> None:
        spec = call.grant.spec
        try:
            problems = provider.unfit(spec, call.args)
        except NOT_BEGUN as refusal:
            self._clean(call, refusal)
            raise
        except Exception as error:
            raise UnsupportedProvider(
                f"What runs {spec.name!r} could not look at its arguments "
                f"({type(error).__name__}). Nothing ran."
            ) from error
        if problems:
            refused = InvalidArguments(spec.name, problems)
            self._clean(call, refused)
            raise refused

    async def _provide(self, call: Call) -> Output:
        spec = call.grant.spec
        provider = self._provider(spec.provider)
        if provider is None:
            raise UnsupportedProvider(f"Nothing here runs tools of the kind {spec.provider!r}.")
        is_first = False
        # Of a side effect only: who stood still past its lease may find somebody else at it.
        if call.downstream_key:
            if not self._record.holds(call.id):
                raise OutOfTime(
                    f"{spec.name!r} was held up for so long before it began that its claim ran "
                    "out. It did not run here: call it again."
                )
            is_first = self._record.reach(call.id)
        try:
            data = await provider.run(call)
        except ToolgateError as error:
            self._clean(call, error)
            if isinstance(error, CallRefused):
                if not isinstance(error, NOT_BEGUN):
                    # For something that the provider itself had asked for, on its way.
                    raise execution_failed(call, error) from error
                if is_first:
                    self._record.unreach(call.id)
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Something the tool waited for was cancelled; its caller was not.
            raise execution_failed(call, error) from error
        except Exception as error:
            raise execution_failed(call, error) from error
        return Output(
            status="success",
            data=data,
            call_id=call.id,
            duration_ms=(clock.monotonic_ns() - call.began_ns) / 1e6,
            side_effects=spec.side_effects,
            untrusted=spec.retells,
        )

    def _clean(self, call: Call, error: ToolgateError) -> None:
        """A tool's own words go into answers, records and logs: none of them shows a secret."""
        known = secret_texts(call.grant.spec.input_schema.raw, call.args)
        redactor = self._redactor.knowing(known)
        error.message = redactor.text(error.message)
        error.args = (error.message,)
        error.details = redactor.value(error.details)
        if isinstance(error, ExecutionFailed) and error.produced is not None:
            error.produced = redactor.value(error.produced)
