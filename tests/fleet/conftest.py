"""Four nodes behind a balancer, for all tests of a process: the fleet that they are about."""

from collections.abc import Generator
from typing import NamedTuple

import pytest

from tests.fleet.house import FILES, Keys, people
from tests.fleet.nodes import Fleet, made_database
from tests.servers.fixtures import needed
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis

NODES = 4
# Whichever test comes first waits until all of them are up, on a machine that may do much else.
STARTS = pytest.mark.timeout(180)
SETTINGS = """
[limits]
processes = 4

[relations]
engine = "store"

[mcp]
task_after = 0.05
"""
# A machine that is busy is no outage.
PATIENT = (
    "from toolgate.store import rates, redis; rates._SECONDS = redis._SECONDS = 5.0; "
    "from toolgate.tenancy import present; present.FRESHEN_SECONDS = 30.0; "
)


class Served(NamedTuple):
    fleet: Fleet
    keys: Keys
    redis: Redis


@pytest.fixture(scope="session")
def served(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    root = tmp_path_factory.mktemp("fleet")
    with needed(Redis) as redis:
        store = made_database(postgres)
        fleet = Fleet(
            root,
            nodes=NODES,
            store=store,
            redis=redis.url,
            files=FILES,
            settings=SETTINGS,
            before=PATIENT,
        )
        with fleet:
            yield Served(fleet, people(fleet), redis)
