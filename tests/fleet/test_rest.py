"""REST behind a round-robin balancer: whatever one node begins, any other goes on with."""

import http.client
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from tests.fleet.conftest import NODES, STARTS, Served
from tests.fleet.house import let_go
from tests.house import until

pytestmark = [pytest.mark.req("V2", "D2"), STARTS]


def call(served: Served, tool: str, args: Any, *, key: str = "", **more: Any) -> Any:
    body = {"tool": tool, "args": args, **more}
    answer = served.fleet.ask("POST", "/v1/call", key=key or served.keys.ann, body=body)
    assert answer.status == 200, answer.text
    return answer.body


def test_requests_go_to_each_node_in_turn_and_are_answered_alike(served: Served) -> None:
    nodes = [call(served, "look", {"text": "a"})["data"]["node"] for _ in range(2 * NODES)]
    assert len(set(nodes)) == NODES
    assert nodes[:NODES] == nodes[NODES:]
    lists = [served.fleet.ask("GET", "/v1/tools", key=served.keys.ann).text for _ in range(NODES)]
    assert len(set(lists)) == 1


@pytest.mark.req("S2")
def test_one_key_at_all_nodes_at_once_is_one_effect(served: Served) -> None:
    def one(_: int) -> Any:
        return call(served, "mark", {"text": "once"}, idempotency_key="k-once", wait_s=20)

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(one, range(16)))
    assert {one["data"]["marked"] for one in answers} == {"once"}
    assert len({one["call_id"] for one in answers}) == 1
    assert sum(not one["cached"] for one in answers) == 1
    assert served.fleet.marked()["once"] == 1


@pytest.mark.req("S4")
def test_what_one_node_did_is_on_record_and_undone_at_others(served: Served) -> None:
    done = call(served, "mark", {"text": "undo-me"}, turn={"group": "g-undo"})
    for _ in range(NODES):
        found = served.fleet.ask("GET", f"/v1/calls/{done['call_id']}", key=served.keys.ann)
        assert found.body["state"] == "succeeded"
        listed = served.fleet.ask("GET", "/v1/ledger?turn_group=g-undo", key=served.keys.ann)
        assert [one["call_id"] for one in listed.body["calls"]] == [done["call_id"]]
        away = served.fleet.ask("GET", f"/v1/calls/{done['call_id']}", key=served.keys.stranger)
        assert away.status == 404
    for _ in range(NODES):
        body = {"call_id": done["call_id"]}
        report = served.fleet.ask("POST", "/v1/undo", key=served.keys.ann, body=body)
        assert report.status == 200, report.text
    assert served.fleet.marked()["undone-undo-me"] == 1


@pytest.mark.req("S4")
def test_an_undo_asked_for_at_all_nodes_at_once_is_done_once(served: Served) -> None:
    for number in range(4):
        text = f"undo-together-{number}"
        body = {"call_id": call(served, "mark", {"text": text})["call_id"]}

        def undo(_: int, body: Any = body) -> int:
            return served.fleet.ask("POST", "/v1/undo", key=served.keys.ann, body=body).status

        with ThreadPoolExecutor(2 * NODES) as threads:
            answers = set(threads.map(undo, range(2 * NODES)))
        assert 200 in answers
        assert answers <= {200, 409}, answers
        theirs = served.fleet.ask("POST", "/v1/undo", key=served.keys.stranger, body=body)
        assert theirs.status == 404
        assert served.fleet.marked()[f"undone-{text}"] == 1


@pytest.mark.req("S6")
async def test_who_agrees_at_all_nodes_at_once_agrees_to_one_call(served: Served) -> None:
    with ThreadPoolExecutor(NODES + 1) as threads:
        waiting = threads.submit(call, served, "pay", {"to": "carol"}, wait_s=30)
        found: list[Any] = []

        def is_asked() -> bool:
            shown = served.fleet.ask("GET", "/v1/approvals", key=served.keys.admin).body
            found[:] = [one for one in shown["approvals"] if one["state"] == "waiting"]
            return bool(found)

        await until(is_asked)
        path = f"/v1/approvals/{found[0]['id']}/approve"

        def agree(_: int) -> int:
            return served.fleet.ask("POST", path, key=served.keys.admin).status

        said = list(threads.map(agree, range(NODES)))
        assert min(said) == 200, said
        assert waiting.result()["data"] == "carol"
    assert served.fleet.marked()["paid-carol"] == 1


