"""Every row of the table, for every role: one's own, another tenant's, and what is missing."""

import http.client
import re
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.server.busy import WHO, Busy, busy
from tests.server.raw import EVENTS, GET, connect
from tests.server.samples import MISSING, SAMPLES, Asked, asked
from tests.server.serving import Answer
from toolgate.server.routes import TABLE

ROUTES = {(route.method, route.address): route for route in TABLE.routes}
# Answers with a stream that never ends: only its beginning is looked at.
ENDLESS = ("GET", "/v1/events")
# What is answered without a key, to everybody or to this machine.
SHOWN = {at for at, route in ROUTES.items() if route.shown is not None}
# What names an object that one tenant has.
NAMED = [
    at
    for at in SAMPLES
    if at not in SHOWN and re.search(r"{(tool|call|group|approval|key)}", str([*SAMPLES[at]]))
]
ACME = ("admin", "own", "operator", "approver", "agent")
_MOMENT = re.compile(r'"(call_id|chain_id|duration_ms|at_ns|last_used)":("[^"]*"|[\d.e-]+)')
UMBRELLA = ("other", "watcher", "arbiter", "stranger")


class House(NamedTuple):
    busy: Busy
    words: Mapping[str, str]

    def ask(self, who: str, one: Asked) -> Answer:
        if not one.path.startswith(ENDLESS[1]):
            return self.busy.ask(who, *one)
        connection = http.client.HTTPConnection("127.0.0.1", self.busy.server.port, timeout=30)
        secret = self.busy.secrets.get(who)
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        try:
            connection.request(one.method, one.path, headers=headers)
            answer = connection.getresponse()
            text = "" if answer.status == 200 else answer.read().decode()
            return Answer(answer.status, {}, text)
        finally:
            connection.close()


def prepared(served: Busy) -> House:
    """Acme has a tool of its own, an agent, a call in a turn, an approval and a key."""
    off = {"tenant": "umbrella", "tool": "act", "enabled": False}
    assert served.ask("admin", "PUT", "/v1/admin/flags", off).status == 200
    there = {"url": "https://nowhere.invalid/mcp"}
    assert served.ask("admin", "PUT", "/v1/admin/servers/there", there).status == 200
    tools = {"text": "tools: []"}
    assert served.ask("admin", "PUT", "/v1/admin/imports/brought", tools).status == 200
    done = served.call("agent", "act", {"text": "x"}, turn={"group": "t-1"}).body
    asks = served.call("agent", "careful", {"text": "x"}).body
    words = {
        "tenant": "acme",
        "tool": "act",
        "call": done["call_id"],
        "group": "t-1",
        "approval": asks["error"]["details"]["approval_id"],
        "key": served.ids["intern"],
        "agent": "billing",
    }
    return House(served, words)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    with busy(tmp_path_factory.mktemp("matrix")) as served:
        yield prepared(served)


def test_there_is_a_sample_of_every_route() -> None:
    assert SAMPLES.keys() == ROUTES.keys()
    assert {*ACME, *UMBRELLA} <= WHO.keys()


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("at", ROUTES, ids=" ".join)
def test_a_route_is_for_the_roles_that_its_row_names(house: House, at: tuple[str, str]) -> None:
    """About what is missing, so that nothing is gone for the next one."""
    route, one = ROUTES[at], asked(at, {**MISSING, "tenant": "acme"})
    for who in ACME:
        answer = house.ask(who, one)
        if at in SHOWN or WHO[who][0] in route.roles:
            assert answer.status in {200, 400, 404, 422}, (who, answer.text)
        else:
            assert (answer.status, answer.body["code"]) == (403, "permission_denied"), who
            assert "not for a key with the role" in answer.body["detail"]
    nobody = house.ask("nobody", one)
    assert nobody.status == (200 if at in SHOWN else 401)


@pytest.mark.req("V3")
@pytest.mark.parametrize("at", [at for at in ROUTES if at not in SHOWN], ids=" ".join)
def test_what_is_anothers_looks_like_what_is_missing(house: House, at: tuple[str, str]) -> None:
    _alike(house, at, UMBRELLA, asked(at, house.words), asked(at, MISSING))


@pytest.mark.req("V3")
@pytest.mark.parametrize("at", NAMED, ids=" ".join)
def test_what_is_anothers_is_missing_in_ones_own_tenant(house: House, at: tuple[str, str]) -> None:
    """The tenant goes unsaid, and only the object is another's."""
    theirs, missing = (asked(at, words, unsaid=True) for words in (house.words, MISSING))
    # Why a tool is off in its own tenant is told to who looks after that.
    who = ("stranger",) if at[1].endswith("/explain") else UMBRELLA
    _alike(house, at, who, theirs, missing)


