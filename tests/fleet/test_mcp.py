"""MCP behind a round-robin balancer: sessions, tasks, questions and streams, at any node."""

import asyncio
from typing import Any

import pytest

from tests.fleet.clients import TASKS, Modern, Older, events, line
from tests.fleet.conftest import NODES, STARTS, Served
from tests.fleet.house import let_go
from tests.house import until
from tests.limits.house import eventually

pytestmark = [pytest.mark.req("V1", "D2"), STARTS]
ANSWER: dict[str, Any] = {"action": "accept", "content": {"name": "Ann"}}
OVER = ("completed", "failed", "cancelled")


async def finished(client: Modern, made: Any, *wanted: str) -> Any:
    """Asked at one node after the other."""
    found: Any = None

    async def is_so() -> bool:
        nonlocal found
        found = await client.get(made)
        return found["status"] in (wanted or OVER)

    await eventually(is_so)
    return found


async def test_lists_and_calls_are_the_same_at_every_node(served: Served) -> None:
    async with line() as http:
        client = Modern(served, http)
        lists = [await client.result("tools/list") for _ in range(NODES)]
        assert all(one == lists[0] for one in lists)
        answers = [await client.call("look", {"text": "a"}) for _ in range(NODES)]
        nodes = {one["structuredContent"]["node"] for one in answers}
        assert len(nodes) == NODES


async def test_a_question_of_one_node_is_answered_at_another(served: Served) -> None:
    async with line() as http:
        client = Modern(served, http, elicitation={})
        asked = await client.call("greet")
        assert asked["resultType"] == "input_required"
        state = {"requestState": asked["requestState"], "inputResponses": {"who": ANSWER}}
        done = await client.call("greet", **state)
        assert done["content"][0]["text"] == "Ann"
        forged = state | {"requestState": asked["requestState"][:-4] + "AAAA"}
        refused = await client.ask("tools/call", {"name": "greet", "arguments": {}, **forged})
        assert refused["error"]["code"] == -32602


async def test_a_task_is_seen_and_its_result_had_at_every_node(served: Served) -> None:
    async with line() as http:
        client = Modern(served, http, **TASKS)
        made = await client.call("send", {"text": "task"})
        assert made["resultType"] == "task"
        seen = [await client.get(made) for _ in range(NODES)]
        assert {one["status"] for one in seen} == {"working"}
        stranger = Modern(served, http, **TASKS)
        stranger.key = served.keys.other
        for _ in range(NODES):
            missing = await stranger.ask("tasks/get", {"taskId": made["taskId"]})
            assert missing["error"]["code"] == -32602
        let_go(served.fleet, "task")
        found = [await finished(client, made) for _ in range(NODES)]
        assert [one["result"]["structuredContent"] for one in found] == [{"sent": "task"}] * NODES
    assert served.fleet.marked()["sent-task"] == 1


async def test_a_task_that_asks_is_answered_at_any_node_and_goes_on(served: Served) -> None:
    async with line() as http:
        client = Modern(served, http, elicitation={}, **TASKS)
        made = await client.call("late", {"text": "ask"})
        let_go(served.fleet, "ask")
        asked = await finished(client, made, "input_required")
        [name] = asked["inputRequests"]
        given = {"taskId": made["taskId"], "inputResponses": {name: ANSWER}}
        # At every node: one of them has the task, the others pass it on.
        for _ in range(NODES):
            await client.result("tasks/update", given)
        over = await finished(client, made)
        assert over["result"]["content"][0]["text"] == "Ann", over
    assert served.fleet.marked()["greeted-ask"] == 1


async def test_a_task_is_given_up_at_any_node(served: Served) -> None:
    async with line() as http:
        client = Modern(served, http, **TASKS)
        made = [await client.call("slow", {"text": "never"}) for _ in range(2)]
        for one in made:
            await client.result("tasks/cancel", {"taskId": one["taskId"]})
        found = [await finished(client, one) for one in made for _ in range(NODES)]
        assert {one["status"] for one in found} == {"cancelled"}


async def test_who_listens_at_another_node_hears_how_a_task_ends(served: Served) -> None:
    async with line() as http:
        client = Modern(served, http, **TASKS)
        made = await client.call("send", {"text": "heard"})
        wanted = {"notifications": {"taskIds": [made["taskId"]], "toolsListChanged": True}}
        async with client.post("subscriptions/listen", wanted) as answer:
            told: list[str] = []
            async for _, message in events(answer):
                if message["method"] == "notifications/tasks":
                    told.append(message["params"]["status"])
                    let_go(served.fleet, "heard")
                    if told[-1] in OVER:
                        break
        assert (told[0], told[-1]) == ("working", "completed")


