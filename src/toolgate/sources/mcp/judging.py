"""What of a server's tools can be offered, what waits for an operator, and what cannot be used."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from toolgate.settings.outward import McpServer
from toolgate.sources.mcp import naming, specs
from toolgate.sources.mcp.definition import FIELDS, fingerprint
from toolgate.sources.mcp.overlay import Overlay
from toolgate.sources.mcp.unheard import unheard
from toolgate.spec.document import MAX_BYTES, canonical
from toolgate.spec.names import kept
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.servers import Pin, Pins
from toolgate.upstreams.suspicion import shown, suspicions

MOST_TOOLS = 5_000
# What to do about one that waits, before the server's name.
LOOK = "look at it: toolgate servers diff "
_MOST_NAME = 200
_MOST_REASONS = 3
_MOST_TOLD = 5


class Held(NamedTuple):
    """A tool that waits: why, and what would be agreed to."""

    reason: str
    pin: Pin


class Judged(NamedTuple):
    """A server's tools, sorted. `fresh` is what is agreed to because it is seen first."""

    specs: tuple[ToolSpec, ...]
    held: Mapping[str, Held]
    fresh: Mapping[str, Pin]
    known: Mapping[str, Mapping[str, Any]]
    skipped: tuple[str, ...]
    # Tools that an entry of the overlay may be meant for which means none, and that entry.
    doubtful: Mapping[str, str] = {}

    @property
    def closed(self) -> dict[str, str]:
        """What must not be called, and why."""
        return {**self.doubtful, **{own: one.reason for own, one in self.held.items()}}

    @property
    def problem(self) -> str:
        """What an operator should know; empty where all is well."""
        told: list[str] = []
        if self.held:
            names = ", ".join(shown(name) for name in list(self.held)[:_MOST_TOLD])
            told.append(f"{_count(self.held)} for an operator ({names})")
        if self.skipped:
            more = len(self.skipped) - _MOST_TOLD
            told += self.skipped[:_MOST_TOLD]
            told += [f"and {more:,} more"] if more > 0 else []
        return "; ".join(told)


class House(NamedTuple):
    """What else there is: names that are taken, by one spelling too, and the words of others by
    what they look like.
    """

    taken: Collection[str] = ()
    others: Mapping[str, str] = {}
    spelled: Mapping[str, str] = {}


class Judge:
    """One server's tools, again and again: a spec that was made is not made twice."""

    def __init__(self, server: str, settings: McpServer) -> None:
        self._server = server
        self._settings = settings
        self._made: dict[str, tuple[str, Overlay, ToolSpec]] = {}

    def judge(
        self,
        definitions: Sequence[Mapping[str, Any]],
        pins: Pins | None,
        overlay: Overlay,
        house: House,
        *,
        is_live: bool = True,
    ) -> Judged:
        """`pins` is `None` where nobody has seen this server before; `is_live`: these are all that
        it has now, so that an overlay can be held against them.
        """
        prefix = naming.prefix_of(self._server, self._settings.prefix)
        found: dict[str, ToolSpec] = {}
        held: dict[str, Held] = {}
        fresh: dict[str, Pin] = {}
        known: dict[str, Mapping[str, Any]] = {}
        names = {str(one.get("name")) for one in definitions}
        missed = unheard(overlay, {*names, *specs.SHORT}) if is_live else []
        doubtful = {own: one.says for one in missed for own in one.meant if own in names}
        skipped = [one.says for one in missed]
        for number, definition in enumerate(definitions):
            if number == MOST_TOOLS:
                skipped.append(f"it has more than {MOST_TOOLS:,} tools; the rest is left out")
                break
            try:
                own, pin = _pin(definition)
                name = naming.ours(prefix, own)
                self._refuse(name, own, found, house)
                # What could not be used waits for nobody.
                spec = self._spec(own, pin, overlay)
                reason = self._reason(name, own, pin, pins, house)
                if reason:
                    held[own] = Held(reason, pin)
                    spec = specs.held(self._server, self._settings, own, reason)
                elif pins is None:
                    fresh[own] = pin
                if own in doubtful and not reason:
                    why = f"it is not clear what holds for it: {doubtful[own]}"
                    spec = specs.held(self._server, self._settings, own, why)
                found[name] = spec
            except ValueError as error:
                skipped.append(f"{shown(str(definition.get('name')))} is left out: {error}")
                continue
            known[own] = pin.definition
        return Judged(tuple(found.values()), held, fresh, known, tuple(skipped), doubtful)

    def _refuse(self, name: str, own: str, found: Collection[str], house: House) -> None:
        if naming.is_borrowed(self._server, name):
            raise ValueError("its name belongs to another server's tools")
        why = kept(name, specs.PROVIDER, self._server)
        if why:
            raise ValueError(f"its name {why}")
        if name in found:
            raise ValueError("it is listed twice")
        if name in house.taken:
            raise ValueError(f"there is another tool {name!r}; set a prefix for this server")
        if len(own) > _MOST_NAME:
            raise ValueError(f"its name has more than {_MOST_NAME} characters")

    def _reason(self, name: str, own: str, pin: Pin, pins: Pins | None, house: House) -> str:
        """Why it waits; empty where it does not."""
        agreed = None if pins is None else pins.get(own)
        if agreed == pin.fingerprint:
            return ""
        odd = [
            *suspicions(pin.definition),
            *naming.look_alikes(own, house.others),
            *naming.respelled(name, house.spelled),
        ]
        look = LOOK + self._server
        if odd:
            more = f" and {len(odd) - _MOST_REASONS} more" if len(odd) > _MOST_REASONS else ""
            return f"it is suspicious ({'; '.join(odd[:_MOST_REASONS])}{more}); {look}"
        if pins is None or not self._settings.pin:
            return ""
        if agreed is None:
            return f"its server has it only since it was agreed to what it has; {look}"
        return f"it is not what was agreed to any more; {look}"

    def _spec(self, own: str, pin: Pin, overlay: Overlay) -> ToolSpec:
        made = self._made.get(own)
        if made is not None and made[0] == pin.fingerprint and made[1] is overlay:
            return made[2]
        spec = specs.spec_of(self._server, self._settings, pin.definition, overlay)
        self._made[own] = (pin.fingerprint, overlay, spec)
        return spec


def _pin(definition: Mapping[str, Any]) -> tuple[str, Pin]:
    own = definition.get("name")
    if not isinstance(own, str) or not own.strip() or not own.isprintable():
        raise ValueError("it has no name that can be shown")
    kept = {field: definition[field] for field in FIELDS if definition.get(field) is not None}
    if len(canonical(kept)) > MAX_BYTES:
        raise ValueError(f"its definition has more than {MAX_BYTES:,} bytes")
    return own, Pin(fingerprint(kept), kept)


def _count(held: Mapping[str, Held]) -> str:
    return "1 tool waits" if len(held) == 1 else f"{len(held):,} tools wait"
