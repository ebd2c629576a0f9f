"""A broker that is away for long: calls go on being taken, and all are run once it is back."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.house import ME
from tests.late import needs
from tests.queue.yard import Yard, over
from tests.servers.fixtures import needed
from tests.servers.kafka import Kafka
from tests.thorough import some

needs("aiokafka", "an extra")
# Ten minutes at a hundred a second; in CI ten seconds of it.
SECONDS = some(10, 600)
RATE = 100
ACCOUNTS = 50
pytestmark = [pytest.mark.req("P6", "S2"), pytest.mark.timeout(120 + 4 * SECONDS)]


async def test_what_came_while_the_broker_was_away_runs_in_its_order_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    calls = SECONDS * RATE
    bounds = f"waiting = {calls + 100}\ntenant_waiting = {calls + 100}"
    with needed(Kafka) as kafka, Yard(tmp_path, kafka.address, queue=bounds) as place:
        async with place.gate(work="always") as gate:
            assert (await gate.call("look", {"text": "before"}, caller=ME)).ok
            kafka.stop()
            began = time.monotonic()
            ids: list[str] = []
            for number in range(calls):
                await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
                args = {"text": str(number), "account": f"a{number % ACCOUNTS}"}
                output = await gate.call("post", args, caller=ME, wait_s=0)
                assert output.status == "queued", output
                ids.append(output.call_id)
            kafka.start()
            await over(gate, ids)
        done = [int(one) for one in place.order() if one.isdigit()]
    assert Counter(done) == Counter(range(calls)), "each of them once"
    for account in range(ACCOUNTS):
        mine = [one for one in done if one % ACCOUNTS == account]
        assert mine == sorted(mine), f"a{account} was overtaken"
