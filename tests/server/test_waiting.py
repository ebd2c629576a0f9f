"""Waiting for a call: `wait_s`, `Idempotency-Key`, and what is on record meanwhile."""

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.server.busy import Busy, busy
from tests.server.serving import Answer
from tests.server.test_routes import is_problem


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    quick = "from toolgate.server import streaming; streaming.HEARTBEAT_S = 0.2; "
    with busy(tmp_path_factory.mktemp("waiting"), before=quick) as served:
        yield served


class Aside(threading.Thread):
    """A request that takes its time."""

    def __init__(self, house: Busy, *asked: Any, **headers: str) -> None:
        super().__init__()
        self.asked, self.headers, self.house = asked, headers, house
        self.answer: Answer | None = None
        self.start()

    def run(self) -> None:
        self.answer = self.house.ask(*self.asked, **self.headers)

    def told(self) -> Answer:
        self.join(30)
        assert self.answer is not None
        return self.answer


class Again(Aside):
    """One that comes back for as long as there is no room."""

    def run(self) -> None:
        super().run()
        while self.answer is not None and self.answer.status == 429:
            super().run()


async def begun(house: Busy, name: str) -> tuple[Path, Aside, str]:
    """A call that holds on until its file is there, and its id."""
    here = house.server.root / name
    body = {"tool": "hold", "args": {"path": str(here)}}
    running = Aside(house, "agent", "POST", "/v1/call", body)
    await until(Path(f"{here}.begun").exists)
    [latest, *_] = house.ask("agent", "GET", "/v1/ledger?tool=hold&limit=1").body["calls"]
    return here, running, latest["call_id"]


@pytest.mark.req("V2")
async def test_a_call_is_on_record_while_it_runs_and_its_end_can_be_waited_for(house: Busy) -> None:
    here, running, call_id = await begun(house, "first")
    shown = house.ask("agent", "GET", f"/v1/calls/{call_id}").body
    assert (shown["state"], shown["output"], shown["ended_ns"]) == ("started", None, None)
    brief = house.ask("agent", "GET", f"/v1/calls/{call_id}?wait_s=0.05").body
    assert brief["state"] == "started", "the time was up"
    waiting = Aside(house, "agent", "GET", f"/v1/calls/{call_id}?wait_s=30")
    here.touch()
    ended = waiting.told().body
    assert (ended["state"], ended["output"]["data"]) == ("succeeded", "let go")
    assert running.told().body["call_id"] == call_id
    again = house.ask("agent", "GET", f"/v1/calls/{call_id}?wait_s=600").body
    assert again == ended, "what is over is not waited for"


@pytest.mark.req("V2", "V3")
async def test_only_its_own_caller_sees_or_waits_for_a_call(house: Busy) -> None:
    here, running, call_id = await begun(house, "private")
    for who in ("bob", "intern", "stranger", "own"):
        for query in ("", "?wait_s=5"):
            theirs = house.ask(who, "GET", f"/v1/calls/{call_id}{query}")
            none = house.ask(who, "GET", f"/v1/calls/call_none{query}")
            is_problem(theirs, 404, "call_not_found")
            assert theirs.text.replace(call_id, "call_none") == none.text
    here.touch()
    assert running.told().status == 200


@pytest.fixture
def narrow(tmp_path: Path) -> Generator[Busy]:
    """Where few may wait."""
    few = "from toolgate.server import waiting; waiting.MOST_OF_KEY = 2; waiting.MOST = 3; "
    with busy(tmp_path, before=few) as served:
        yield served


@pytest.mark.req("V2", "V3")
async def test_who_waits_for_much_keeps_nobody_else_from_it(narrow: Busy) -> None:
    here, running, call_id = await begun(narrow, "awaited")
    bobs = narrow.server.root / "bobs"
    body = {"tool": "hold", "args": {"path": str(bobs)}}
    his = Aside(narrow, "bob", "POST", "/v1/call", body)
    await until(Path(f"{bobs}.begun").exists)
    [latest] = narrow.ask("bob", "GET", "/v1/ledger?tool=hold&limit=1").body["calls"]
    own, of_bob = f"/v1/calls/{call_id}", f"/v1/calls/{latest['call_id']}"

    def is_full(who: str, path: str) -> bool:
        return narrow.ask(who, "GET", f"{path}?wait_s=0.01").status == 429

    waiting = [Again(narrow, "agent", "GET", f"{own}?wait_s=30") for _ in range(2)]
    await until(lambda: is_full("agent", own))
    told = narrow.ask("agent", "GET", f"{own}?wait_s=30")
    assert (told.status, told.body["code"]) == (429, "rate_limited")
    assert int(told.headers["retry-after"]) > 0
    assert narrow.ask("agent", "GET", own).status == 200, "who does not wait is answered"
    assert not is_full("bob", of_bob), "another key has room"
    waiting.append(Again(narrow, "bob", "GET", f"{of_bob}?wait_s=30"))
    await until(lambda: is_full("bob", of_bob))
    here.touch()
    bobs.touch()
    assert [one.told().body["state"] for one in waiting] == ["succeeded"] * 3
    assert (running.told().status, his.told().status) == (200, 200)
    here, running, call_id = await begun(narrow, "after")
    assert not is_full("agent", f"/v1/calls/{call_id}"), "who is answered waits no longer"
    here.touch()
    assert running.told().status == 200


@pytest.fixture
def shared(tmp_path: Path) -> Generator[Busy]:
    """Where few of a tenant may wait, however many keys it has."""
    few = "from toolgate.server import waiting; waiting.MOST_OF_TENANT = 2; waiting.MOST = 3; "
    with busy(tmp_path, before=few) as served:
        yield served


