"""A call that is told of while it runs: pieces, progress, and its Output last."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.server.busy import Busy, busy
from toolgate.server.live import Line

CALL = ("POST", "/v1/call")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    soon = "from toolgate.server import streaming; streaming.HEARTBEAT_S = 0.05; "
    with busy(tmp_path_factory.mktemp("live"), before=soon) as served:
        yield served


def told(house: Busy, who: str, tool: str, args: Any) -> list[tuple[str, Any]]:
    with house.stream(who, *CALL, {"tool": tool, "args": args}) as (response, events):
        assert response.status == 200
        assert response.getheader("content-type") == "text/event-stream"
        assert response.getheader("cache-control") == "no-store"
        return list(events)


@pytest.mark.req("V2")
def test_the_pieces_of_a_tool_come_one_by_one_and_its_output_last(house: Busy) -> None:
    *pieces, (last, output) = told(house, "agent", "count", {"to": 3})
    assert pieces == [("piece", {"data": number}) for number in range(3)]
    assert (last, output["ok"], output["data"]) == ("output", True, [0, 1, 2])
    plain = house.call("agent", "count", {"to": 3}).body
    assert output.keys() == plain.keys()
    assert output["data"] == plain["data"]


@pytest.mark.req("V2")
def test_progress_and_words_on_the_way_are_told(house: Busy) -> None:
    assert told(house, "agent", "tell", {})[:-1] == [
        ("progress", {"progress": 1, "total": 2, "message": "half"}),
        ("log", {"level": "info", "message": "nearly there"}),
    ]


@pytest.mark.req("V2", "X5")
def test_what_is_refused_before_it_begins_is_a_plain_problem(house: Busy) -> None:
    for body, status, code in (
        ({"tool": "none"}, 404, "tool_not_found"),
        ({"tool": "count", "args": {"to": "x"}}, 422, "invalid_arguments"),
        ({"tool": ""}, 400, "invalid_request"),
    ):
        with house.stream("agent", *CALL, body) as (response, _):
            assert response.status == status
            assert response.getheader("content-type") == "application/problem+json"
            assert f'"code":"{code}"'.encode() in response.read()


@pytest.mark.req("V2")
def test_a_long_silence_has_heartbeats_in_it(house: Busy) -> None:
    here = house.server.root / "patience"
    body = {"tool": "hold", "args": {"path": str(here)}}
    with house.stream("agent", *CALL, body) as (_, events):
        assert next(events)[0] == ":"
        assert next(events)[0] == ":"
        here.touch()
        *_, (last, output) = list(events)
    assert (last, output["data"]) == ("output", "let go")


@pytest.mark.req("V2", "X3")
async def test_what_has_begun_goes_on_when_nobody_listens_any_more(house: Busy) -> None:
    here = house.server.root / "alone"
    body = {"tool": "hold", "args": {"path": str(here)}}
    with house.stream("agent", *CALL, body) as (_, events):
        assert next(events)[0] == ":"
    here.touch()
    await until(Path(f"{here}.ended").exists)

    def is_on_record() -> bool:
        [latest, *_] = house.ask("agent", "GET", "/v1/ledger?tool=hold").body["calls"]
        return latest["state"] == "succeeded"

    await until(is_on_record)


@pytest.mark.req("V2")
def test_pieces_that_are_not_read_in_time_are_counted_and_the_output_is_whole(house: Busy) -> None:
    events = told(house, "agent", "count", {"to": 5_000})
    shown = [data["data"] for name, data in events if name == "piece"]
    lost = sum(data["lost"] for name, data in events if name == "lost")
    assert len(shown) + lost == 5_000
    assert shown == sorted(shown)
    assert events[-1][1]["data"] == list(range(5_000))


@pytest.mark.req("V2")
async def test_large_pieces_are_held_up_to_a_bound_for_who_reads_slowly() -> None:
    line = Line()
    for number in range(5):
        line.progress(number, 5, "x" * 400_000)
    held = line.taken()
    assert held.startswith(b'event: lost\ndata: {"lost":3}\n')
    assert 800_000 < len(held) < 1_000_000
    line.piece("x" * 2_000_000)
    assert len(line.taken()) > 2_000_000, "the newest is held, however large it is"
    assert line.taken() == b""