@pytest.mark.req("V3")
def test_answers_of_two_tenants_are_not_crossed_whichever_nodes_they_come_from(
    served: Served,
) -> None:
    def one(number: int) -> bool:
        key = (served.keys.ann, served.keys.stranger)[number % 2]
        tool, name = ("look", "seen") if number % 3 else ("mark", "marked")
        data = call(served, tool, {"text": f"own-{number}"}, key=key)["data"]
        return data[name] == f"own-{number}"

    with ThreadPoolExecutor(32) as threads:
        assert all(threads.map(one, range(600)))
    listed = [
        {
            row["call_id"]
            for row in served.fleet.ask("GET", "/v1/ledger?tool=mark", key=key).body["calls"]
        }
        for key in (served.keys.ann, served.keys.stranger)
    ]
    assert all(listed)
    assert not listed[0] & listed[1]


@pytest.mark.req("S6")
async def test_who_is_asked_at_one_node_is_answered_at_another(served: Served) -> None:
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(call, served, "pay", {"to": "bob"}, wait_s=30)
        found: list[Any] = []

        def is_asked() -> bool:
            shown = served.fleet.ask("GET", "/v1/approvals", key=served.keys.admin).body
            found[:] = [one for one in shown["approvals"] if one["state"] == "waiting"]
            return bool(found)

        await until(is_asked)
        [asked] = found
        path = f"/v1/approvals/{asked['id']}/approve"
        said = [served.fleet.ask("POST", path, key=served.keys.admin) for _ in range(NODES)]
        assert min(one.status for one in said) == 200
        assert waiting.result()["data"] == "bob"
    assert served.fleet.marked()["paid-bob"] == 1


@pytest.mark.req("X7")
def test_a_batch_of_one_turn_sent_to_two_nodes_runs_once(served: Served) -> None:
    calls = [{"tool": "mark", "args": {"text": f"batch-{n}"}} for n in range(5)]
    body = {"calls": calls, "turn": {"group": "g-batch"}}
    for _ in range(2):
        answer = served.fleet.ask("POST", "/v1/batch", key=served.keys.ann, body=body)
        assert answer.body["ok"] is True, answer.text
    marked = served.fleet.marked()
    assert [marked[f"batch-{n}"] for n in range(5)] == [1] * 5


@pytest.mark.req("S7")
def test_who_listens_at_one_node_hears_of_what_all_of_them_do(served: Served) -> None:
    with listening(served, served.keys.admin) as events:
        assert next(events)[0] == ":"
        for number in range(NODES):
            call(served, "mark", {"text": f"heard-{number}"})
        call(served, "mark", {"text": "theirs"}, key=served.keys.stranger)
        call(served, "mark", {"text": "heard-last"})
        told: list[str] = []
        for kind, data in events:
            if kind == "side_effect.completed":
                told.append(data["payload"]["args"]["text"])
                if len(told) == NODES + 1:
                    break
    # Those of one node keep their order; what two nodes tell may come in either.
    assert sorted(told) == sorted([*(f"heard-{number}" for number in range(NODES)), "heard-last"])


def test_a_call_can_be_followed_at_a_node_that_does_not_run_it(served: Served) -> None:
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(
            call, served, "send", {"text": "follow"}, idempotency_key="k-follow"
        )
        found: list[Any] = []
        while not found:
            listed = served.fleet.ask("GET", "/v1/ledger?tool=send", key=served.keys.ann)
            found = [one for one in listed.body["calls"] if one["state"] == "started"]
        let_go(served.fleet, "follow")
        path = f"/v1/calls/{found[0]['call_id']}?wait_s=20"
        over = served.fleet.ask("GET", path, key=served.keys.ann)
        assert over.body["state"] == "succeeded", over.text
        assert running.result()["data"] == {"sent": "follow"}


@contextmanager
def listening(served: Served, key: str) -> Generator[Iterator[tuple[str, Any]]]:
    """`GET /v1/events` at one of the nodes, as it comes."""
    line = http.client.HTTPConnection("127.0.0.1", served.fleet.balancer.port, timeout=30)
    try:
        line.request("GET", "/v1/events", headers={"Authorization": f"Bearer {key}"})
        yield _events(line.getresponse())
    finally:
        line.close()


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    kind = ""
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line.startswith(":"):
            yield ":", None
        elif line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, orjson.loads(line.removeprefix("data: "))
