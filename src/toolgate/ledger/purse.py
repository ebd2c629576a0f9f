"""What one process holds of a tenant's budget of one metric. Pure; it is told the time."""

from toolgate.ledger.budget import FULL, Balance, bounded


class Purse:
    """Calls take from it before they run, and spend it or give it back afterwards.

    Without `most` there is no budget: what is spent is counted, and nothing is held.
    """

    __slots__ = (
        "_drawn",
        "_ends_ns",
        "_held",
        "_journaled",
        "behind",
        "closed",
        "id",
        "metric",
        "most",
        "moves",
        "period",
        "tenant",
        "written",
    )

    def __init__(self, id_: str, tenant: str, metric: str, period: str, most: int | None) -> None:
        self.id = id_
        self.tenant = tenant
        self.metric = metric
        self.period = period
        self.most = most
        # Spent by pure calls, or without a budget; and how much of that the store knows.
        self.behind = 0
        self.written = 0
        # Counts what happens, so that the keeper sees whether anything did.
        self.moves = 0
        # Nobody looks after it any more: whoever still holds it asks for another.
        self.closed = False
        self._drawn = 0
        self._held = 0
        self._journaled = 0
        self._ends_ns = 0

    @property
    def available(self) -> int:
        """What can still be taken, as long as the lease holds."""
        return self._drawn - self.behind - self._journaled - self._held

    @property
    def is_quiet(self) -> bool:
        """Whether no call that runs holds any of it."""
        return self._held == 0

    def take(self, amount: int, now_ns: int) -> bool:
        """Hold so much for a call; whether there was enough."""
        if self.most is not None and (
            self._drawn - self.behind - self._journaled - self._held < amount
            or now_ns >= self._ends_ns
        ):
            return False
        self._held += amount
        self.moves += 1
        return True

    def give_back(self, amount: int) -> None:
        """The call cost nothing."""
        self._held -= amount
        self.moves += 1

    def spend(self, held: int, amount: int) -> None:
        """The call cost so much, which may be more than was held for it."""
        self._held -= held
        self.behind += amount
        self.moves += 1

    def spent_on_record(self, held: int, amount: int) -> None:
        """As `spend`, where the journal has written it with the call's end."""
        self._held -= held
        self._journaled += amount
        self.moves += 1

    def drawn(self, amount: int, ends_ns: int) -> None:
        """More is here, and all of it holds until then."""
        self._drawn += amount
        self._ends_ns = ends_ns
        self.moves += 1

    def renewed(self, ends_ns: int) -> None:
        """All of it holds until then."""
        self._ends_ns = ends_ns

    def limit(self, most: int | None) -> None:
        """There is another budget from now on: what was drawn of the last one is let go."""
        if most != self.most:
            self.most = most
            self.let_go()

    def let_go(self) -> None:
        """Keep only what is spent, and what calls hold that run."""
        self._drawn = self.behind + self._journaled + self._held

    def on_record(self, spent: int) -> None:
        """What the journal has really written: a call that never began was not."""
        # Of what is full, this process knows better how much it is.
        if spent < FULL:
            self._journaled = spent

    def balance(self, now_ns: int) -> Balance:
        """How it stands, for the store. What a lease that has ended held may be another's."""
        if now_ns >= self._ends_ns:
            self.let_go()
        return Balance(
            id=self.id,
            tenant=self.tenant,
            metric=self.metric,
            period=self.period,
            left=bounded(max(self._drawn - self.behind, 0)) if self.most is not None else 0,
            behind=bounded(self.behind),
        )