async def test_a_change_made_at_one_node_is_told_to_listeners_at_all(served: Served) -> None:
    async with line() as http:
        client = Modern(served, http)
        heard = list[Any]()

        async def listen() -> None:
            wanted = {"notifications": {"toolsListChanged": True}}
            async with client.post("subscriptions/listen", wanted) as answer:
                async for _, message in events(answer):
                    heard.append(message["method"])
                    if message["method"] == "notifications/tools/list_changed":
                        return

        listening = [asyncio.create_task(listen()) for _ in range(NODES)]
        await until(lambda: len(heard) == NODES)
        for enabled in (False, True):
            path = "/v1/admin/flags"
            body = {"tenant": "acme", "tool": "look", "enabled": enabled}
            answer = await asyncio.to_thread(
                served.fleet.ask, "PUT", path, key=served.keys.admin, body=body
            )
            assert answer.status < 300, answer.text
            if not enabled:
                await asyncio.gather(*listening)
    assert heard.count("notifications/tools/list_changed") == NODES
    async with line() as http:
        client = Modern(served, http)

        async def is_back() -> bool:
            lists = [await client.result("tools/list") for _ in range(NODES)]
            return all("look" in {tool["name"] for tool in one["tools"]} for one in lists)

        # For whoever comes next.
        await eventually(is_back)


async def test_a_session_goes_on_at_every_node_and_ends_at_all(served: Served) -> None:
    async with line() as http:
        session = await Older(served, http).begin()
        nodes = set[int]()
        for _ in range(NODES):
            args = {"name": "look", "arguments": {"text": "a"}}
            found = await session.ask("tools/call", args, accept="application/json")
            nodes.add(found["result"]["structuredContent"]["node"])
        assert len(nodes) == NODES
        thief = Older(served, http, served.keys.stranger)
        thief.headers["Mcp-Session-Id"] = session.headers["Mcp-Session-Id"]
        for _ in range(NODES):
            async with thief.post("ping") as answer:
                assert answer.status == 404
        async with session.end() as answer:
            assert answer.status == 200

        async def is_gone() -> bool:
            gone = list[int]()
            for _ in range(NODES):
                async with session.post("ping") as answer:
                    gone.append(answer.status)
            return gone == [404] * NODES

        await eventually(is_gone)


async def test_what_a_tool_asks_in_a_session_is_answered_through_any_node(served: Served) -> None:
    async with line() as http:
        session = await Older(served, http).begin({"elicitation": {}})
        params: dict[str, Any] = {"name": "greet", "arguments": {}}
        async with session.post("tools/call", params, id_=7) as answer:
            async for _, message in events(answer):
                if message.get("method") == "elicitation/create":
                    reply = {"jsonrpc": "2.0", "id": message["id"], "result": ANSWER}
                    forged = reply | {"id": message["id"][:-2] + "zz"}
                    for said in (forged, reply, reply):
                        async with session.send(said) as taken:
                            assert taken.status == 202
                elif message.get("id") == 7:
                    assert message["result"]["content"][0]["text"] == "Ann"
                    break


async def test_who_comes_back_at_another_node_gets_the_rest_of_its_stream(served: Served) -> None:
    async with line() as http:
        session = await Older(served, http).begin()
        params = {"name": "send", "arguments": {"text": "back"}, "_meta": {"progressToken": 1}}
        async with session.post("tools/call", params, id_=9) as answer:
            last, message = await anext(events(answer))
            assert message["method"] == "notifications/progress"
        # The line is broken; the node that has the stream is none of the next ones.
        let_go(served.fleet, "back")
        async with session.get(last) as answer:
            assert answer.status == 200
            rest = [one async for one in events(answer)]
        assert [message["id"] for _, message in rest] == [9]
        assert rest[0][1]["result"]["structuredContent"] == {"sent": "back"}
        async with session.get("ffffffff-1.0") as answer:
            assert answer.status == 404
            assert "begin anew" in (await answer.json())["error"]["message"]
    assert served.fleet.marked()["sent-back"] == 1


async def test_a_request_is_cancelled_through_any_node(served: Served) -> None:
    async with line() as http:
        session = await Older(served, http).begin()
        params = {"name": "slow", "arguments": {"text": "no"}, "_meta": {"progressToken": 1}}
        async with session.post("tools/call", params, id_=11) as answer:
            async for _, message in events(answer):
                if message.get("method") == "notifications/progress":
                    gone = {"requestId": 11}
                    async with session.post("notifications/cancelled", gone, id_=None) as taken:
                        assert taken.status == 202
                else:
                    assert message["error"]["message"] == "This request was cancelled."
                    break


async def test_what_a_session_subscribes_to_at_one_node_is_told_at_another(served: Served) -> None:
    uri = "focal://tools/agent/billing/enabled"
    async with line() as http:
        session = await Older(served, http).begin()
        async with session.get() as answer:
            for _ in range(NODES):
                assert (await session.ask("resources/subscribe", {"uri": uri}))["result"] == {}
            told = asyncio.create_task(_updated(answer, uri))
            # Its node has read the letter once it tells of a change.
            enabled = False
            while not told.done():
                path = "/v1/admin/flags"
                body = {"tenant": "acme", "tool": "echo", "enabled": enabled}
                enabled = not enabled
                await asyncio.to_thread(
                    served.fleet.ask, "PUT", path, key=served.keys.admin, body=body
                )
                await asyncio.wait({told}, timeout=1)
            await told


async def _updated(answer: Any, uri: str) -> None:
    async for _, message in events(answer):
        if message["method"] == "notifications/resources/updated":
            assert message["params"]["uri"] == uri
            return
