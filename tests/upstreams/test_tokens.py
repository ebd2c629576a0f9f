"""A server that wants tokens gets them for who we are: no more of it, and nobody else does."""

import asyncio
from base64 import b64encode
from pathlib import Path

import pytest

from tests.house import ME, STORE, until
from tests.providers.service import Answer, answer
from tests.sources.mcp.served import admission
from tests.upstreams.guarded import NAME, SECRET, Guarded, upstream
from toolgate import Toolgate
from toolgate.configuration import load
from toolgate.errors import ProviderUnavailable, SettingsInvalid
from toolgate.net.client import HttpClient
from toolgate.settings.outward import McpOAuth, McpServer
from toolgate.upstreams.upstream import Kind

pytestmark = pytest.mark.req("P3")
BASIC = f"Basic {b64encode(f'toolgate:{SECRET}'.encode()).decode()}"


async def test_whoever_the_server_names_is_asked_once_for_what_it_wants(
    far: Guarded, client: HttpClient
) -> None:
    far.scope = "read write"
    it = upstream(far, client)
    await it.open()
    assert (it.problem, len(await it.listed(Kind.TOOLS))) == ("", 1)
    for _ in range(3):
        assert (await it.call("ok", {}, seconds=5))["content"][0]["text"] == "ok"
    assert far.given == [
        {
            "grant_type": "client_credentials",
            "client_id": "toolgate",
            "client_secret": SECRET,
            "resource": far.url,
            "scope": "read write",
            "authorization": "",
        }
    ]
    await it.close()


async def test_whoever_the_settings_name_is_asked_for_what_they_say(
    far: Guarded, client: HttpClient
) -> None:
    far.names, far.scope = "http://127.0.0.1:1", "all of it"
    it = upstream(
        far, client, token_url=f"{far.giver.url}/token", scope="read", audience="https://crm"
    )
    await it.open()
    assert it.problem == ""
    [asked] = far.given
    assert asked == {
        "grant_type": "client_credentials",
        "resource": far.url,
        "scope": "read",
        "audience": "https://crm",
        "authorization": BASIC,
    }
    # Nothing is looked up that is said already.
    assert {one.target for one in far.server.seen} == {"/mcp"}
    await it.close()


async def test_a_token_that_has_ended_is_replaced_once_for_all_who_find_it_so(
    far: Guarded, client: HttpClient
) -> None:
    it = upstream(far, client)
    await it.open()
    far.good.clear()
    far.gives.clear()
    calls = [asyncio.create_task(it.call("ok", {}, seconds=5)) for _ in range(8)]
    await until(lambda: len(far.asked("tools/call")) == 8 and len(far.given) == 2)
    far.gives.set()
    found = await asyncio.gather(*calls)
    assert [one["content"][0]["text"] for one in found] == ["ok"] * 8
    assert (len(far.given), len(far.asked("tools/call"))) == (2, 16)
    await it.close()


async def test_the_secret_goes_only_where_it_may(far: Guarded, client: HttpClient) -> None:
    it = upstream(far, client, far.server.place)
    await it.open(5)
    assert f"may not be sent to {far.giver.place}" in it.problem
    assert far.given == []
    with pytest.raises(ProviderUnavailable, match="not set up") as refused:
        await it.call("ok", {}, seconds=5)
    assert far.giver.place not in refused.value.message
    await it.close()
    # The control: whoever gives tokens is enough, and the token goes to the server.
    it = upstream(far, client, far.giver.place)
    await it.open(5)
    assert (it.problem, len(far.given)) == ("", 1)
    await it.close()


async def test_no_more_is_asked_for_than_the_settings_say(far: Guarded, client: HttpClient) -> None:
    it = upstream(far, client, scope="read")
    await it.open()
    with pytest.raises(ProviderUnavailable, match="wants more than its settings"):
        await it.call("more", {}, seconds=5)
    assert [one["scope"] for one in far.given] == ["read"]
    await it.close()
    # Without a word of theirs, the server has the say.
    it = upstream(far, client)
    await it.open()
    with pytest.raises(ProviderUnavailable, match="does not take our credentials"):
        await it.call("more", {}, seconds=5)
    assert far.given[-1]["scope"] == "admin"
    await it.close()


async def test_a_server_that_takes_no_token_is_asked_a_few_times_and_says_so(
    far: Guarded, client: HttpClient
) -> None:
    far.refuses = True
    it = upstream(far, client)
    await it.open(5)
    assert "does not take our credentials (HTTP 401)" in it.problem
    assert len(far.given) <= 3
    await it.close()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (answer({"error": "invalid_client"}, 401), "refused (HTTP 401, invalid_client)"),
        (answer({"error": "No: <b>"}, 400), "refused (HTTP 400)"),
        (answer({"access_token": "a b"}), "gave none"),
        (answer({"access_token": "a", "token_type": "DPoP"}), "no bearer token"),
        (answer([]), "refused (HTTP 200)"),
    ],
)
async def test_who_gives_no_token_is_told_of_to_the_operator(
    far: Guarded, client: HttpClient, said: Answer, told: str
) -> None:
    far.says = said
    it = upstream(far, client)
    await it.open(5)
    assert told in it.problem
    await it.close()


