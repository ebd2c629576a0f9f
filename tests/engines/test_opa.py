"""A real OPA server: it has our policy whole or decides nothing, and decides as we do."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings

from tests.engines.questions import asked, listed, tool
from tests.engines.test_rego import CALLERS, DATA, EXTRA, PURE, TOOLS
from tests.house import HERE
from tests.servers.opa import Opa as Server
from tests.thorough import some
from toolgate.breaker import Limits
from toolgate.caller import Action, Caller
from toolgate.engines.guard import Guarded
from toolgate.engines.modules import build
from toolgate.engines.opa import Opa
from toolgate.engines.opa_push import module_id
from toolgate.engines.opa_server import OpaServer
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy, PolicyUnavailable
from toolgate.gate.policy import PER_CALL
from toolgate.net.client import HttpClient
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

# Never opens: what one test is about is the answer, not how often it was asked for.
PATIENT = Limits(window=1000, at_least=1000)
FETCH = 'package toolgate\n\ndeny contains "no" if input.tool.name == "fetch"\n'


def engine(
    client: HttpClient, url: str, bundle: Any = None, *, push: bool = True, **more: Any
) -> Opa:
    guard = Guarded(PolicyUnavailable, "policy server", limits=PATIENT)
    given = (bundle or build({}, {})) if push else None
    return Opa(client, given, url, guard=guard, timeout=20.0, **more)


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    opened = HttpClient(HERE, timeout=20.0)
    yield opened
    await opened.close()


@pytest.fixture
def own_server(opa: Server) -> Generator[Server]:
    """One that a test may stop; `opa` says whether there is any."""
    with Server() as server:
        yield server


@pytest.mark.req("G7")
async def test_it_is_pushed_read_back_and_asked(opa: Server, client: HttpClient) -> None:
    policy = engine(client, opa.url, build({"a.rego": FETCH}, {"global_tool_deny": ["bad"]}))
    assert not policy.health().ok
    await policy.start()
    assert policy.health().ok, policy.health()
    assert await policy.allows(asked(Action.REQUEST, "echo"))
    assert not await policy.allows(asked(Action.REQUEST, "fetch"))
    assert not await policy.allows(asked(Action.VIEW, "bad"))
    assert await policy.reasons(asked(Action.REQUEST, "fetch")) == ("no",)
    tools = [tool(name) for name in ("echo", "fetch", "bad")]
    assert await policy.visible(listed(), tools) == {"echo"}
    persona = {"can_add_tools": True}
    assert await policy.allows(asked(Action.ENABLE, "new", persona=persona))
    assert not await policy.allows(asked(Action.ENABLE, "bad", persona=persona))
    assert not await policy.allows({**asked(Action.VIEW), "action": "../allow"})


@pytest.mark.req("G7")
async def test_what_has_gone_from_the_policy_goes_from_the_server_and_nothing_else(
    opa: Server, client: HttpClient
) -> None:
    async with aiohttp.ClientSession() as session:
        foreign = f"{opa.url}/v1/data/somebody_else"
        async with session.put(foreign, json={"x": 1}) as put:
            assert put.status == 204
        policy = engine(client, opa.url, build({"a b/ä.rego": FETCH}, {"global_tool_deny": ["b"]}))
        await policy.start()
        assert not await policy.allows(asked(Action.REQUEST, "b"))
        await policy.swap(build({"c.rego": FETCH.replace("fetch", "other")}, {}))
        assert await policy.allows(asked(Action.REQUEST, "b"))
        assert await policy.allows(asked(Action.REQUEST, "fetch"))
        assert not await policy.allows(asked(Action.REQUEST, "other"))
        async with session.get(foreign) as got:
            assert (await got.json())["result"] == {"x": 1}
        async with session.get(f"{opa.url}/v1/policies/{module_id('a b/ä.rego')}") as got:
            assert got.status == 404


@pytest.mark.req("G7")
async def test_files_that_use_each_other_are_put_in_an_order_that_works(
    opa: Server, client: HttpClient
) -> None:
    user = (
        'package toolgate\n\ndeny contains "odd" if data.toolgate.lib.odd(count(input.tool.name))\n'
    )
    library = "package toolgate.lib\n\nodd(n) if n % 2 == 1\n"
    policy = engine(client, opa.url, build({"a.rego": user, "z.rego": library}, {}))
    await policy.start()
    assert policy.health().ok, policy.health()
    assert await policy.visible(listed(), [tool("ab"), tool("abc")]) == {"ab"}
    await policy.swap(build({}, {}))
    assert await policy.visible(listed(), [tool("ab"), tool("abc")]) == {"ab", "abc"}


@pytest.mark.req("G3", "G7")
async def test_what_the_server_refuses_leaves_the_last_good_policy(
    opa: Server, client: HttpClient
) -> None:
    policy = engine(client, opa.url, build({"a.rego": FETCH}, {}))
    await policy.start()
    good = policy.revision
    # Wrong only to a compiler that knows types.
    wrong = 'package toolgate\n\ndeny contains "x" if {\n\tfalse\n\tcount(1) == 2\n}\n'
    with pytest.raises(InvalidPolicy, match=r"a\.rego:\d"):
        await policy.swap(build({"a.rego": wrong}, {}))
    assert policy.revision == good
    assert not policy.health().ok
    assert not await policy.allows(asked(Action.REQUEST, "fetch"))
    assert await policy.allows(asked(Action.REQUEST, "echo"))


@pytest.mark.req("G7")
async def test_a_server_that_is_away_denies_and_heals_by_itself(
    own_server: Server, client: HttpClient
) -> None:
    policy = engine(client, own_server.url, build({"a.rego": FETCH}, {}))
    await policy.start()
    assert await policy.allows(asked(Action.REQUEST, "echo"))
    own_server.stop()
    with pytest.raises(PolicyUnavailable) as caught:
        await policy.allows(asked(Action.REQUEST, "echo"))
    assert own_server.url not in caught.value.message
    assert not policy.health().ok
    # It comes back empty.
    own_server.start()
    answers = await asyncio.gather(
        *(policy.allows(asked(Action.REQUEST, name)) for name in ("echo", "fetch") * 10)
    )
    assert answers == [True, False] * 10
    assert policy.health().ok


@pytest.mark.req("G7")
async def test_a_server_that_is_away_at_the_start_is_no_reason_to_stop(
    own_server: Server, client: HttpClient
) -> None:
    own_server.stop()
    policy = engine(client, own_server.url)
    await policy.start()
    told = policy.health()
    assert (told.ok, told.serves, told.revision) == (False, False, "")
    assert told.problem.count(own_server.url) == 1
    assert ".." not in told.problem
    assert "[policy] url" in told.problem
    with pytest.raises(PolicyUnavailable):
        await policy.visible(listed(), [tool("a")])
    own_server.start()
    assert await policy.visible(listed(), [tool("a")]) == {"a"}


@pytest.mark.req("G7")
async def test_a_policy_that_the_server_has_by_itself_is_used_as_it_is(
    own_server: Server, client: HttpClient
) -> None:
    policy = engine(client, own_server.url, push=False)
    assert policy.revision == "external"
    assert policy.reads == PER_CALL
    await policy.start()
    # There is nothing yet, and that is a no.
    assert (policy.health().ok, policy.health().serves) == (False, False)
    assert "default allow := false" in policy.health().problem
    assert not await policy.probe()
    with pytest.raises(PolicyUnavailable):
        await policy.allows(asked(Action.REQUEST, "echo"))
    with pytest.raises(PolicyUnavailable):
        await policy.visible(listed(), [tool("echo")])
    theirs = (
        "package toolgate\n\ndefault allow := false\n\n"
        "allow if {\n\tinput.action in {`tool.view`, `tool.request`}\n"
        "\tinput.tool.name == `echo`\n}\n"
    )
    place = f"{own_server.url}/v1/policies/theirs"
    async with aiohttp.ClientSession() as session, session.put(place, data=theirs) as put:
        assert put.status == 200
    assert await policy.probe()
    assert policy.health().ok
    assert await policy.allows(asked(Action.REQUEST, "echo"))
    assert not await policy.allows(asked(Action.REQUEST, "fetch"))
    assert await policy.visible(listed(), [tool("echo"), tool("fetch")]) == {"echo"}
    async with aiohttp.ClientSession() as session, session.delete(place) as gone:
        assert gone.status == 200
    assert not await policy.probe(), "our own module is still there"
    assert not policy.health().serves


CALL = "/v1/data/toolgate_gate/call?strict-builtin-errors=true"
ODD = ["../allow", "a%2f..%2fb", 'x"y', "a?b=c", "#", "\u202e", "a/b;c\r\nd"]


async def paths_of_a_question(client: HttpClient, odd: str) -> list[tuple[str, str]]:
    """What a server sees of the address when every name in a call is this one."""
    seen: list[tuple[str, str]] = []

    async def record(request: web.Request) -> web.Response:
        seen.append((request.method, request.raw_path))
        body = await request.json()
        assert body["input"]["tool"]["name"] == odd
        return web.json_response({"result": True})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", record)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        policy = engine(client, f"http://127.0.0.1:{runner.addresses[0][1]}", token="secret")  # noqa: S106
        policy._ready = True  # pyright: ignore[reportPrivateUsage]
        odd_one = Caller(tenant="acme", user=odd, persona=odd, session=odd, roles=(odd,))
        document = asked(Action.REQUEST, ToolSpec(name=odd), caller=odd_one, args={odd: odd})
        assert await policy.allows(document)
    finally:
        await runner.cleanup()
    return seen


@pytest.mark.req("G7")
@pytest.mark.parametrize("odd", ["pay", *ODD])
async def test_no_name_alters_what_is_asked(client: HttpClient, odd: str) -> None:
    assert await paths_of_a_question(client, odd) == [("POST", CALL)]


@pytest.mark.req("G7")
@pytest.mark.parametrize("odd", ODD)
async def test_a_path_with_the_name_in_it_would_ask_something_else(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """The guard-off control."""
    original = OpaServer.ask

    async def named(
        server: OpaServer, rule: str, document: Mapping[str, Any], *, most: int
    ) -> object:
        return await original(server, f"{rule}/{document['tool']['name']}", document, most=most)

    monkeypatch.setattr(OpaServer, "ask", named)
    if not odd.isascii() or not odd.isprintable():
        # The client sends no such address.
        with pytest.raises(PolicyUnavailable):
            await paths_of_a_question(client, odd)
        return
    [(_method, path)] = await paths_of_a_question(client, odd)
    assert path != CALL
    if odd == "../allow":
        assert path == CALL.replace("call", "call/../allow"), (
            "another rule than the one that decides"
        )


@pytest.mark.req("G7")
@settings(max_examples=some(30, 100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=DATA, extra=EXTRA, caller=CALLERS, tools=TOOLS)
def test_both_engines_decide_alike(
    opa: Server, data: dict[str, Any], extra: dict[str, str], caller: Caller, tools: list[ToolSpec]
) -> None:
    async def both() -> None:
        client = HttpClient(HERE, timeout=20.0)
        bundle = build(extra, data)
        here, there = Rego(bundle), engine(client, opa.url, bundle)
        await there.start()
        try:
            assert there.health().ok, there.health()
            shown = await here.visible(listed(caller), tools)
            assert shown == await there.visible(listed(caller), tools)
            for spec in tools[:2]:
                for action in Action:
                    document = asked(action, spec, caller=caller)
                    assert await here.allows(document) is await there.allows(document)
                    said = await there.reasons(document)
                    assert await here.reasons(document) == tuple(sorted(said))
        finally:
            await client.close()

    asyncio.run(both())


@pytest.mark.req("G7")
async def test_a_list_of_documents_is_decided_in_one_question(
    opa: Server, client: HttpClient
) -> None:
    policy = engine(client, opa.url, build({"a.rego": PURE}, {}))
    tools = [tool(f"t{i}", effect=list(Effect)[i % 2]) for i in range(500)]
    await policy.start()
    shown = await policy.visible(listed(), tools)
    assert shown == {spec.name for spec in tools if spec.effect is Effect.PURE}