@pytest.mark.req("V2", "V3")
async def test_a_tenant_of_many_keys_leaves_room_for_another(shared: Busy) -> None:
    paths: list[Path] = []
    running: list[Aside] = []
    calls: dict[str, str] = {}
    for who in ("agent", "bob", "stranger"):
        paths.append(path := shared.server.root / who)
        body = {"tool": "hold", "args": {"path": str(path)}}
        running.append(Aside(shared, who, "POST", "/v1/call", body))
        await until(Path(f"{path}.begun").exists)
        [latest] = shared.ask(who, "GET", "/v1/ledger?tool=hold&limit=1").body["calls"]
        calls[who] = f"/v1/calls/{latest['call_id']}"

    def is_full(who: str) -> bool:
        return shared.ask(who, "GET", f"{calls[who]}?wait_s=0.01").status == 429

    waiting = [Again(shared, who, "GET", f"{calls[who]}?wait_s=30") for who in ("agent", "bob")]
    await until(lambda: is_full("agent") and is_full("bob"))
    assert not is_full("stranger"), "there is room, and none for more of the other"
    for path in paths:
        path.touch()
    assert [one.told().body["state"] for one in waiting] == ["succeeded"] * 2
    assert [one.told().status for one in running] == [200] * 3


@pytest.mark.parametrize("wait", ["x", "-1", "601", "nan", "inf", "", "٣", "1e999"])
def test_a_time_to_wait_is_a_number_of_seconds(house: Busy, wait: str) -> None:
    quoted = "".join(f"%{byte:02x}" for byte in wait.encode())
    answer = house.ask("agent", "GET", f"/v1/calls/call_none?wait_s={quoted}")
    is_problem(answer, 400, "invalid_request")


@pytest.mark.req("V2", "S6")
async def test_a_call_that_waits_for_a_person_can_be_waited_for(house: Busy) -> None:
    text = {"text": "with care"}
    asked = Aside(
        house, "agent", "POST", "/v1/call", {"tool": "careful", "args": text, "wait_s": 30}
    )

    def open_ones() -> list[Any]:
        return house.ask("approver", "GET", "/v1/approvals").body["approvals"]

    await until(lambda: len(open_ones()) == 1)
    [approval] = open_ones()
    call_id = approval["call_id"]
    assert house.ask("agent", "GET", f"/v1/calls/{call_id}").body["state"] == "waiting"
    waiting = Aside(house, "agent", "GET", f"/v1/calls/{call_id}?wait_s=30")
    done = house.ask("approver", "POST", f"/v1/approvals/{approval['id']}/approve", {"reason": "y"})
    assert done.status == 200, done.text
    assert asked.told().body["data"] == "with care"
    assert waiting.told().body["state"] == "succeeded"


@pytest.mark.req("X3", "V2")
def test_a_key_in_the_header_makes_two_calls_one(house: Busy) -> None:
    body = {"tool": "act", "args": {"text": "once"}}
    first = house.ask("agent", "POST", "/v1/call", body, Idempotency_Key="k-1").body
    second = house.ask("agent", "POST", "/v1/call", body, Idempotency_Key="k-1").body
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["call_id"] == second["call_id"]
    in_body = house.ask("agent", "POST", "/v1/call", body | {"idempotency_key": "k-1"}).body
    assert in_body["call_id"] == first["call_id"]
    other = {"tool": "act", "args": {"text": "another"}}
    conflict = house.ask("agent", "POST", "/v1/call", other, Idempotency_Key="k-1")
    is_problem(conflict, 422, "idempotency_conflict")
    both = house.ask(
        "agent", "POST", "/v1/call", body | {"idempotency_key": "k-2"}, Idempotency_Key="k-1"
    )
    is_problem(both, 400, "invalid_request")
    for path in ("batch", "chain", "messages"):
        refused = house.ask("agent", "POST", f"/v1/{path}", {}, Idempotency_Key="k-1")
        is_problem(refused, 400, "invalid_request")


@pytest.mark.req("V3")
async def test_a_key_that_is_revoked_meanwhile_hears_nothing_more(house: Busy) -> None:
    new = {"role": "agent", "tenant": "acme", "agent": "billing", "user": "ann"}
    gone = house.ask("admin", "POST", "/v1/admin/keys", new).body
    house = house._replace(secrets={**house.secrets, "gone": gone["secret"]})
    here, running, call_id = await begun(house, "revoked")
    stays = Aside(house, "agent", "GET", f"/v1/calls/{call_id}?wait_s=30")
    leaves = Aside(house, "gone", "GET", f"/v1/calls/{call_id}?wait_s=30")
    assert house.ask("gone", "GET", f"/v1/calls/{call_id}").status == 200
    live = house.server.root / "revoked_live"
    body = {"tool": "hold", "args": {"path": str(live)}}
    with house.stream("gone", "POST", "/v1/call", body) as (answer, events):
        assert answer.status == 200
        assert next(events)[0] == ":", "it is let in, and waits"
        path = f"/v1/admin/keys/{gone['id']}"
        assert house.ask("admin", "DELETE", path).status == 200
        is_problem(leaves.told(), 401, "unauthenticated")
        name, told = next(one for one in events if one[0] != ":")
        assert (name, told["code"]) == ("problem", "unauthenticated")
        live.touch()
        assert list(events) == [], "it ran to its end, of which nothing is told"
    here.touch()
    assert stays.told().body["state"] == "succeeded", "the positive control"
    assert running.told().status == 200