@pytest.mark.parametrize("where", ["file:///etc/passwd", "http://169.254.169.254/", "javascript:x"])
async def test_an_address_that_a_server_names_is_no_way_out(
    far: Guarded, client: HttpClient, where: str
) -> None:
    """The guard holds for whoever gives tokens, and nothing of ours is sent."""
    far.names = where
    it = upstream(far, client, "169.254.169.254", far.server.place)
    await it.open(5)
    assert it.problem
    assert far.given == []
    await it.close()


async def test_changes_are_heard_on_after_a_token_has_ended(
    far: Guarded, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.upstreams.hearing.LEAST_PAUSE", 0.01)
    monkeypatch.setattr("toolgate.upstreams.hearing._FIRST_PAUSE", 0.01)
    told: list[Kind] = []
    far.streams = True
    it = upstream(far, client)
    await it.open()
    await until(lambda: any(one.method == "GET" for one in far.server.seen))
    far.good.clear()
    await until(lambda: len(far.given) == 2)
    it.on_changed(told.append)
    await until(lambda: Kind.TOOLS in told)
    await it.close()


SETTINGS = """
[mcp.servers.far]
url = "{url}"
trust = "hints"
overlay = "far.yaml"
[mcp.servers.far.oauth]
client_id = "toolgate"
secret = "crm"
[providers.http.secrets.crm]
value_env = "CRM_SECRET"
hosts = ["{server}", "{giver}"]
[net]
allow = ["{giver}"]
"""


async def test_neither_the_secret_nor_a_token_is_seen_by_a_caller_or_kept(
    far: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    tools = [{"name": "echo", "inputSchema": {"type": "object"}}]
    monkeypatch.setattr("tests.upstreams.misbehaving.TOOLS", tools)
    (tmp_path / "far.yaml").write_text("tools: {echo: {effect: pure}}\n")
    (tmp_path / "toolgate.toml").write_text(
        SETTINGS.format(url=far.url, server=far.server.place, giver=far.giver.place)
    )
    async with Toolgate.open(tmp_path / "toolgate.toml") as gate:
        await until(lambda: gate.catalog.current.get("mcp:far:echo") is not None)
        said = str(await gate.call("mcp:far:echo", {}, caller=ME))
        far.good.clear()
        again = str(await gate.call("mcp:far:echo", {}, caller=ME))
    assert "[secret]" in said
    assert "[secret]" in again
    secret = (SECRET, "token-1-of", "token-2-of", b64encode(SECRET.encode()).decode())
    assert not any(one in said + again for one in secret)
    # The control: they were sent.
    assert "token-2-of" in far.asked("tools/call")[-1].headers["authorization"]
    stored = (tmp_path / STORE).read_bytes()
    assert not any(one.encode() in stored for one in secret)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('oauth = { client_id = "x" }', "both are needed"),
        ('oauth = { scope = "x" }', "both are needed"),
        ('oauth = { client_id = "x", secret = "y", token_url = "z" }', "write an address"),
        (
            'headers_env = { authorization = "A" }\noauth = { client_id = "x", secret = "y" }',
            "take it out of headers_env",
        ),
    ],
)
def test_half_of_it_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text(f'[mcp.servers.a]\nurl = "https://h/mcp"\n{text}\n')
    with pytest.raises(SettingsInvalid, match=rf"toolgate\.toml:\d.*{told}"):
        load(file, {})


def test_a_program_has_no_use_for_it(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.toml"
    oauth = 'oauth = { client_id = "x", secret = "y" }'
    file.write_text(f'[mcp.servers.a]\ncommand = ["x"]\n{oauth}\n')
    with pytest.raises(SettingsInvalid, match="a program has secrets_env"):
        load(file, {})


def test_a_server_that_is_added_names_no_secret(tmp_path: Path) -> None:
    who = McpOAuth(client_id="x", secret=NAME)
    given = McpServer(url="https://far.example/mcp", oauth=who)
    assert "may not name secrets" in admission(tmp_path).refusal(given)
    plain = McpServer(url="https://far.example/mcp")
    assert admission(tmp_path).refusal(plain) == ""
    # What nodes of an older version read has no word of it.
    assert "oauth" not in plain.model_dump(mode="json", exclude_defaults=True)
