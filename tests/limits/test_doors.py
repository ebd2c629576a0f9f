"""Limits at the doors: what the wire tells, what an admin sets, what an operator sees."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.conftest import Run, as_json
from tests.cli.conftest import run as run  # noqa: PLC0414  a fixture
from tests.server.admins import ACME, Asked, House, prepare
from tests.server.serving import Serving
from toolgate.errors import BudgetExceeded, CircuitOpen, RateLimited
from toolgate.server.problems import retry_after


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    keys = prepare(tmp_path)
    with Serving(tmp_path) as server:
        yield House(server, keys)


def call(house: House) -> Any:
    return house.server.ask(
        "POST", "/v1/call", key=house.keys["agent"].secret, body={"tool": "timestamp", "args": {}}
    )


def put(house: House, path: str, **fields: Any) -> Any:
    answer = house.ask("admin", Asked("PUT", path, fields))
    assert answer.status == 200, answer.text
    return answer.body


@pytest.mark.req("X10", "V2")
def test_who_calls_too_often_is_told_when_to_come_back(house: House) -> None:
    put(house, "limits", **ACME, limit="1/hour", tool="timestamp")
    assert call(house).status == 200
    refused = call(house)
    assert refused.status == 429
    assert refused.body["code"] == "rate_limited"
    assert 3_500 < int(refused.headers["retry-after"]) <= 3_600
    assert int(refused.headers["retry-after"]) == refused.body["retry_after"]
    put(house, "limits", **ACME, limit=None, tool="timestamp")
    assert call(house).status == 200


@pytest.mark.req("X9", "V2")
def test_a_budget_is_set_used_and_shown(house: House) -> None:
    put(house, "tenants/acme", plan="free")
    put(house, "budgets", **ACME, metric="tool_calls", most=2)
    assert [call(house).status for _ in range(3)] == [200, 200, 429]
    refused = call(house)
    assert refused.body["code"] == "budget_exceeded"
    assert int(refused.headers["retry-after"]) > 1
    for who in ("admin", "own"):
        found = house.ask(who, Asked("GET", "usage?tenant=acme")).body["usage"]
        [line] = [one for one in found if one["metric"] == "tool_calls"]
        assert (line["used"], line["limit"], line["plan"]) == (2, 2, "free")
    assert house.ask("admin", Asked("GET", "usage?month=2001-01")).body["usage"][0]["used"] == 0
    assert house.ask("admin", Asked("GET", "usage?month=May")).status == 400


@pytest.mark.req("X9", "X10", "V3")
def test_who_runs_a_tenant_cannot_raise_its_own_limits(house: House) -> None:
    for path, fields in (
        ("tenants/acme", {"plan": "enterprise"}),
        ("budgets", {**ACME, "metric": "tool_calls", "most": None}),
        ("limits", {**ACME, "limit": None}),
    ):
        assert house.ask("own", Asked("PUT", path, fields)).status == 403
        assert house.ask("admin", Asked("PUT", path, fields)).status == 200


@pytest.mark.parametrize(
    ("details", "header"),
    [
        ({"retry_after": 3}, b"3"),
        ({"retry_after": 0.2}, b"1"),
        ({"retry_after": 1.5}, b"2"),
        ({"retry_after": float("inf")}, None),
        ({"retry_after": "3\r\nset-cookie: a"}, None),
        ({"retry_after": True}, None),
        ({}, None),
    ],
)
@pytest.mark.req("X10")
def test_the_header_is_whole_seconds_or_none(details: dict[str, Any], header: bytes | None) -> None:
    for kind in (RateLimited, BudgetExceeded, CircuitOpen):
        assert retry_after(kind("no", **details)) == header


@pytest.mark.req("X9", "X10", "V5")
def test_an_operator_sees_what_is_used_and_what_may_be(run: Run) -> None:
    assert run("tenants", "add", "acme", "--plan", "free").exit_code == 0
    assert run("limits", "budget", "money", "12.5", "--tenant", "acme").exit_code == 0
    assert run("limits", "rate", "5/second", "--tenant", "acme").exit_code == 0
    assert run("limits", "rate", "6/second", "--tool", "echo").exit_code == 0
    told = run("call", "echo", "--tenant", "acme", "--agent", "a", "--args", '{"text": "hi"}')
    assert told.exit_code == 0, told.output
    lines = {line["metric"]: line for line in as_json(run("usage", "--tenant", "acme", "--json"))}
    assert (lines["tool_calls"]["used"], lines["tool_calls"]["limit"]) == (1, 100)
    assert (lines["money"]["used"], lines["money"]["limit"]) == (0, 12.5)
    shown = run("usage").output
    assert "tool_calls" in shown
    assert "100" in shown
    assert "5" in run("limits", "list", "--tenant", "acme").output
    rows = orjson.loads(run("limits", "list", "--json").output)
    assert {(row["tenant"], row["tool"], row["most"]) for row in rows} == {
        ("", "echo", 6),
        ("acme", "", 5),
        ("acme", "", 12.5),
    }


@pytest.mark.req("X9", "X10", "V5")
@pytest.mark.parametrize(
    "wrong",
    [
        ["limits", "budget", "money", "much", "--tenant", "demo"],
        ["limits", "budget", "money", "nan", "--tenant", "demo"],
        ["limits", "budget", "money", "-5", "--tenant", "demo"],
        ["limits", "rate", "often"],
        ["tenants", "add", "acme", "--plan", "gold"],
        ["usage", "--month", "May"],
        ["limits", "rate", "5/second", "--tenant", "nobody"],
    ],
)
def test_what_an_operator_mistypes_changes_nothing(run: Run, wrong: list[str]) -> None:
    assert run(*wrong).exit_code in {1, 2}
    assert orjson.loads(run("limits", "list", "--json").output) == []


@pytest.mark.req("X9", "X10", "V2")
@pytest.mark.parametrize("nothing", [None, "none", "null"])
def test_a_limit_is_taken_away_by_the_words_of_either_door(house: House, nothing: Any) -> None:
    put(house, "budgets", **ACME, metric="money", most=5)
    assert put(house, "budgets", **ACME, metric="money", most=nothing)["most"] is None
    put(house, "limits", **ACME, tool="echo", limit="9000/second")
    assert put(house, "limits", **ACME, tool="echo", limit=nothing)["limit"] is None
    wrong = house.ask("admin", Asked("PUT", "budgets", {**ACME, "metric": "money", "most": "no"}))
    assert wrong.status == 400


@pytest.mark.req("X9", "G6")
def test_explain_tells_of_budgets_to_who_looks_after_the_tenant(house: House) -> None:
    def budgets(who: str) -> Any:
        path = "/v1/tools/timestamp/explain"
        if who == "admin":
            path += "?tenant=acme&agent=billing"
        answer = house.server.ask("GET", path, key=house.keys[who].secret)
        assert (answer.status, answer.body["allowed"]) == (200, True), answer.text
        return answer.body["budgets"]

    assert budgets("admin") == [], "what has no limit is not told"
    put(house, "budgets", **ACME, metric="tool_calls", most=2)
    put(house, "budgets", **ACME, metric="money", most=9)
    assert call(house).status == 200
    [line] = budgets("admin")
    assert (line["metric"], line["used"], line["limit"]) == ("tool_calls", 1, 2)
    assert budgets("agent") == []
    assert [call(house).status for _ in range(2)] == [200, 429]
    assert [line["used"] for line in budgets("admin")] == [2]


@pytest.mark.req("X9", "V5")
def test_explain_says_that_a_budget_is_used_up(run: Run) -> None:
    run("limits", "budget", "tool_calls", "1", "--tenant", "demo")
    assert "Of the budget of tool_calls, 0 of 1 are used in" in run("explain", "timestamp").stdout
    assert run("call", "timestamp").exit_code == 0
    told = run("explain", "timestamp")
    assert (told.exit_code, "1 of 1 are used" in told.stdout) == (0, True)
    assert "toolgate limits budget tool_calls N --tenant demo" in told.stdout
