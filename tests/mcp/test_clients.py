"""The official client, on both revisions: what it lists it can call, and nothing else is there."""

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from tests.house import until
from tests.mcp.house import MODES, House
from toolgate import Call, Caller, ToolError, tool

pytestmark = pytest.mark.req("V1")
both = pytest.mark.parametrize("mode", MODES)
ANN = Caller(tenant="acme", agent="billing", user="ann")


@tool(effect="pure")
async def count(call: Call, to: int) -> dict[str, int]:
    """Count, and say so."""
    for number in range(1, to + 1):
        call.progress(number, to, f"at {number}")
        call.log(f"counted {number}")
        await asyncio.sleep(0)
    return {"counted": to}


@tool(effect="pure")
async def refuse() -> str:
    """Say why not."""
    raise ToolError("There are only three left.")


@tool(effect="pure")
async def long_words() -> str:
    """Say a lot."""
    return "x" * 200_000


@tool(effect="pure", resource="notes://{id}")
async def note(id: str) -> str:  # noqa: A002  the name in the URI
    """A note."""
    return f"note {id}"


@tool(effect="irreversible")
async def mail(to: str) -> dict[str, str]:
    """Send it."""
    return {"sent": to}


@both
async def test_what_is_listed_is_what_may_be_called(house: House, mode: str) -> None:
    house.gate.add(count, mail)
    async with house.client(mode) as client:
        listed = [one.name for one in (await client.list_tools()).tools]
        assert listed == [spec.name for spec in await house.gate.discover(ANN)]
        await house.gate.tenancy.set_tenant_tool("acme", "mail", enabled=False)
        assert "mail" not in [one.name for one in (await client.list_tools()).tools]
        with pytest.raises(MCPError, match="no tool 'mail'"):
            await client.call_tool("mail", {"to": "bob"})
        with pytest.raises(MCPError, match="no tool 'never'"):
            await client.call_tool("never", {})


@both
async def test_the_effect_is_told_as_hints(house: House, mode: str) -> None:
    house.gate.add(count, mail)
    async with house.client(mode) as client:
        found = {one.name: one.annotations for one in (await client.list_tools()).tools}
        assert found["count"] is not None
        assert found["mail"] is not None
        assert (found["count"].read_only_hint, found["count"].idempotent_hint) == (True, True)
        assert (found["mail"].read_only_hint, found["mail"].destructive_hint) == (False, True)


@both
async def test_a_result_is_structured_and_bears_its_call(house: House, mode: str) -> None:
    house.gate.add(mail)
    async with house.client(mode) as client:
        done = await client.call_tool("mail", {"to": "bob"})
        assert done.structured_content == {"sent": "bob"}
        assert done.meta is not None
        entry = await house.gate.journal.find("acme", done.meta["toolgate/callId"])
        assert entry is not None
        assert (entry.tool, entry.agent, entry.user) == ("mail", "billing", "ann")


@both
async def test_what_goes_wrong_is_told_to_the_model(house: House, mode: str) -> None:
    house.gate.add(mail, refuse)
    async with house.client(mode) as client:
        wrong = await client.call_tool("mail", {"two": "bob"})
        assert wrong.is_error
        assert "do not fit its schema" in str(wrong.content)
        refused = await client.call_tool("refuse", {})
        assert refused.is_error
        assert "only three left" in str(refused.content)


@both
async def test_progress_and_log_come_before_the_result(house: House, mode: str) -> None:
    house.gate.add(count)
    steps: list[tuple[float, float | None, str | None]] = []
    said: list[Any] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def logged(params: Any) -> None:
        said.append(params.data)

    async with house.client(mode, logging_callback=logged) as client:
        if mode == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.set_logging_level("info")  # pyright: ignore[reportDeprecated]
        done = await client.call_tool("count", {"to": 3}, progress_callback=told)
        assert done.structured_content == {"counted": 3}
        assert steps == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]
        if mode == "legacy":
            assert said == ["counted 1", "counted 2", "counted 3"]


@both
async def test_the_same_turn_is_answered_with_its_first_result(house: House, mode: str) -> None:
    house.gate.add(mail)
    async with house.client(mode) as client:
        group: Any = {"toolgate/turnGroup": "t-1"}
        first = await client.call_tool("mail", {"to": "bob"}, meta=group)
        again = await client.call_tool("mail", {"to": "bob"}, meta=group)
        keyed: Any = {"toolgate/idempotencyKey": "invoice-7"}
        third = await client.call_tool("mail", {"to": "bob"}, meta=keyed)
        fourth = await client.call_tool("mail", {"to": "bob"}, meta=keyed)
        ids = [one.meta["toolgate/callId"] for one in (first, again, third, fourth) if one.meta]
        assert ids[0] == ids[1] != ids[2] == ids[3]


@both
async def test_a_large_output_can_be_read_by_its_reference(house: House, mode: str) -> None:
    house.gate.add(long_words)
    async with house.client(mode) as client:
        told = (await client.call_tool("long_words", {})).structured_content
        assert told is not None
        uri = f"toolgate://outputs/{told['reference']}"
        [held] = (await client.read_resource(uri)).contents
        assert getattr(held, "text", "") == "x" * 200_000
    async with house.client(mode, key=house.other) as client:
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource(uri)


@both
async def test_who_has_which_tools_can_be_read(house: House, mode: str) -> None:
    house.gate.add(note, mail)
    await house.gate.tenancy.activate("acme", "billing", "mail", enabled=False)
    async with house.client(mode) as client:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        assert listed == [
            "focal://tools/tenant/acme/available",
            "focal://tools/agent/billing/enabled",
            "focal://tools/agent/billing/unavailable",
        ]
        texts = [(await client.read_resource(uri)).contents[0] for uri in listed]
        has = ['"name":"mail"' in getattr(one, "text", "") for one in texts]
        assert has == [True, False, True]
        for uri in ("focal://tools/tenant/globex/available", "focal://tools/agent/robot/enabled"):
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(uri)


@both
async def test_a_pure_tool_can_be_read_where_it_says_and_only_by_who_may_call_it(
    house: House, mode: str
) -> None:
    house.gate.add(note)
    async with house.client(mode) as client:
        templates = (await client.list_resource_templates()).resource_templates
        assert "notes://{id}" in [one.uri_template for one in templates]
        [read] = (await client.read_resource("notes://a%20b")).contents
        assert getattr(read, "text", "") == "note a b"
        await house.gate.tenancy.set_tenant_tool("acme", "note", enabled=False)
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("notes://1")


async def test_a_change_of_tools_is_told_on_the_older_revision(house: House) -> None:
    heard: list[str] = []

    async def told(message: Any) -> None:
        heard.append(str(getattr(message, "method", type(message).__name__)))

    async with house.client("legacy", message_handler=told):
        await asyncio.sleep(0.5)
        house.gate.add(mail)
        await until(lambda: "notifications/tools/list_changed" in heard)


@pytest.mark.parametrize("exposed", [True, False])
async def test_a_house_can_be_for_discovery_only(tmp_path: Any, exposed: bool) -> None:  # noqa: FBT001
    from tests.mcp.house import opened  # noqa: PLC0415  one that is set up otherwise

    async with opened(tmp_path, expose_tools=exposed) as house, house.client() as client:
        assert (await client.read_resource("focal://tools/agent/billing/enabled")).contents
        if exposed:
            assert (await client.list_tools()).tools
            return
        with pytest.raises(MCPError, match="no method"):
            await client.list_tools()
        with pytest.raises(MCPError, match="no method"):
            await client.call_tool("echo", {"text": "hi"})
