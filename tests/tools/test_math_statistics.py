"""What describes a sample, against numpy."""

import math
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.means import means, no_sandbox
from toolgate.tools.math.sample import describe, label
from toolgate.tools.math.statistics import statistics
from toolgate.tools.working.pool import Workers

np: Any = pytest.importorskip("numpy", reason="skipped: no tools-math")
pytestmark = pytest.mark.req("T1")
# numpy squares what it takes the deviation of, and the square of a smaller number is none.
_one = st.floats(-1e100, 1e100).filter(lambda one: one == 0 or abs(one) > 1e-100)
_data = st.lists(_one, min_size=2, max_size=60)


@given(_data, st.lists(st.floats(0, 100), max_size=4))
def test_a_sample_is_described_as_numpy_does(data: list[float], percentiles: list[float]) -> None:
    told = describe(data, percentiles)
    scale = max(abs(one) for one in data) or 1.0

    def is_near(found: float, wanted: float, size: float = scale) -> bool:
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9 * size)

    assert told["count"] == len(data)
    assert told["sum"] == math.fsum(data)
    assert is_near(told["mean"], np.mean(data))
    assert is_near(told["median"], np.median(data))
    assert is_near(told["std"], np.std(data, ddof=1))
    assert is_near(told["std_population"], np.std(data))
    assert is_near(told["variance"], np.var(data, ddof=1), scale * scale)
    assert (told["min"], told["max"]) == (min(data), max(data))
    assert is_near(told["q1"], np.percentile(data, 25))
    assert is_near(told["q3"], np.percentile(data, 75))
    for one in percentiles:
        assert is_near(told["percentiles"][label(one)], np.percentile(data, one))


@given(_data)
def test_nothing_lies_outside_of_what_it_describes(data: list[float]) -> None:
    told = describe(data, [0, 33, 100])
    assert min(data) <= told["q1"] <= told["median"] <= told["q3"] <= max(data)
    assert min(data) <= told["mean"] <= max(data)
    assert told["percentiles"] == {
        "0": min(data),
        "33": told["percentiles"]["33"],
        "100": max(data),
    }
    assert all(data.count(mode) > 1 for mode in told["modes"])


async def test_a_long_list_is_described_elsewhere_and_alike() -> None:
    data = [float(number % 97) for number in range(5_000)]
    workers, call = Workers(no_sandbox), cast("Any", None)
    try:
        told = await statistics(means(workers=workers), call, data=data, percentiles=[99.5])
    finally:
        await workers.close()
    assert told == describe(data, [99.5])
