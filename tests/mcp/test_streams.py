"""Streams and what is kept between requests are bounded, and the newest of it is never lost."""

from typing import Any

import pytest

from tests.mcp.house import House
from toolgate import Call, tool
from toolgate.server.mcp.rpc import Fault
from toolgate.server.mcp.seal import Seal
from toolgate.server.mcp.sse import Stream

pytestmark = pytest.mark.req("V1")


async def _all(stream: Stream, after: int = 0) -> list[tuple[int, bytes]]:
    stream.close()
    return [one async for one in stream.read(after) if one is not None]


async def test_who_comes_back_goes_on_behind_what_it_has() -> None:
    stream = Stream("1")
    for number in range(5):
        stream.put(b"%d" % number)
    assert await _all(stream, after=3) == [(4, b"3"), (5, b"4")]


@pytest.mark.parametrize(("size", "kept"), [(1, 1_000), (400_000, 2), (3_000_000, 1)])
async def test_the_oldest_is_let_go_and_the_newest_never(size: int, kept: int) -> None:
    stream = Stream("1")
    for _ in range(1_100):
        stream.put(b"x" * size)
    stream.put(b"the answer")
    found = await _all(stream)
    assert found[-1] == (1_101, b"the answer")
    assert len(found) in {kept, kept + 1}


def test_what_is_sealed_opens_only_as_it_was_closed() -> None:
    seal = Seal(b"s" * 32)
    state = seal.close({"answers": {"a": 1}}, "key/tool/args")
    assert seal.open(state, "key/tool/args") == {"answers": {"a": 1}}
    for wrong, bound in (
        (state + "A", "key/tool/args"),
        (state[:-4], "key/tool/args"),
        (state.swapcase(), "key/tool/args"),
        (state, "other/tool/args"),
        ("", "key/tool/args"),
        ("é", "key/tool/args"),
    ):
        with pytest.raises(Fault, match="requestState"):
            seal.open(wrong, bound)
    with pytest.raises(Fault, match="requestState"):
        Seal(b"t" * 32).open(state, "key/tool/args")


def test_what_could_never_be_opened_is_not_sealed() -> None:
    with pytest.raises(Fault, match="too long"):
        Seal(b"s" * 32).close({"answers": "x" * 100_000}, "bound")


@pytest.mark.parametrize("level", ["loud", 7, ["debug"], None])
@pytest.mark.parametrize("token", [{"a": 1}, [1], 1.5, None])
async def test_odd_words_of_a_client_fail_no_tool(house: House, level: Any, token: Any) -> None:
    @tool(effect="irreversible")
    async def talk(call: Call) -> str:
        """Talk, and do it."""
        call.progress(1, 2, "half")
        call.log("on the way")
        return "done"

    house.gate.add(talk)
    meta = {"io.modelcontextprotocol/logLevel": level, "progressToken": token}
    status, body = await house.post("tools/call", {"name": "talk"}, meta=meta)
    assert (status, body["result"]["isError"]) == (200, False)
