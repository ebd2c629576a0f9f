"""Every address that takes a body, with bodies that were made to hurt; and methods that are not."""

import http.client
from collections.abc import Generator

import orjson
import pytest

from tests.server.busy import Busy, busy
from tests.server.samples import MISSING, asked
from tests.server.test_routes import is_problem
from toolgate.server.routes import TABLE

ROUTES = {(route.method, route.address): route for route in TABLE.routes}
TAKING = [at for at, route in ROUTES.items() if route.body is not None]
HOSTILE: dict[str, bytes] = {
    "a thousand deep": b'{"x":' * 1_000 + b"1" + b"}" * 1_000,
    "a hundred thousand deep": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "never closed": b"[" * 100_000,
    "the same name twice": b'{"why": "a", "why": "b"}',
    "the same name twice inside": b'{"x": {"a": 1, "a": 2}}',
    "beyond numbers": b'{"x": 1e999}',
    "not a number": b'{"x": NaN}',
    "infinity": b'{"x": -Infinity}',
    "half a character": b'{"x": "\\ud800"}',
    "not utf-8": b'{"x": "\xff\xfe"}',
    "a million names": b"{" + b",".join(b'"%d":0' % n for n in range(1_000_000)) + b"}",
    "half a million names": orjson.dumps({str(number): 0 for number in range(100_001)}),
    "a long number": b'{"x": ' + b"9" * 100_000 + b"}",
    "more than a mebibyte": b'{"x": "' + b"x" * (1024 * 1024) + b'"}',
    "a zero byte": b'{"x": "a"}\x00',
    "two objects": b"{}{}",
    "a list": b"[]",
    "a text": b'"x"',
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("hostile")) as served:
        yield served


@pytest.mark.req("V2", "X5")
@pytest.mark.parametrize("at", TAKING, ids=" ".join)
def test_no_body_that_was_made_to_hurt_is_taken(house: Busy, at: tuple[str, str]) -> None:
    method, path, _ = asked(at, {**MISSING, "tenant": "acme"})
    before = house.ask("admin", "GET", "/v1/admin/audit").body
    for kind, raw in HOSTILE.items():
        answer = house.server.ask(method, path, key=house.secrets["admin"], raw=raw)
        detail = is_problem(answer, 400, "invalid_request")["detail"]
        assert len(detail) < 400, kind
    assert house.ask("admin", "GET", "/v1/admin/audit").body == before, "nothing was changed"


@pytest.mark.req("V2")
def test_fifty_megabytes_are_not_read_to_their_end(house: Busy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", house.server.port, timeout=30)
    size, piece = 50 * 1024 * 1024, b" " * 65_536
    try:
        connection.putrequest("POST", "/v1/call")
        connection.putheader("Authorization", f"Bearer {house.secrets['agent']}")
        connection.putheader("Content-Length", str(size))
        connection.endheaders()
        sent = 0
        try:
            while sent < size:
                connection.send(piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = connection.getresponse()
        assert answer.status == 400
        assert orjson.loads(answer.read())["code"] == "invalid_request"
    finally:
        connection.close()
    assert house.ask("agent", "GET", "/v1/tools").status == 200


@pytest.mark.req("V2")
@pytest.mark.parametrize("path", sorted({route.address for route in TABLE.routes}))
def test_a_method_that_a_path_does_not_take_is_told_which_it_does(house: Busy, path: str) -> None:
    there = [at for at in ROUTES if at[1] == path]
    allowed = {method for method, _ in there}
    allowed |= {"HEAD"} if "GET" in allowed else set()
    _, real, _ = asked(there[0], MISSING)
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "OPTIONS"} - allowed:
        answer = house.ask("admin", method, real.partition("?")[0])
        assert answer.status == 405, method
        assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.req("V2")
@pytest.mark.parametrize("at", [at for at in ROUTES if ROUTES[at].roles], ids=" ".join)
def test_a_field_that_is_not_known_is_refused_wherever_it_stands(
    house: Busy, at: tuple[str, str]
) -> None:
    method, path, body = asked(at, {**MISSING, "tenant": "acme"})
    if at[1] == "/metrics":
        return
    join = "&" if "?" in path else "?"
    answer = house.ask("admin", method, f"{path}{join}no_such_field=1", body)
    assert "no_such_field" in is_problem(answer, 400, "invalid_request")["detail"]
    if method != "GET":
        twice = house.ask("admin", method, path, {"no_such_field": 1})
        is_problem(twice, 400, "invalid_request")
    doubled = house.ask("admin", method, f"{path}{join}limit=1&limit=2", body)
    is_problem(doubled, 400, "invalid_request")


@pytest.mark.req("V2")
@pytest.mark.parametrize("at", [at for at in ROUTES if at[1].endswith("}")], ids=" ".join)
def test_an_empty_name_is_no_address(house: Busy, at: tuple[str, str]) -> None:
    path = at[1].rpartition("{")[0].replace("{id}", "x")
    is_problem(house.ask("admin", at[0], path), 404, "not_found")
