"""The real servers as pytest fixtures, one of each a session; an xdist worker has its own session.

A server that is absent skips its tests, or fails them where TOOLGATE_REQUIRE_SERVICES=1 (CI).
"""

import os
from collections.abc import Callable, Generator
from typing import NoReturn, TypeVar

import pytest

from tests.servers.guarded_kafka import GuardedKafka
from tests.servers.kafka import Kafka
from tests.servers.opa import Opa
from tests.servers.postgres import Postgres
from tests.servers.process import AbsentError, Process
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB

Server = TypeVar("Server", bound=Process)
Thing = TypeVar("Thing")


def running(kind: Callable[[], Server]) -> Generator[Server]:
    """A server for as long as its fixture lasts; where it is absent, CI fails and others skip."""
    with needed(kind) as server:
        yield server


def needed(kind: Callable[[], Thing]) -> Thing:
    """What `make services` brings, or a test that is skipped; in CI, one that fails."""
    try:
        return kind()
    except AbsentError as reason:
        lacking(str(reason))


def lacking(what: str) -> NoReturn:
    """A test that cannot run here is skipped; in CI it fails."""
    if os.environ.get("TOOLGATE_REQUIRE_SERVICES") == "1":
        pytest.fail(f"required: {what}", pytrace=False)
    pytest.skip(f"skipped: {what}")


@pytest.fixture(scope="session")
def opa() -> Generator[Opa]:
    yield from running(Opa)


@pytest.fixture(scope="session")
def spicedb() -> Generator[SpiceDB]:
    yield from running(SpiceDB)


@pytest.fixture(scope="session")
def kafka() -> Generator[Kafka]:
    yield from running(Kafka)


@pytest.fixture(scope="session")
def guarded_kafka() -> Generator[GuardedKafka]:
    yield from running(GuardedKafka)


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    yield from running(Postgres)


@pytest.fixture(scope="session")
def redis_server() -> Generator[Redis]:
    yield from running(Redis)
