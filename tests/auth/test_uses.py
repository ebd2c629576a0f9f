"""When keys were used: in memory at once, in the store behind it, once a minute at most."""

from collections.abc import Mapping

import pytest

from toolgate import clock
from toolgate.tenancy.uses import Uses
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("V3")
MINUTE = 60_000_000_000


class Counted(MemoryDirectory):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Mapping[str, int]] = []

    async def note_uses(self, uses: Mapping[str, int]) -> None:
        self.written.append(uses)
        await super().note_uses(uses)


async def test_a_use_is_known_here_before_it_is_written() -> None:
    directory = Counted()
    uses = Uses(directory)
    assert await uses.known() == {}
    uses.note("key_a")
    assert set(await uses.known()) == {"key_a"}
    assert not directory.written


async def test_a_key_is_written_once_a_minute_however_often_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory, now = Counted(), [clock.unix_ns()]
    monkeypatch.setattr(clock, "unix_ns", lambda: now[0])
    uses = Uses(directory)
    for _ in range(12):
        uses.note("key_a")
        await uses.write()
        now[0] += MINUTE // 12
    assert len(directory.written) == 1
    uses.note("key_a")
    await uses.write()
    assert [list(one) for one in directory.written] == [["key_a"], ["key_a"]]
    uses.note("key_a")
    await uses.write(all_=True)
    assert len(directory.written) == 3, "the end writes what is left"
    await uses.write(all_=True)
    assert len(directory.written) == 3
