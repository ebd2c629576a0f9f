"""One decision function for seeing and for calling: what is listed is what may be called."""

from collections.abc import Iterator

from toolgate.call import Caller, Grant
from toolgate.catalog.catalog import Catalog
from toolgate.catalog.snapshot import Snapshot
from toolgate.errors import ToolNotFound
from toolgate.gate import capsule, registry
from toolgate.gate.decision import Explanation, Verdict
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.tenancy import Tenancy
from toolgate.tenancy.world import World

_MOST_CACHED = 100_000


class Gate:
    """Decides, remembers what it decided on this catalog and this world, and explains."""

    def __init__(self, catalog: Catalog, tenancy: Tenancy) -> None:
        self._catalog = catalog
        self._tenancy = tenancy
        self._snapshot: Snapshot = catalog.current
        self._world: World = tenancy.world
        self._grants: dict[tuple[Caller, str], Grant] = {}
        self._listings: dict[Caller, tuple[ToolSpec, ...]] = {}

    async def decide(self, caller: Caller, tool: str) -> Grant:
        """A grant, or a refusal. A tool that is hidden from the caller looks like a missing one."""
        grant = self._decided(caller, tool)
        if grant.spec.effect is not Effect.PURE and self._tenancy.is_stale():
            await self._tenancy.freshen()
            grant = self._decided(caller, tool)
        return grant

    def _decided(self, caller: Caller, tool: str) -> Grant:
        self._settle()
        grant = self._grants.get((caller, tool))
        if grant is not None:
            return grant
        spec = self._snapshot.get(tool)
        if spec is None or self._refusal(caller, spec) is not None:
            raise ToolNotFound(tool)
        if len(self._grants) >= _MOST_CACHED:
            self._grants.clear()
        grant = Grant(
            caller,
            spec,
            self._snapshot.revision,
            self._world.revision,
            self._needs_a_person(caller, spec),
        )
        self._grants[caller, tool] = grant
        return grant

    async def listing(self, caller: Caller) -> tuple[ToolSpec, ...]:
        """Everything the caller may call, by name."""
        self._settle()
        listed = self._listings.get(caller)
        if listed is None:
            specs = self._snapshot.specs.values()
            listed = tuple(spec for spec in specs if self._refusal(caller, spec) is None)
            if len(self._listings) >= _MOST_CACHED // 100:
                self._listings.clear()
            self._listings[caller] = listed
        return listed

    async def unavailable(self, caller: Caller) -> list[tuple[ToolSpec, Verdict]]:
        """What the tenant has and this agent lacks, with the verdict that keeps it away."""
        self._settle()
        found: list[tuple[ToolSpec, Verdict]] = []
        for spec in self._snapshot.specs.values():
            if self._tenant_has(caller, spec):
                refusal = self._refusal(caller, spec)
                if refusal is not None:
                    found.append((spec, refusal))
        return found

    async def tenant_has(self, caller: Caller, tool: str) -> bool:
        """Whether the tenant has this tool, whatever its agents may do."""
        self._settle()
        spec = self._snapshot.get(tool)
        return spec is not None and self._tenant_has(caller, spec)

    def explain(self, caller: Caller, tool: str) -> Explanation:
        """Every phase's verdict, also beyond the first refusal."""
        self._settle()
        spec = self._snapshot.get(tool)
        if spec is None:
            missing = Verdict(
                phase=registry.PHASE,
                allowed=False,
                rule="missing",
                reason="no source has a tool of this name",
                remedy="Check the name with: toolgate tools list",
            )
            return Explanation(tool=tool, allowed=False, verdicts=(missing,))
        verdicts = tuple(_verdicts(caller, spec, self._snapshot, self._world))
        allowed = all(verdict.allowed for verdict in verdicts)
        return Explanation(tool=tool, allowed=allowed, verdicts=verdicts)

    def _refusal(self, caller: Caller, spec: ToolSpec) -> Verdict | None:
        for verdict in _verdicts(caller, spec, self._snapshot, self._world):
            if not verdict.allowed:
                return verdict
        return None

    def _needs_a_person(self, caller: Caller, spec: ToolSpec) -> bool:
        overrides = self._world.capsule(caller.tenant, caller.agent).overrides(spec.name)
        return (
            spec.requires_confirmation
            or spec.requires_approval
            or spec.destructive
            # An agent's override can ask for more care, never for less.
            or bool(overrides.get("requires_confirmation") or overrides.get("requires_approval"))
        )

    def _tenant_has(self, caller: Caller, spec: ToolSpec) -> bool:
        return registry.judge(caller, spec, self._snapshot, self._world).allowed

    def _settle(self) -> None:
        """Forget every decision that was made on another catalog or another world."""
        snapshot, world = self._catalog.current, self._tenancy.world
        if snapshot is not self._snapshot or world is not self._world:
            self._snapshot, self._world = snapshot, world
            self._grants.clear()
            self._listings.clear()


def _verdicts(
    caller: Caller, spec: ToolSpec, snapshot: Snapshot, world: World
) -> Iterator[Verdict]:
    """The phases in order. Who wants only the first refusal stops there."""
    yield registry.judge(caller, spec, snapshot, world)
    yield capsule.judge(caller, spec, world)
