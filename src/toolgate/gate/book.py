"""What was decided before, for one caller on one catalog, world and policy."""

import msgspec

from toolgate import clock
from toolgate.call import Grant
from toolgate.caller import Action, Caller
from toolgate.catalog.snapshot import Snapshot
from toolgate.errors import InvalidRequest
from toolgate.gate.decision import Verdict
from toolgate.gate.document import question
from toolgate.gate.layers import cascade, flat
from toolgate.gate.moment import Moment
from toolgate.gate.recorder import exactly
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.keys import Living, not_valid
from toolgate.tenancy.world import World

_MOST_BOOKS = 5_000
_MOST_ANSWERS = 1_000


class Book:
    """One caller's decisions. It is thrown away when anything it rests on has changed."""

    __slots__ = (
        "_living",
        "answers",
        "end_ns",
        "free",
        "grants",
        "listing",
        "moment",
        "refused",
        "until_ns",
        "world",
    )

    def __init__(self, moment: Moment, until_ns: int, living: Living, end_ns: int = 0) -> None:
        self._living = living
        # When what the caller came by is none any more, by the wall clock; 0: it has no end.
        self.end_ns = end_ns
        self.moment = moment
        self.world = moment.world
        self.until_ns = until_ns
        self.grants: dict[str, Grant] = {}
        # Of the grants, those that nothing else has to be asked about.
        self.free: dict[str, Grant] = {}
        self.refused: dict[str, Verdict] = {}
        self.listing: tuple[ToolSpec, ...] | None = None
        # By tool and arguments, where the policy reads those and nothing else of a call.
        self.answers: dict[tuple[str, bytes], tuple[Verdict, str]] = {}

    def lasts(self, now_ns: int) -> bool:
        """Whether its time is not up, by the monotonic clock; and its caller's, by the other."""
        return now_ns < self.until_ns and not 0 < self.end_ns <= clock.unix_ns()

    def keep(self, key: tuple[str, bytes], answer: tuple[Verdict, str]) -> None:
        """Remember an answer about arguments."""
        if len(self.answers) >= _MOST_ANSWERS:
            self.answers.clear()
        self.answers[key] = answer

    def follow(self, caller: Caller, world: World) -> bool:
        """Whether it still holds in this world: what changed was not this caller's affair."""
        before, tenant = self.world, caller.tenant
        if before is world:
            return True
        if before.everyone is not world.everyone:
            return False
        if before.tenant(tenant) is not world.tenant(tenant):
            return False
        if before.keys is not world.keys:
            if not is_let_in(caller, world, self._living):
                return False
            if end_of(caller, world, self._living) != self.end_ns:
                # Its grants say another end.
                return False
        self.world = world
        self.moment = self.moment._replace(world=world)
        # They hold in this world as well, and say so.
        self.grants = {
            name: msgspec.structs.replace(grant, tenancy_revision=world.revision)
            for name, grant in self.grants.items()
        }
        self.free = {name: self.grants[name] for name in self.free}
        return True


class Books:
    """All callers' books: at most so many, and none older than a decision may be."""

    def __init__(self, ttl_ns: int, *, cascading: bool = True) -> None:
        self._ttl_ns = ttl_ns
        self._layers = cascade if cascading else flat
        self._living = Living()
        self.kept: dict[Caller, Book] = {}
        self.snapshot: Snapshot | None = None
        self.revision = ""

    def forget(self) -> None:
        """Every decision is to be made anew."""
        self.kept.clear()

    def of(self, caller: Caller, snapshot: Snapshot, world: World, revision: str) -> Book:
        """The caller's book for this moment, new where the old one does not hold any more.

        `Unauthenticated` where the key that it came by is none any more.
        """
        if snapshot is not self.snapshot or revision is not self.revision:
            self.kept.clear()
            self.snapshot, self.revision = snapshot, revision
        now_ns = clock.monotonic_ns()
        book = self.kept.get(caller)
        if book is not None and book.lasts(now_ns) and book.follow(caller, world):
            return book
        if not is_let_in(caller, world, self._living):
            self.kept.pop(caller, None)
            raise not_valid()
        _tellable(caller, world)
        if len(self.kept) >= _MOST_BOOKS:
            self.kept.clear()
        moment = Moment(snapshot, world, self._layers(caller, world))
        end_ns = end_of(caller, world, self._living)
        book = Book(moment, bounded(now_ns + self._ttl_ns, end_ns), self._living, end_ns)
        self.kept[caller] = book
        return book


def is_let_in(caller: Caller, world: World, living: Living) -> bool:
    """Whether what the caller came by opens something in this world, if it came by anything."""
    if 0 < caller.until_ns <= clock.unix_ns():
        return False
    return not caller.key or living.end_ns(caller.key, world.keys) is not None


def end_of(caller: Caller, world: World, living: Living) -> int:
    """Until when it does, by the wall clock; 0: there is no end."""
    return (living.end_ns(caller.key, world.keys) if caller.key else 0) or caller.until_ns


def bounded(until_ns: int, end_ns: int) -> int:
    """The earlier of a moment of the monotonic clock and one of the wall clock."""
    if not end_ns:
        return until_ns
    return min(until_ns, clock.monotonic_ns() + end_ns - clock.unix_ns())


def _tellable(caller: Caller, world: World) -> None:
    """Whom no engine and no record can be told of is refused before either is asked."""
    try:
        exactly(question(Action.VIEW, caller, world, unlisted_may_add=False))
    except TypeError as error:
        raise InvalidRequest(
            f"This caller cannot be put into words ({error}). Its names and facts are texts in "
            "UTF-8, and numbers of 64 bits. Nothing ran."
        ) from None