def _alike(
    house: House, at: tuple[str, str], everybody: tuple[str, ...], theirs: Asked, missing: Asked
) -> None:
    before = house.busy.ask("own", "GET", "/v1/admin/audit").body
    for who in everybody:
        told = [_masked(house.ask(who, one), house.words) for one in (theirs, missing)]
        assert told[0] == told[1], (at, who)
    assert house.busy.ask("own", "GET", "/v1/admin/audit").body == before, "nothing was changed"


def _masked(answer: Answer, words: Mapping[str, str]) -> tuple[int, str]:
    """The answer, without what was asked about."""
    text = answer.text
    for name, missing in MISSING.items():
        for word in (words[name], missing):
            text = text.replace(repr(word)[1:-1], name.upper())
    # When it was asked is no part of what is told.
    return answer.status, _without_moments(text)


def _without_moments(text: str) -> str:
    return _MOMENT.sub(r'"\1"', text)


@pytest.mark.req("V3")
@pytest.mark.parametrize("at", [at for at in ROUTES if at[0] == "GET"], ids=" ".join)
def test_ones_own_is_found(house: House, at: tuple[str, str]) -> None:
    """The positive control: what others are not told of is there."""
    route, one = ROUTES[at], asked(at, house.words)
    callers_own = at in {("GET", "/v1/calls/{id}"), ("GET", "/v1/ledger")}
    for who in ACME:
        if at in SHOWN or WHO[who][0] in route.roles:
            answer = house.ask(who, one)
            is_missing = callers_own and who != "agent" and at[1] != "/v1/ledger"
            assert answer.status == (404 if is_missing else 200), (who, answer.text)


# What a client goes by without a body.
_HEAD = ("content-type", "cache-control", "allow", "www-authenticate", "retry-after")


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("at", [at for at in ROUTES if at[0] == "GET"], ids=" ".join)
def test_the_head_of_an_answer_is_told_alone_to_whom_the_answer_would_be(
    house: House, at: tuple[str, str]
) -> None:
    for one in (asked(at, house.words), asked(at, MISSING)):
        for who in (*ACME, "stranger", "nobody"):
            whole, head = house.ask(who, one), house.busy.ask(who, "HEAD", one.path)
            assert (head.status, head.text) == (whole.status, ""), who
            if at == ENDLESS:
                continue
            assert [head.headers.get(name) for name in _HEAD] == [
                whole.headers.get(name) for name in _HEAD
            ]
            # What it stands for may have changed meanwhile.
            assert ("etag" in head.headers) == ("etag" in whole.headers)
            assert int(head.headers["content-length"]) > 0


def test_who_asks_for_the_head_of_a_stream_does_not_listen(house: House) -> None:
    asked = EVENTS.replace(b"GET", b"HEAD", 1) % house.busy.secrets["agent"].encode()
    # More than a key may have open, over a connection that is kept: each is over.
    with closing(connect(house.busy.server)) as connection:
        for _ in range(20):
            connection.sendall(asked + GET + b"Connection: keep-alive\r\n\r\n")
            told = connection.recv(65536)
            while told.count(b"HTTP/1.1 200 ") < 2:
                told += connection.recv(65536)
            assert b"still here" not in told
    with house.busy.stream("agent", "GET", "/v1/events") as (answer, events):
        assert (answer.status, next(events)[0]) == (200, ":")


GUARDS_OFF = {
    ("GET", "/v1/calls/{id}"): (
        "from toolgate.executor.aftercare import recalled; recalled.is_of = lambda *a: True; "
        "from toolgate.store.journal import TableJournal as J; find = J.find; "
        "J.find = lambda self, tenant, id_: find(self, 'acme', id_); "
    ),
    ("GET", "/v1/admin/calls/{id}"): (
        "from toolgate.server.admin.desk import Desk; "
        "Desk.tenant = property(lambda desk: desk.asked or desk.request.key.tenant); "
    ),
    ("GET", "/v1/approvals/{id}"): (
        "from toolgate.executor.people import desk; desk.sees = lambda *a: True; "
        "from toolgate.server import approvals; from toolgate.ledger.approval import Decider; "
        "approvals._decider = lambda request: Decider(who='x', is_operator=True); "
    ),
}


@pytest.mark.req("V3")
@pytest.mark.parametrize("at", GUARDS_OFF, ids=" ".join)
def test_without_its_guard_what_is_anothers_would_be_told(
    tmp_path: Path, at: tuple[str, str]
) -> None:
    """The guard-off control."""
    with busy(tmp_path, before=GUARDS_OFF[at]) as served:
        house = prepared(served)
        who = "stranger" if "admin" not in at[1] else "other"
        answer = house.ask(who, asked(at, house.words))
        assert (answer.status, "act" in answer.text or "careful" in answer.text) == (200, True)
