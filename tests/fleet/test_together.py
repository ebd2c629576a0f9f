"""Four nodes are as one: limits and budgets hold for all of them, and a change counts on each."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import aiohttp
import orjson
import pytest

from tests.fleet.clients import line
from tests.fleet.conftest import NODES, STARTS, Served
from tests.fleet.house import EXECUTES, relate
from tests.house import until
from tests.limits.house import eventually

pytestmark = STARTS
# The whole of it takes minutes: `make chaos`.
WHOLE = os.environ.get("TOOLGATE_CHAOS") == "1"
ROUNDS = 500 if WHOLE else 25
YES = 'package toolgate\n\ndeny contains "never" if input.tool.name == "nothing"\n'
NO = 'package toolgate\n\ndeny contains "not now" if input.tool.name in {"mark", "look"}\n'


async def called(
    http: aiohttp.ClientSession, port: int, key: str, tool: str, text: str, **more: Any
) -> str:
    """`success`, or the code of what was refused."""
    body = orjson.dumps({"tool": tool, "args": {"text": text}, **more})
    headers = {"Authorization": f"Bearer {key}"}
    url = f"http://127.0.0.1:{port}/v1/call"
    async with http.post(url, data=body, headers=headers) as answer:
        found = orjson.loads(await answer.read())
    return found["status"] if found.get("ok") else found.get("code") or found["error"]["code"]


async def crowd(served: Served, tool: str, times: int, at_once: int = 64) -> Counter[str]:
    """So many calls through the balancer, many at once; what came of them."""
    places = asyncio.Semaphore(at_once)

    async def one(http: aiohttp.ClientSession, number: int) -> str:
        async with places:
            port, key = served.fleet.balancer.port, served.keys.stranger
            return await called(http, port, key, tool, f"{tool}-{number}")

    async with line() as http:
        return Counter(await asyncio.gather(*(one(http, number) for number in range(times))))


def put(served: Served, path: str, **body: Any) -> None:
    method = "POST" if path == "relations" else "PUT"
    answer = served.fleet.ask(method, f"/v1/admin/{path}", key=served.keys.admin, body=body)
    assert answer.status in {200, 201, 204}, answer.text


def known_everywhere(served: Served, path: str) -> bool:
    """Whether each node has something to show there: the balancer asks one after the other."""
    answers = [
        served.fleet.ask("GET", f"/v1/admin/{path}", key=served.keys.admin) for _ in range(NODES)
    ]
    return all(any(answer.body.values()) for answer in answers)


@pytest.mark.req("X10")
async def test_one_tenant_at_twice_its_limit_gets_the_limit_whichever_nodes_it_asks(
    served: Served,
) -> None:
    most = 200
    put(served, "limits", tenant="umbrella", tool="look", limit=f"{most}/hour")
    # A node hears of it within a second, and a machine that has much else to do takes longer.
    await until(partial(known_everywhere, served, "limits?tenant=umbrella"))
    try:
        found = await crowd(served, "look", 2 * most)
    finally:
        put(served, "limits", tenant="umbrella", tool="look", limit=None)
    assert abs(found["success"] - most) <= 0.02 * most, found
    assert found["success"] + found["rate_limited"] == 2 * most


@pytest.mark.req("X9")
async def test_five_hundred_at_once_on_a_budget_of_a_hundred_are_a_hundred(served: Served) -> None:
    put(served, "budgets", tenant="umbrella", metric="tool_calls", most=0)
    before = await used(served)
    put(served, "budgets", tenant="umbrella", metric="tool_calls", most=before + 100)
    marked = served.fleet.marked()
    try:
        found = await crowd(served, "mark", 500, at_once=500)
    finally:
        put(served, "budgets", tenant="umbrella", metric="tool_calls", most=None)
    assert found == {"success": 100, "budget_exceeded": 400}
    assert sum((served.fleet.marked() - marked).values()) == 100
    assert await used(served) == before + 100


async def used(served: Served) -> float:
    """By what all nodes have counted: what waits in one is written within a moment."""
    path = "/v1/admin/usage?tenant=umbrella"
    last = -1.0
    while True:
        found = served.fleet.ask("GET", path, key=served.keys.admin).body["usage"]
        lines = [one for one in found if one["metric"] == "tool_calls"]
        now = lines[0]["used"] if lines else 0.0
        if now == last:
            return now
        last = now
        await asyncio.sleep(1.2)


def change(served: Served, number: int, *, allowed: bool) -> None:
    """A flag, a layer, a policy, a relation: by whichever node is next."""
    kind = number % 4
    if kind == 0:
        put(served, "flags", tenant="acme", tool="mark", enabled=None if allowed else False)
        put(served, "flags", tenant="acme", tool="look", enabled=None if allowed else False)
    elif kind == 1:
        deny = [] if allowed else ["mark", "look"]
        put(served, "layers/shut", tenant="acme", deny=deny)
    elif kind == 2:
        put(served, "policies/shut", text=YES if allowed else NO)
    else:
        rows = [EXECUTES.format(tool=one, who="user:ann") for one in ("mark", "look")]
        relate(served.fleet, served.keys, "acme", **{"add" if allowed else "remove": rows})


async def everywhere(
    http: aiohttp.ClientSession, served: Served, tool: str, text: str
) -> Sequence[str]:
    key = served.keys.ann
    return await asyncio.gather(
        *(called(http, node.port, key, tool, text) for node in served.fleet.nodes)
    )


async def agree(http: aiohttp.ClientSession, served: Served, *, is_allowed: bool) -> bool:
    """Whether every node says the same of what changes nothing."""
    found = await everywhere(http, served, "look", "again")
    return {one == "success" for one in found} == {is_allowed}


@pytest.mark.req("G8")
@pytest.mark.timeout(1_200 if WHOLE else 180)
async def test_what_is_taken_away_at_one_node_is_gone_at_all_of_them(served: Served) -> None:
    """At once for side effects, within a second for what changes nothing."""
    late = list[float]()
    async with line() as http:
        for number in range(ROUNDS):
            before = await everywhere(http, served, "mark", f"before-{number}")
            await everywhere(http, served, "look", "warm")
            assert list(before) == ["success"] * NODES
            await asyncio.to_thread(change, served, number, allowed=False)
            began = time.monotonic()
            after, _ = await asyncio.gather(
                everywhere(http, served, "mark", f"after-{number}"),
                eventually(partial(agree, http, served, is_allowed=False)),
            )
            assert not {"success"} & set(after), (number, after)
            late.append(time.monotonic() - began)
            await asyncio.to_thread(change, served, number, allowed=True)
            await eventually(partial(agree, http, served, is_allowed=True))
    marked = served.fleet.marked()
    assert sum(marked[f"before-{number}"] for number in range(ROUNDS)) == ROUNDS * NODES
    assert sum(marked[f"after-{number}"] for number in range(ROUNDS)) == 0
    # On a machine that does nothing else.
    assert not WHOLE or max(late) < 1.0, sorted(late)[-5:]
