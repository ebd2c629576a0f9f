"""A gate on a server: who may connect, as whom, and what a toolbox knows without asking."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.client.far_side import answer, far_side
from tests.client.houses import ME, House, Served, prepared
from tests.house import until
from tests.server.serving import Serving
from toolgate import Caller, Context, Toolgate, Turn
from toolgate.client import looking
from toolgate.client.remote import Remote
from toolgate.errors import (
    InvalidRequest,
    PermissionDenied,
    ServerUnreachable,
    ToolError,
    ToolNotFound,
    Unauthenticated,
)

pytestmark = pytest.mark.req("V2")


async def connect_and_leave(url: str, key: str) -> None:
    async with Toolgate.connect(url, key):
        pass


@pytest.mark.req("V3")
async def test_a_key_that_is_not_known_does_not_connect(served: Served) -> None:
    with pytest.raises(Unauthenticated):
        await connect_and_leave(served.url, "tg_agent_nothing")
    await connect_and_leave(served.url, served.keys.agent)


async def test_a_server_that_is_not_there_is_told_when_connecting() -> None:
    async with far_side(answer(200, {})) as side:
        url = side.url
    with pytest.raises(ServerUnreachable, match="Check the address"):
        await connect_and_leave(url, "tg_agent_x")


async def test_a_server_of_another_kind_is_told_when_connecting() -> None:
    async with far_side(answer(200, {"hello": "world"})) as side:
        with pytest.raises(ServerUnreachable, match="same version"):
            await connect_and_leave(side.url, "tg_agent_x")


def test_an_address_is_looked_at_before_anything_is_opened() -> None:
    with pytest.raises(InvalidRequest, match="in the clear"):
        Toolgate.connect("http://gate.example.com", "tg_agent_x")


async def test_the_caller_is_the_keys_and_may_be_left_out(remote: House) -> None:
    assert remote.gate.caller == ME
    assert (await remote.gate.call("echo", {"text": "hi"})).ok
    assert await remote.gate.discover() == await remote.gate.discover(ME)


@pytest.mark.req("V3")
@pytest.mark.parametrize(
    "claimed",
    [
        Caller(tenant="umbrella", agent="billing"),
        Caller(tenant="acme", agent="intern"),
        Caller(tenant="acme"),
        Caller(tenant="acme", agent="billing", user="ann"),
        Caller(tenant="acme", agent="billing", persona="boss"),
        Caller(tenant="acme", agent="billing", roles=("admin",)),
        ME.delegate("billing"),
    ],
    ids=str,
)
async def test_who_claims_to_be_another_is_refused_and_nothing_is_sent(
    remote: House, claimed: Caller
) -> None:
    gate: Remote = remote.gate
    for ask in (
        gate.discover(claimed),
        gate.call("echo", {"text": "hi"}, caller=claimed),
        gate.batch([{"tool": "echo"}], caller=claimed),
        gate.chain([{"tool": "echo"}], caller=claimed),
        gate.undo(call_id="call_1", caller=claimed),
        gate.explain("echo", caller=claimed),
    ):
        with pytest.raises(InvalidRequest, match=r"The key speaks for|does not travel"):
            await ask
    with pytest.raises(InvalidRequest, match=r"The key speaks for|does not travel"):
        gate.toolbox(claimed)


@pytest.mark.req("V3")
async def test_what_a_key_says_of_its_holder_may_be_said_again(served: Served) -> None:
    async with Toolgate.connect(served.url, served.keys.narrow) as gate:
        same = Caller(tenant="acme", agent="billing", user="ann", roles=("finance",))
        assert gate.caller == same
        for caller in (same, ME, None):
            assert (await gate.call("echo", {"text": "hi"}, caller=caller)).ok
        with pytest.raises(InvalidRequest, match="speaks for the user 'ann'"):
            await gate.call("echo", caller=Caller(tenant="acme", agent="billing", user="eve"))


async def test_a_function_of_this_process_is_not_added_to_a_server(remote: House) -> None:
    with pytest.raises(InvalidRequest, match="a tool file there"):
        remote.gate.add(connect_and_leave)


@pytest.mark.parametrize("hook", ["has_pending_messages", "absorb_messages", "emit"])
async def test_functions_of_a_turn_do_not_travel(remote: House, hook: str) -> None:
    hooks: dict[str, Any] = {hook: print}
    turn = Turn(group="t-1", **hooks)
    with pytest.raises(InvalidRequest, match=f"'{hook}' of a Turn"):
        await remote.gate.call("echo", {"text": "hi"}, turn=turn)
    with pytest.raises(InvalidRequest, match=f"'{hook}' of a Turn"):
        remote.gate.toolbox(turn=turn)


async def test_an_admin_explains_for_anybody_and_an_agent_what_it_sees(
    served: Served, remote: House
) -> None:
    async with Toolgate.connect(served.url, served.keys.admin) as gate:
        told = await gate.explain("lacked", caller=ME)
        assert (told.allowed, told.deciding.phase) == (False, "capsule")
        assert told.remedies
        narrow = Caller(tenant="acme", agent="billing", context=Context(read_only=True))
        assert not (await gate.explain("write_line", caller=narrow)).allowed
        assert (await gate.explain("write_line", caller=ME)).allowed
    with pytest.raises(ToolNotFound):
        await remote.gate.explain("lacked")


@pytest.mark.req("V3")
async def test_a_key_that_calls_nothing_connects_for_what_it_may(served: Served) -> None:
    async with Toolgate.connect(served.url, served.keys.approver) as gate:
        with pytest.raises(PermissionDenied):
            await gate.discover()
        with pytest.raises(InvalidRequest, match=r"await box\.refresh\(\)"):
            gate.toolbox().tools()


async def test_in_a_session_or_a_context_a_box_is_refreshed_first(remote: House) -> None:
    narrow = Caller(tenant="acme", agent="billing", context=Context(deny=("echo",)))
    for caller in (narrow, Caller(tenant="acme", agent="billing", session="s-1")):
        box = remote.gate.toolbox(caller)
        for ask in (box.tools, box.unavailable, lambda box=box: box.metadata("echo")):
            with pytest.raises(InvalidRequest, match=r"await box\.refresh\(\)"):
                ask()
        await box.refresh()
        assert box.is_available("echo") is (caller is not narrow)
    assert remote.gate.toolbox().is_available("echo"), "the key's own list is another one"


def flag(served: Served, tool: str, *, enabled: bool | None) -> None:
    body = {"tool": tool, "enabled": enabled, "tenant": "acme"}
    answer = served.server.ask("PUT", "/v1/admin/flags", key=served.keys.admin, body=body)
    assert answer.status == 200, answer.text


async def test_a_box_hears_of_changes_without_being_asked(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "PERIOD", 0.05)
    async with Toolgate.connect(served.url, served.keys.agent) as gate:
        box = gate.toolbox()
        kept = await gate.toolbox().refresh()
        assert box.is_available("odd")
        try:
            await asyncio.to_thread(flag, served, "odd", enabled=False)
            await until(lambda: not box.is_available("odd"))
            assert not box.is_tenant_available("odd")
            assert kept.is_available("odd"), "as it was when it was asked"
        finally:
            await asyncio.to_thread(flag, served, "odd", enabled=None)
        await until(lambda: box.is_available("odd"))


async def test_a_list_that_is_as_it_was_is_not_sent_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "PERIOD", 0.01)
    async with Toolgate.connect(served.url, served.keys.agent) as gate:
        first = gate._looking.kept  # pyright: ignore[reportPrivateUsage]
        seen: list[int] = []
        ask = gate._wire.ask  # pyright: ignore[reportPrivateUsage]

        async def counted(*args: Any, **how: Any) -> Any:
            reply = await ask(*args, **how)
            seen.append(reply.status)
            return reply

        monkeypatch.setattr(gate._wire, "ask", counted)  # pyright: ignore[reportPrivateUsage]
        await until(lambda: seen.count(304) > 4)
        assert seen.count(200) <= 4, "once to learn the tags, once to look"
        assert first is not None


async def test_events_stop_when_the_gate_is_left(served: Served) -> None:
    async with Toolgate.connect(served.url, served.keys.agent) as gate:
        news = await gate.events().ready()
    assert [event async for event in news] == []


@pytest.mark.req("V3")
async def test_events_of_another_tenant_are_refused_to_whoever_listens(remote: House) -> None:
    news = remote.gate.events("umbrella")
    with pytest.raises(InvalidRequest, match="its own tenant"):
        await news.ready()
    with pytest.raises(InvalidRequest, match="its own tenant"):
        await anext(news)


async def test_who_was_cut_off_is_told_that_events_may_be_lost(tmp_path: Path) -> None:
    keys = await prepared(tmp_path / "house")
    with Serving(tmp_path / "house") as server:
        port = server.port
        async with Toolgate.connect(server.greeting["url"], keys.agent) as gate:
            news = await gate.events().ready()
            await asyncio.to_thread(server.stop)
            cut = await anext(news)
            assert (cut.kind, cut.payload) == ("events.lost", {"lost": None})
            with Serving(tmp_path / "house", "--port", str(port)):
                await news.ready()
                await gate.call("write_line", {"text": "again"})
                assert (await anext(news)).kind == "side_effect.started"


async def test_a_house_without_envelopes_gives_a_box_results(tmp_path: Path) -> None:
    root = tmp_path / "house"
    keys = await prepared(root)
    (root / "toolgate.toml").write_text("[features]\nstructured_tool_output = false\n", "utf-8")
    with Serving(root) as server:
        async with Toolgate.connect(server.greeting["url"], keys.agent) as gate:
            assert await gate.toolbox().call("echo", {"text": "hi"}) == {"text": "hi"}
            output = await gate.call("echo", {"text": "hi"})
            assert (output.ok, output.data) == (True, {"text": "hi"})
            with pytest.raises(ToolError, match="three left"):
                await gate.toolbox().call("runs_out")


async def test_nothing_shows_the_key(served: Served, remote: House) -> None:
    gate: Remote = remote.gate
    shown = repr(gate) + repr(vars(gate)) + repr(gate.toolbox())
    assert served.keys.agent not in shown


def test_opening_a_gate_does_not_load_what_connecting_needs() -> None:
    told = "import sys, toolgate.bootstrap; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"aiohttp", "toolgate.client.remote", "toolgate.client.wire"} & set(loaded)
