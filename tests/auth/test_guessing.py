"""Whoever guesses a key learns nothing from how long it takes to be told no (CASES 144).

What is measured in `make chaos`, and only there: how long the door thinks about a key that is
wrong from its first character on, about one that is wrong only in its last, and about one that
nobody has. A comparison that stops at the first difference is found by the same measure. In CI the
measure itself is tested, on times that are drawn and not measured.
"""

from collections.abc import Callable
from itertools import cycle
from random import Random

import pytest

from tests.auth.timing import Gap, gap, sampled
from tests.thorough import IS_THOROUGH, some
from toolgate.errors import Unauthenticated
from toolgate.server.auth import Door
from toolgate.tenancy import keys
from toolgate.tenancy.keys import Role
from toolgate.tenancy.world import World

pytestmark = pytest.mark.req("V3")
SAMPLES = 20_000
PREFIX = len("tg_agent_")
measured = pytest.mark.skipif(not IS_THOROUGH, reason="it measures time: make chaos")
Ask = Callable[[bytes], object]


@pytest.fixture(scope="module")
def secrets() -> list[str]:
    """As many as there are guesses: none is asked twice, so that no two are near by chance."""
    return [keys.make(Role.AGENT).secret for _ in range(some(200, SAMPLES))]


def door(secrets: list[str]) -> Ask:
    made = {
        keys.digest(one): keys.Key(id=f"key_{at}", digest=keys.digest(one), role=Role.AGENT)
        for at, one in enumerate(secrets)
    }
    world = World(keys=made)
    return Door(lambda: world).known


def leaky(secrets: list[str]) -> Ask:
    """A door that compares the key itself, and stops where it differs."""
    turns = cycle(secrets)

    def known(header: bytes) -> None:
        given = header[7:].decode()
        for ours, theirs in zip(next(turns), given, strict=True):
            if ours != theirs:
                break

    return known


def refused(ask: Ask) -> Ask:
    def asked(header: bytes) -> None:
        try:
            ask(header)
        except Unauthenticated:
            return

    return asked


def guesses(secrets: list[str]) -> dict[str, Callable[[], bytes]]:
    """Of each kind, one for a key on record after the other."""
    firsts, lasts = cycle(secrets), cycle(secrets)

    def wrong(secret: str, at: int) -> bytes:
        other = "A" if secret[at] != "A" else "B"
        return f"Bearer {secret[:at]}{other}{secret[at + 1 :]}".encode()

    return {
        "first": lambda: wrong(next(firsts), PREFIX),
        "last": lambda: wrong(next(lasts), len(secrets[0]) - 1),
        "nobody": lambda: b"Bearer " + keys.make(Role.AGENT).secret.encode(),
    }


def gaps(ask: Ask, secrets: list[str]) -> dict[str, Gap]:
    """Between a guess that is nearly right and the others."""
    took = sampled(refused(ask), guesses(secrets), SAMPLES, seed=144)
    return {kind: gap(took["last"], took[kind]) for kind in ("first", "nobody")}


@measured
def test_a_key_that_is_nearly_right_takes_as_long_as_one_that_is_not(secrets: list[str]) -> None:
    found = gaps(door(secrets), secrets)
    # Once in a billion by chance; twice in a row is no chance.
    if any(one.is_usable for one in found.values()):
        found = gaps(door(secrets), secrets)
    assert not any(one.is_usable for one in found.values()), found


@measured
def test_a_comparison_that_stops_at_the_first_difference_is_found(secrets: list[str]) -> None:
    """The guard-off control. Each guess meets the key that it was made for, or another one."""
    alone = secrets[:1]
    found = gaps(leaky(alone), alone)
    assert all(one.is_usable for one in found.values()), found
    assert all(one.ns > 0 for one in found.values()), "the nearer, the longer"


@pytest.mark.parametrize(("longer", "is_usable"), [(0, False), (2, False), (60, True)])
def test_the_measure_finds_a_small_difference_behind_much_noise(
    longer: int,
    is_usable: bool,  # noqa: FBT001  a row of the table
) -> None:
    drawn = Random(144)  # noqa: S311  nothing secret is drawn

    def times(more: int) -> list[int]:
        """Around five microseconds; slower for a while now and then, and some far too long."""
        found: list[int] = []
        for at in range(SAMPLES):
            slow = 1.6 if at // 700 % 5 == 0 else 1.0
            late = drawn.expovariate(1 / 200_000) if drawn.random() < 0.01 else 0
            found.append(round((5_000 + drawn.expovariate(1 / 400)) * slow + late) + more)
        return found

    assert gap(times(longer), times(0)).is_usable == is_usable


def test_every_wrong_key_is_refused_and_a_right_one_opens(secrets: list[str]) -> None:
    ask = door(secrets)
    for make in guesses(secrets).values():
        for _ in range(len(secrets)):
            with pytest.raises(Unauthenticated):
                ask(make())
    assert ask(f"Bearer {secrets[0]}".encode())
