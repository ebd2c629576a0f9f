"""What was fetched and nobody has claimed yet, and up to where each partition is done with."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from aiokafka import TopicPartition

# Of so many calls that wait for a place the names are kept; then nothing more is fetched.
_MOST_NOTED = 10_000


class Noted(msgspec.Struct, frozen=True):
    """A message of this house that waits for a place: its row holds all the rest."""

    topic: str
    partition: int
    offset: int
    name: str


class Backlog:
    """In the order in which they were fetched. `most`: so many are held whole."""

    def __init__(self, most: int) -> None:
        self.most = most
        # Those that are held whole came after those that are noted.
        self._whole: deque[Any] = deque()
        self._noted: deque[Noted] = deque()
        self._out: list[Any] = []
        self._passed: dict[TopicPartition, int] = {}
        self._said: dict[TopicPartition, int] = {}
        self._ours: frozenset[TopicPartition] = frozenset()
        # What was here when its partition changed hands: where it comes back, it is brought again.
        self._again: set[tuple[TopicPartition, int]] = set()

    def __len__(self) -> int:
        return len(self._noted) + len(self._whole)

    @property
    def whole(self) -> Sequence[Any]:
        """Those that nobody has looked at."""
        return tuple(self._whole)

    @property
    def room(self) -> int:
        """For how many more there is room; none also where too many are noted."""
        return 0 if len(self._noted) >= _MOST_NOTED else max(self.most - len(self._whole), 0)

    def add(self, records: Iterable[Any]) -> None:
        """They were fetched; what is here already is not needed twice.

        A second copy would hold back what is said to be done, for as long as it takes to come to
        it: while hands change more often than that, for ever.
        """
        for one in records:
            known = (_place(one), one.offset)
            if known in self._again:
                self._again.remove(known)
            else:
                self._whole.append(one)

    def clear(self) -> None:
        """They are brought to somebody again."""
        self._whole.clear()
        self._noted.clear()
        self._passed.clear()
        self._said.clear()
        self._again.clear()
        self._ours = frozenset()

    def take(self, most: int) -> Sequence[Any]:
        """The first ones, until they are `passed` or `put_back`."""
        for _ in range(min(most, len(self))):
            self._out.append((self._noted or self._whole).popleft())
        return tuple(self._out)

    def put_back(self, records: Sequence[Any]) -> None:
        """They are still to be looked at, before all others."""
        self._out.clear()
        for one in reversed(records):
            (self._noted if isinstance(one, Noted) else self._whole).appendleft(one)

    def passed(self, records: Iterable[Any]) -> None:
        """What came of them is on record."""
        self._out.clear()
        for one in records:
            place = _place(one)
            self._passed[place] = max(self._passed.get(place, 0), one.offset + 1)

    def sorted(self, noted: Iterable[Noted], left: Iterable[Any]) -> None:
        """Of those that were whole: the ones that wait by name, and those still to be looked at."""
        self._noted.extend(noted)
        self._whole = deque(left)

    def due(self, places: Iterable[Any]) -> Mapping[Any, int]:
        """Up to where these are done with, where nobody was told so: before the first one here."""
        found = {place: self._passed[place] for place in places if place in self._passed}
        for one in (*self._out, *self._noted, *self._whole):
            place = _place(one)
            if one.offset < found.get(place, 0):
                found[place] = one.offset
        return {place: at for place, at in found.items() if self._said.get(place) != at}

    def said(self, places: Mapping[Any, int]) -> None:
        """They were told."""
        self._said |= places

    def forget(self, places: Iterable[Any]) -> None:
        """They change hands: whoever has them next reads from where they were committed."""
        lost = set(places)
        for place in lost:
            self._passed.pop(place, None)
            self._said.pop(place, None)
        here = (*self._out, *self._noted, *self._whole)
        self._again = {(_place(one), one.offset) for one in here if _place(one) in lost}

    def own(self, places: Iterable[Any]) -> None:
        """They are read here from now on. What is here of others is brought to whoever has them."""
        ours = frozenset(places)
        kept = ours & self._ours
        self._ours = ours
        self._noted = deque(one for one in self._noted if _place(one) in kept)
        self._whole = deque(one for one in self._whole if _place(one) in kept)
        self._again = {(place, at) for place, at in self._again if place in kept}
        for known in (self._passed, self._said):
            for place in known.keys() - kept:
                del known[place]


def _place(one: Any) -> TopicPartition:
    return TopicPartition(one.topic, one.partition)
