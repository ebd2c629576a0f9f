"""The links that concern people, and what they share: the desk, the bus, the agents' policies."""

from collections.abc import Callable

from toolgate.caller import Caller
from toolgate.executor.extension import Extension
from toolgate.executor.people.approval import Ask, Decide, Decided, Mode
from toolgate.executor.people.bus import Bus
from toolgate.executor.people.desk import Desk
from toolgate.executor.people.outlet import Outlet
from toolgate.executor.people.supersede import Supersede
from toolgate.ledger.approval import Approvals
from toolgate.ledger.journal import Journal
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.tenancy.capsule import NewerMessages
from toolgate.tenancy.world import World


class People:
    """One of each house.

    `decide` is the gate, asked anew behind a wait; the world holds the agents' policies; `is_full`
    says whether too many events wait to be sent, where they are sent at all.
    """

    def __init__(
        self,
        approvals: Approvals,
        *,
        decide: Callable[[], Decide],
        world: Callable[[], World],
        mode: Mode = "unsafe_only",
        ttl: float = 3_600.0,
        is_full: Callable[[], bool] | None = None,
    ) -> None:
        self.bus = Bus()
        self._approvals = approvals
        self._decide = decide
        self._world = world
        self._mode: Mode = mode
        self._ttl = ttl
        self._is_full = is_full
        self._decided = Decided()
        self.desk = Desk(approvals, decided=self._decided, bus=self.bus)

    @property
    def always(self) -> bool:
        """Whether a person is asked about every call."""
        return self._mode == "always"

    def ask(
        self, redactor: Redactor = PLAIN, recorded: set[str] | None = None
    ) -> tuple[Extension, ...]:
        """Nothing, where nobody is ever asked."""
        if self._mode == "never":
            return ()
        return (
            Ask(
                self._approvals,
                mode=self._mode,
                ttl=self._ttl,
                decide=self._decide,
                decided=self._decided,
                bus=self.bus,
                redactor=redactor,
                recorded=recorded,
            ),
        )

    def supersede(self, journal: Journal) -> Supersede:
        """The link before what cannot be taken back."""
        return Supersede(journal, self._policy)

    def outlet(self) -> tuple[Extension, ...]:
        """Nothing, where events are sent to nobody."""
        return () if self._is_full is None else (Outlet(self._is_full),)

    def _policy(self, caller: Caller) -> NewerMessages:
        return self._world().capsule(caller.tenant, caller.agent).newer_messages
