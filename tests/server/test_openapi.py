"""`GET /openapi.json`: it says what the table says, and what the server does is what it says."""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.server.busy import Busy, busy
from toolgate.server.problems import STATUS, WIRE
from toolgate.server.routes import TABLE

# How long each run goes on, once every operation was covered; `make fuzz` sets it.
SECONDS = int(os.environ.get("TOOLGATE_FUZZ_SECONDS", "0"))
# What needs more than a schema to be judged: which values an operator has, and what belongs to whom
# (tests/server/test_matrix.py).
BEYOND = "positive_data_acceptance,object_level_authorization"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("openapi")) as served:
        yield served


def described(house: Busy) -> Any:
    answer = house.ask("nobody", "GET", "/openapi.json")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    return answer.body


@pytest.mark.req("V2")
def test_every_route_is_described_and_nothing_else(house: Busy) -> None:
    told = described(house)
    assert told["openapi"] == "3.1.0"
    there = {(method.upper(), path) for path, of in told["paths"].items() for method in of}
    assert there == {(route.method, route.address) for route in TABLE.routes}
    ids = [of["operationId"] for path in told["paths"].values() for of in path.values()]
    assert len(ids) == len(set(ids)) == len(TABLE.routes)


@pytest.mark.req("V2")
def test_what_is_referred_to_is_there_and_all_that_is_there_is_referred_to(house: Busy) -> None:
    told = described(house)
    schemas = told["components"]["schemas"]
    used = re.findall(r"#/components/schemas/([\w.]+)", str(told))
    assert set(used) == schemas.keys()


@pytest.mark.req("V2", "V3")
def test_who_may_ask_and_what_can_go_wrong_is_told(house: Busy) -> None:
    paths = described(house)["paths"]
    codes = {kind.code for kind in STATUS} | WIRE.keys()
    for route in TABLE.routes:
        told = paths[route.address][route.method.lower()]
        assert ("security" in told) == bool(route.roles), route.path
        for role in route.roles:
            assert role in told["description"]
        assert set(route.codes) <= codes, route.path
        assert ("401" in told["responses"]) == bool(route.roles)
        assert ("304" in told["responses"]) == route.tagged


def test_no_two_rows_of_the_table_answer_the_same_request() -> None:
    asked = [(route.method, re.sub(r"\{.*?\}", "{}", route.path)) for route in TABLE.routes]
    assert len(asked) == len(set(asked))
    for route in TABLE.routes:
        scope = {"path": re.sub(r"\{.*?\}", "x", route.path)}
        found = TABLE.find(scope)
        assert found.methods[route.method] is route
        assert found.names == ("x",) * len(route.params)


def _values(house: Busy) -> str:
    """Names that are there, so that what is found is looked at too."""
    call = house.call("agent", "act", {"text": "x"}).body["call_id"]
    house.call("agent", "careful", {"text": "x"})
    approval = house.ask("approver", "GET", "/v1/approvals").body["approvals"][0]["id"]
    known = {
        r"^/v1/tools/": {"path.name": "echo"},
        r"^/v1/calls/": {"path.id": call},
        r"^/v1/approvals/": {"path.id": approval},
        r"^/v1/admin/calls/": {"path.id": call, "query.tenant": "acme"},
        r"^/v1/admin/tools/": {"path.name": "echo"},
        r"^/v1/admin/(agents|calls|relations)$": {"query.tenant": "acme"},
        # Else an id that a list gave is taken, and the run may revoke the key that it runs with.
        r"^/v1/admin/keys/": {"path.id": house.ids["watcher"]},
    }
    lines: list[str] = []
    for path, values in known.items():
        lines += ["[[operations]]", f"include-path-regex = {path!r}", "[operations.parameters]"]
        lines += [f'"{name}" = "{value}"' for name, value in values.items()]
    return "\n".join(lines)


@pytest.mark.req("V2")
@pytest.mark.timeout(240 + 2 * SECONDS)
@pytest.mark.parametrize("who", ["admin", "agent"])
def test_schemathesis_finds_nothing(tmp_path: Path, who: str) -> None:
    """Every operation, with what fits its schema and with what does not."""
    with busy(tmp_path) as house:
        _run(house, who)


def _run(house: Busy, who: str) -> None:
    tmp_path = house.server.root
    config = tmp_path / "schemathesis.toml"
    config.write_text(_values(house), "utf-8")
    phases = ["examples", "coverage", *(["fuzzing", "stateful"] if SECONDS else [])]
    command = [
        *(str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(config)),
        *("run", f"{house.server.greeting['url']}/openapi.json"),
        *("-H", f"Authorization: Bearer {house.secrets[who]}"),
        *("--checks", "all", "--exclude-checks", BEYOND, "--phases", ",".join(phases)),
        # It never ends by itself: tests/server/test_events.py.
        *("--exclude-path", "/v1/events"),
        *("--generation-database", "none", "--no-color", "--warnings", "off"),
        *(["--exclude-path-regex", "^/v1/admin/"] if who == "agent" else []),
        *(["--max-time", str(SECONDS)] if SECONDS else []),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    secret = house.secrets[who]
    assert done.returncode == 0, done.stdout.replace(secret, "KEY")[-6_000:]
    assert "No issues found" in done.stdout
    assert "a request failed" not in house.server.log
    assert house.ask(who, "GET", "/v1/tools").status == 200, "and the key opens what it did"


def test_a_shape_is_what_the_server_gives(house: Busy) -> None:
    """Strictly: what a shape does not name, and a plain call has, would be missed by a schema."""
    output = house.call("agent", "echo", {"text": "x"}).body
    [shape] = [route.gives for route in TABLE.routes if route.path == "/v1/call"]
    assert output.keys() == set(shape.__struct_fields__)
    assert msgspec.convert(output, shape).ok is True
