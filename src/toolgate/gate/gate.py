"""One decision function for seeing, calling and adding: what is listed is what may be called."""

import asyncio
import contextlib
from typing import Any

import msgspec

from toolgate import clock
from toolgate.call import Grant, Turn
from toolgate.caller import Action, Caller
from toolgate.catalog.catalog import Catalog
from toolgate.errors import (
    PermissionDenied,
    PolicyUnavailable,
    StoreUnavailable,
    ToolNotFound,
)
from toolgate.gate import capsule, registry
from toolgate.gate.asking import Engines, Rules
from toolgate.gate.book import Book, Books
from toolgate.gate.decision import Decisions, Explanation, Forgetful, Verdict
from toolgate.gate.moment import Moment, Sifted
from toolgate.gate.phases import Phases
from toolgate.gate.policy import ARGS, Health
from toolgate.gate.recorder import Recorder, stated
from toolgate.gate.shared import NoShared
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.secret import without_secrets
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy

_PURE = Effect.PURE
# So many refusals of a list are told in the policy's own words.
_MOST_REASONS = 200
_NO_ENGINES = Engines()
_USUAL = Rules()
_NO_POLICY = ""
# So often a decision is made anew because something changed while it was made.
_MOST_TRIES = 5
_ALLOWED = Verdict(phase="policy", allowed=True, rule="allowed", reason="every phase allows it")


