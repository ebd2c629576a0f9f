"""`GET /v1/events`: who hears of what, how it ends, and that nothing stays behind."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.server.busy import Busy, busy
from tests.server.test_routes import is_problem

EVENTS = ("GET", "/v1/events")
SOON = "from toolgate.server import streaming; streaming.HEARTBEAT_S = 0.05; "


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("events"), before=SOON) as served:
        yield served


def heard(events: Iterator[tuple[str, Any]], text: str) -> list[tuple[str, str, str]]:
    """Kind, agent and user of what is told, up to the end of the call with this argument."""
    found: list[tuple[str, str, str]] = []
    for kind, data in events:
        if kind == ":":
            continue
        found.append((kind, data["agent"], data["payload"]["user"]))
        if kind == "side_effect.completed" and data["payload"]["args"] == {"text": text}:
            return found
    raise AssertionError(f"it ended before that was told: {found}")


def mixed(house: Busy, last: str) -> None:
    """Calls of everybody; the last one is that which is waited for."""
    for who in ("agent", "bob", "intern", "stranger"):
        assert house.call(who, "act", {"text": f"of {who}"}).body["ok"] is True
    for who in ("agent", "stranger"):
        assert house.call(who, "act", {"text": last}).body["ok"] is True


STARTED, ENDED = "side_effect.started", "side_effect.completed"


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("who", ["admin", "own", "operator"])
def test_who_looks_after_a_tenant_hears_of_all_in_it(house: Busy, who: str) -> None:
    with house.stream(who, *EVENTS) as (response, events):
        assert response.getheader("content-type") == "text/event-stream"
        assert next(events)[0] == ":"
        mixed(house, f"last of {who}")
        pairs = [("billing", "ann"), ("billing", "bob"), ("intern", "ann"), ("billing", "ann")]
        assert heard(events, f"last of {who}") == [
            (kind, *pair) for pair in pairs for kind in (STARTED, ENDED)
        ]


@pytest.mark.req("V2", "V3")
def test_an_agent_hears_of_its_own_calls_and_of_nobody_elses(house: Busy) -> None:
    with house.stream("agent", *EVENTS) as (_, events):
        assert next(events)[0] == ":"
        mixed(house, "own")
        own = [(STARTED, "billing", "ann"), (ENDED, "billing", "ann")]
        assert heard(events, "own") == own * 2


@pytest.mark.req("V3")
def test_no_tenant_hears_of_another(house: Busy) -> None:
    with house.stream("watcher", *EVENTS) as (_, events):
        assert next(events)[0] == ":"
        mixed(house, "theirs")
        told = heard(events, "theirs")
        assert told == [(STARTED, "billing", "ann"), (ENDED, "billing", "ann")] * 2
    for who in ("own", "operator", "agent", "stranger", "watcher"):
        tenant = "acme" if who in {"stranger", "watcher"} else "umbrella"
        theirs = house.ask(who, "GET", f"/v1/events?tenant={tenant}")
        missing = house.ask(who, "GET", "/v1/events?tenant=nobody")
        is_problem(theirs, 400, "invalid_request")
        assert theirs.text == missing.text


@pytest.mark.req("V3")
def test_without_the_filter_an_agent_would_hear_of_others(tmp_path: Path) -> None:
    """The guard-off control."""
    off = "from toolgate.server import events; events._is_for = lambda request, one: True; "
    with busy(tmp_path, before=SOON + off) as house, house.stream("agent", *EVENTS) as (_, events):
        assert next(events)[0] == ":"
        mixed(house, "own")
        assert ("bob" in {user for _, _, user in heard(events, "own")}) is True


def test_an_admin_hears_of_the_tenant_it_names(house: Busy) -> None:
    with house.stream("admin", "GET", "/v1/events?tenant=umbrella") as (_, events):
        assert next(events)[0] == ":"
        mixed(house, "named")
        assert len(heard(events, "named")) == 4


@pytest.mark.req("V3")
def test_a_key_has_so_many_streams_and_no_more(house: Busy) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            _, events = stack.enter_context(house.stream("bob", *EVENTS))
            assert next(events)[0] == ":"
        full = house.ask("bob", "GET", "/v1/events")
        assert (full.status, full.body["code"]) == (429, "rate_limited")
        assert int(full.headers["retry-after"]) >= 1
        with house.stream("agent", *EVENTS) as (response, events):
            assert (response.status, next(events)[0]) == (200, ":"), "another key has its own"


@pytest.mark.req("V3")
def test_a_tenant_of_many_keys_leaves_streams_for_another(tmp_path: Path) -> None:
    few = "from toolgate.server import events; events.MOST_OF_TENANT = 2; events.MOST = 3; "
    with busy(tmp_path, before=SOON + few) as narrow, ExitStack() as stack:
        for who in ("agent", "bob"):
            _, told = stack.enter_context(narrow.stream(who, *EVENTS))
            assert next(told)[0] == ":"
        full = narrow.ask("own", "GET", "/v1/events")
        assert (full.status, full.body["code"]) == (429, "rate_limited")
        with narrow.stream("stranger", *EVENTS) as (response, told):
            assert (response.status, next(told)[0]) == (200, ":")


async def test_who_goes_away_frees_its_place(house: Busy) -> None:
    for _ in range(3):
        with ExitStack() as stack:
            for _ in range(4):
                _, events = stack.enter_context(house.stream("stranger", *EVENTS))
                assert next(events)[0] == ":"

    def is_free() -> bool:
        with ExitStack() as stack:
            opened = [stack.enter_context(house.stream("stranger", *EVENTS)) for _ in range(8)]
            return all(response.status == 200 for response, _ in opened)

    await until(is_free)


@pytest.mark.req("V3")
def test_a_key_that_is_revoked_hears_no_more(house: Busy) -> None:
    new = {"tenant": "acme", "role": "agent", "agent": "billing"}
    made = house.ask("admin", "POST", "/v1/admin/keys", new).body
    short = house._replace(secrets={"short": made["secret"]})
    with short.stream("short", *EVENTS) as (_, events):
        assert next(events)[0] == ":"
        assert house.ask("admin", "DELETE", f"/v1/admin/keys/{made['id']}").status == 200
        assert [kind for kind, _ in events if kind != ":"] == []


@pytest.mark.req("V2")
def test_a_server_that_ends_ends_the_streams_first(tmp_path: Path) -> None:
    with busy(tmp_path) as house, house.stream("own", *EVENTS) as (_, events):
        assert next(events)[0] == ":"
        house.server.process.terminate()
        assert list(events) == []
        assert house.server.process.wait(20) == 0


def test_an_approver_hears_nothing(house: Busy) -> None:
    is_problem(house.ask("approver", "GET", "/v1/events"), 403, "permission_denied")
    is_problem(house.ask("nobody", "GET", "/v1/events"), 401, "unauthenticated")
