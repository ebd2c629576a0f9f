"""Decisions in memory, with the rules of those in a table; everything is gone when it is."""

from collections.abc import Sequence

import msgspec

from toolgate.gate.decision import Decision


class MemoryDecisions:
    """The port for decisions over a dictionary. `made` is what a test looks at, by id."""

    def __init__(self) -> None:
        self.made: dict[str, Decision] = {}

    def note(self, decision: Decision) -> None:
        """Keep it; of one that was kept before, only its last time changes."""
        kept = self.made.get(decision.id)
        if kept is None:
            first_ns = decision.first_ns or decision.at_ns
            self.made[decision.id] = msgspec.structs.replace(decision, first_ns=first_ns)
        else:
            self.made[decision.id] = msgspec.structs.replace(kept, at_ns=decision.at_ns)

    async def since(
        self,
        at_ns: int,
        *,
        tenant: str = "",
        after: tuple[int, str] | None = None,
        most: int | None = None,
    ) -> Sequence[Decision]:
        """Those that were made, or made again, since then, oldest first."""
        found = [
            one
            for one in self.made.values()
            if one.at_ns >= at_ns
            and (not tenant or one.tenant == tenant)
            and (after is None or (one.at_ns, one.id) > after)
        ]
        return sorted(found, key=lambda one: (one.at_ns, one.id))[:most]