class Gate:
    """Decides, remembers what it decided on this catalog, world and policy, and explains."""

    def __init__(
        self,
        catalog: Catalog,
        tenancy: Tenancy,
        engines: Engines = _NO_ENGINES,
        *,
        decisions: Decisions | None = None,
        rules: Rules = _USUAL,
        redactor: Redactor = PLAIN,
        guarded: bool = False,
    ) -> None:
        """`guarded`: a side effect is begun only in the world that it was decided on."""
        self._guarded = guarded
        self._catalog = catalog
        self._tenancy = tenancy
        self._policy = engines.policy
        self._recorder = Recorder(decisions or Forgetful(), redactor)
        self._phases = Phases(engines, rules)
        self._rules = rules
        self._shared = None if isinstance(engines.shared, NoShared) else engines.shared
        self._remote = engines.remote
        # Servers can be away, and others write to them: no revision of ours tells when.
        self._asks_again = bool(engines.remote) or (
            engines.relations is not None and engines.relations.external
        )
        self._books = Books(rules.permission_ttl_ns, cascading=rules.cascading)

    def known(self, caller: Caller, tool: str) -> Grant | None:
        """A grant that was given before, and that nothing has to be asked about again.

        Of a side effect: whether it still holds is found out when the call is begun.
        """
        books = self._books
        book = books.kept.get(caller)
        if (
            book is not None
            and book.world is self._tenancy.world
            and books.snapshot is self._catalog.current
            and books.revision is self._revision()
            and clock.monotonic_ns() < book.until_ns
        ):
            return book.free.get(tool)
        return None

    async def decide(
        self,
        caller: Caller,
        tool: str,
        args: dict[str, Any] | None = None,
        turn: Turn | None = None,
    ) -> Grant:
        """A grant for this call, or a refusal. A hidden tool looks like a missing one."""
        grant = self.known(caller, tool)
        if grant is not None and grant.spec.effect is _PURE:
            return grant
        for _ in range(_MOST_TRIES):
            revision = self._revision()
            book, grant = await self._decided(caller, tool, args, turn)
            if self._holds(caller, book, revision):
                return grant
        raise PolicyUnavailable(
            f"The rules changed again and again while {tool[:64]!r} was decided; nothing ran. "
            "Try again."
        )

    async def _decided(
        self, caller: Caller, tool: str, args: dict[str, Any] | None, turn: Turn | None
    ) -> tuple[Book, Grant]:
        spec = self._catalog.current.meant(tool)
        if spec is None:
            await self._looked()
            raise ToolNotFound(tool)
        anew = False
        if spec.effect is not _PURE:
            try:
                # What was revoked a moment ago, on whichever node, must not run.
                await self._tenancy.freshen()
            except StoreUnavailable:
                # A hidden tool looks like a missing one, whatever is away.
                await self._granted(caller, tool, turn)
                raise
            anew = self._asks_again
        try:
            book, grant = await self._granted(caller, tool, turn, anew=anew)
        except ToolNotFound:
            if spec.effect is _PURE:
                await self._looked()
            raise
        if self._phases.reads:
            grant = await self._requested(book, grant, args or {}, turn)
        return book, grant

    async def _looked(self) -> None:
        """As before a side effect: nobody tells by a clock what is hidden from what is missing."""
        with contextlib.suppress(StoreUnavailable):
            await self._tenancy.freshen()

    def _holds(self, caller: Caller, book: Book, revision: str) -> bool:
        """Whether what was decided on is still so: nothing has changed while engines were asked."""
        return (
            self._revision() is revision
            and self._catalog.current is book.moment.snapshot
            and book.follow(caller, self._tenancy.world)
        )

    @property
    def reads_args(self) -> bool:
        """Whether a decision depends on the arguments, so that they must not change after it."""
        return ARGS in self._phases.reads

    async def view(self, caller: Caller, tool: str) -> ToolSpec:
        """The spec of a tool that the caller sees, which is one that it may call."""
        _book, grant = await self._granted(caller, tool, None)
        return grant.spec

    async def listing(self, caller: Caller) -> tuple[ToolSpec, ...]:
        """Everything the caller may call, by name."""
        book = self._book(caller)
        if book.listing is not None:
            return book.listing
        book = await self._trusted(caller, book)
        moment = book.moment
        specs = moment.snapshot.specs.values()
        sifted = await self._phases.sift(moment, caller, specs)
        listed = tuple(spec for spec in specs if spec.name not in sifted.refused)
        # What looks at the time or at history may say otherwise a moment later.
        if self._phases.reads <= {ARGS}:
            book.listing = listed
        return listed

    async def unavailable(self, caller: Caller) -> list[tuple[ToolSpec, Verdict]]:
        """What the tenant has and this agent lacks, with the verdict that keeps it away."""
        moment = self._book(caller).moment
        specs = moment.snapshot.specs.values()
        sifted = await self._phases.sift(moment, caller, specs)
        found: list[tuple[ToolSpec, Verdict]] = []
        told = 0
        for spec in specs:
            verdict = sifted.refused.get(spec.name)
            if verdict is None or not self._tenant_has(moment, caller, spec):
                continue
            if verdict.rule == "rego" and told < _MOST_REASONS:
                told += 1
                verdict = await self._phases.why(moment, caller, spec)
            found.append((spec, verdict))
        return found

    async def tenant_has(self, caller: Caller, tool: str) -> bool:
        """Whether the tenant has this tool, whatever its agents may do."""
        return await self.of_tenant(caller, tool) is not None

    async def of_tenant(self, caller: Caller, tool: str) -> ToolSpec | None:
        """The spec of a tool that the tenant has, whatever its agents may do."""
        moment = self._book(caller).moment
        spec = moment.snapshot.meant(tool)
        return spec if spec is not None and self._tenant_has(moment, caller, spec) else None

    @property
    def standing(self) -> tuple[object, ...]:
        """What decisions rest on, as far as one can tell: the same objects while it is the same."""
        return self._catalog.current, self._tenancy.world, self._revision()

    def needs_a_person(self, caller: Caller, spec: ToolSpec) -> bool:
        """Whether each call of it waits for somebody's approval."""
        return capsule.needs_a_person(caller, spec, self._tenancy.world)

    async def add(self, caller: Caller, spec: ToolSpec) -> None:
        """Whether the caller may add this tool; a `PermissionDenied` where it may not."""
        moment = self._book(caller).moment
        verdicts = await self._phases.enable(moment, caller, spec)
        refused = next((one for one in verdicts if not one.allowed), None)
        asked = await self._phases.question(Action.ENABLE, moment, caller, spec)
        observed = refused is not None and self._phases.observes(refused)
        self._recorder.note(
            Action.ENABLE,
            asked,
            refused or verdicts[-1],
            revision=self._revision(),
            observed=observed,
        )
        if refused is not None and not observed:
            raise PermissionDenied(
                f"You may not add the tool {spec.name!r}. Ask an operator for it.",
                phase=refused.phase,
                reason=refused.reason,
            )

    async def explain(
        self,
        caller: Caller,
        tool: str,
        args: dict[str, Any] | None = None,
        turn: Turn | None = None,
    ) -> Explanation:
        """Every phase's verdict, also beyond the first refusal."""
        moment = self._book(caller).moment
        tool = moment.snapshot.named(tool)
        spec = moment.snapshot.get(tool)
        if spec is None:
            missing = registry.missing(tool, moment.snapshot)
            return Explanation(tool=tool, allowed=False, verdicts=(missing,))
        if args is not None and self.reads_args:
            stated(spec, args)
        judged = await self._phases.verdicts(moment, caller, spec, args, turn)
        verdicts = [capsule.hinted(one, caller, moment.world) for one in judged]
        refusals = [one for one in verdicts if not one.allowed]
        passing = [one for one in refusals if self._phases.observes(one)]
        return Explanation(
            tool=tool,
            allowed=len(passing) == len(refusals),
            observed=bool(passing),
            needs_a_person=capsule.needs_a_person(
                caller, spec, moment.world, destructive=self._rules.destructive_waits
            ),
            verdicts=tuple(verdicts),
        )

    async def probe(self) -> None:
        """Ask the engines on servers whether they are there. What one has decided before it went
        away is not believed any more.
        """
        answered = await asyncio.gather(*(engine.probe() for engine in self._remote))
        if not all(answered):
            self._books.forget()

    @property
    def asks_servers(self) -> bool:
        """Whether an engine is not in this process, so that a decision may have to wait."""
        return self._asks_again

    def health(self) -> list[Health]:
        """How each engine is doing."""
        engines = (self._phases.policy, self._phases.relations, self._shared)
        return [engine.health() for engine in engines if engine is not None]

    async def _granted(
        self, caller: Caller, tool: str, turn: Turn | None, *, anew: bool = False
    ) -> tuple[Book, Grant]:
        """The caller's book, and its grant; `anew`: whatever was decided before."""
        book = self._book(caller)
        grant = book.grants.get(tool)
        if grant is not None and not anew:
            return book, grant
        book = await self._trusted(caller, book)
        moment, revision = book.moment, self._revision()
        name = moment.snapshot.named(tool)
        spec = moment.snapshot.get(name)
        if spec is None or (name in book.refused and not anew):
            raise ToolNotFound(tool)
        sifted = await self._phases.sift(moment, caller, (spec,), turn)
        decision = await self._recorded(moment, caller, spec, sifted)
        lasting = self._phases.reads <= {ARGS} and self._holds(caller, book, revision)
        if name in sifted.refused:
            if lasting:
                book.refused[name] = sifted.refused[name]
            raise ToolNotFound(tool)
        grant = Grant(
            caller,
            spec,
            moment.snapshot.revision,
            # That of the book which keeps it: an older one would be out of date at every claim.
            (book if lasting else moment).world.revision,
            capsule.needs_a_person(
                caller, spec, moment.world, destructive=self._rules.destructive_waits
            ),
            self._revision(),
            decision,
            capsule.needs_another(
                caller, spec, moment.world, destructive=self._rules.destructive_waits
            ),
            book.end_ns,
        )
        if lasting:
            # Under both names: a short one costs no more from now on.
            book.grants[tool] = book.grants[name] = grant
            if not self._phases.reads and (spec.effect is _PURE or self._is_found_out(grant)):
                book.free[tool] = book.free[name] = grant
        return book, grant

    def _is_found_out(self, grant: Grant) -> bool:
        """Whether a call that is not allowed any more would not begin, and nobody be asked."""
        return self._guarded and not self._asks_again and not grant.needs_a_person

    async def _requested(
        self, book: Book, grant: Grant, args: dict[str, Any], turn: Turn | None
    ) -> Grant:
        """This very call, where the policy looks at more than who calls what."""
        caller, spec, key = grant.caller, grant.spec, None
        said = stated(spec, args)
        if self._phases.reads <= {ARGS}:
            key = spec.name, said
            answer = book.answers.get(key)
            if answer is not None:
                return self._answered(grant, *answer)
        asked, verdict = await self._phases.request(book.moment, caller, spec, args, turn)
        observed = not verdict.allowed and self._phases.observes(verdict)
        if ARGS in asked:
            asked[ARGS] = without_secrets(spec.input_schema.raw, args)
        decision = self._recorder.note(
            Action.REQUEST, asked, verdict, revision=self._revision(), observed=observed
        )
        answer = verdict, decision
        if key is not None:
            book.keep(key, answer)
        return self._answered(grant, *answer)

    def _answered(self, grant: Grant, verdict: Verdict, decision: str) -> Grant:
        if not verdict.allowed and not self._phases.observes(verdict):
            raise PermissionDenied(
                f"This call of {grant.spec.name!r} is not allowed. Other arguments, or another "
                "moment, may be; else ask an operator. Nothing ran.",
                phase=verdict.phase,
                reason=verdict.reason,
            )
        return msgspec.structs.replace(grant, decision=decision)

    async def _recorded(
        self, moment: Moment, caller: Caller, spec: ToolSpec, sifted: Sifted
    ) -> str:
        observed = sifted.observed.get(spec.name)
        verdict = sifted.refused.get(spec.name) or observed or _ALLOWED
        action = Action.REQUEST
        if self._phases.reads:
            if verdict is _ALLOWED:
                # The call itself is still to be decided, and that is what is kept.
                return ""
            action = Action.VIEW
        if verdict.rule == "rego" and not verdict.allowed:
            verdict = await self._phases.why(moment, caller, spec)
        asked = await self._phases.question(action, moment, caller, spec)
        return self._recorder.note(
            action, asked, verdict, revision=self._revision(), observed=observed is not None
        )

    async def _trusted(self, caller: Caller, book: Book) -> Book:
        """The caller's book, on a world that is not too old to decide anything new on."""
        if self._tenancy.age_ns <= self._rules.enabled_ttl_ns:
            return book
        await self._tenancy.freshen()
        return self._book(caller)

    def _book(self, caller: Caller) -> Book:
        return self._books.of(caller, self._catalog.current, self._tenancy.world, self._revision())

    def _revision(self) -> str:
        return _NO_POLICY if self._policy is None else self._policy.revision

    @staticmethod
    def _tenant_has(moment: Moment, caller: Caller, spec: ToolSpec) -> bool:
        return registry.judge(caller, spec, moment.snapshot, moment.world).allowed
