"""Who does not run the house starts no program, whichever way it is described (CASES 116)."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.server.busy import Busy, busy
from tests.server.samples import MISSING, asked
from toolgate.server.routes import TABLE

pytestmark = pytest.mark.req("V3")
# It would be started with the first look at it.
PROGRAM = {"command": ["/bin/sh", "-c", "exec sleep 600"]}
OTHERS = ("own", "operator", "approver", "agent", "other", "stranger", "nobody")
# All that there is, but what never ends by itself: a new row is walked from its first day on.
ROUTES = [at for one in TABLE.routes if (at := (one.method, one.address))[1] != "/v1/events"]
SERVERS = [at for at in ROUTES if at[1].startswith("/v1/admin/servers/")]
# Every row is for everybody.
NO_GUARD = "from toolgate.server.route import Route\nRoute.lets_in = lambda self, key: True\n"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("spawning"), before="\n") as served:
        yield served


def children(house: Busy) -> set[str]:
    """What the server has started, and has not ended."""
    parent = f"PPid:\t{house.server.process.pid}\n"
    found: set[str] = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if parent in status.read_text():
                found.add(status.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def ways() -> Generator[tuple[tuple[str, str], str, str, Any]]:
    """Each row as it is meant, and with a program to start where a body is taken."""
    words = {**MISSING, "tenant": "acme"}
    for at in ROUTES:
        method, path, body = asked(at, words)
        path = path.replace("/servers/there", "/servers/mine").replace("elsewhere", "mine")
        if method in {"PUT", "POST"}:
            yield at, method, path, PROGRAM
            yield at, method, path, {**(body or {}), **PROGRAM}
        if at in SERVERS:
            yield at, method, path, body


@pytest.mark.parametrize("who", OTHERS)
def test_who_does_not_run_the_house_starts_no_program(house: Busy, who: str) -> None:
    before = children(house)
    walked: set[tuple[str, str]] = set()
    for at, method, path, body in ways():
        walked.add(at)
        answer = house.ask(who, method, path, body)
        assert 400 <= answer.status < 500, (method, path, answer.text)
        if at in SERVERS:
            assert answer.status == (401 if who == "nobody" else 403), (method, path)
    assert walked >= {at for at in ROUTES if at[0] in {"PUT", "POST"}} | set(SERVERS)
    assert house.ask("admin", "GET", "/v1/admin/servers").body["servers"] == []
    assert children(house) == before


async def test_who_does_may_keep_one_and_only_what_is_kept_is_reached(house: Busy) -> None:
    """The positive control: what was started is seen."""
    before = children(house)
    missing = house.ask("admin", "POST", "/v1/admin/servers/mine/test", {})
    assert missing.status in {400, 404}, "what is not kept is not tried"
    assert children(house) == before
    kept = house.ask("admin", "PUT", "/v1/admin/servers/mine", PROGRAM)
    assert kept.status == 200, kept.text
    await until(lambda: bool(children(house) - before))
    listed = house.ask("admin", "GET", "/v1/admin/servers").body["servers"]
    assert [one["name"] for one in listed] == ["mine"]
    assert house.ask("admin", "DELETE", "/v1/admin/servers/mine").status == 200
    await until(lambda: children(house) == before)


@pytest.fixture
def open_house(tmp_path: Path) -> Generator[Busy]:
    with busy(tmp_path, before=NO_GUARD) as served:
        yield served


async def test_without_the_check_of_rows_an_agent_would_start_one(open_house: Busy) -> None:
    """The guard is what the tests above stand on."""
    before = children(open_house)
    assert open_house.ask("agent", "PUT", "/v1/admin/servers/mine", PROGRAM).status == 200
    await until(lambda: bool(children(open_house) - before))
