"""Programs with `hosts`: those are reached, and nothing else."""

import gc
import json
from pathlib import Path
from typing import Literal

import pytest

from tests.house import ME, until
from tests.providers.programs import shell_tool
from tests.sandbox.conftest import PYTHON
from tests.sandbox.hosts import Far, far
from toolgate import Toolgate
from toolgate.errors import ProviderUnavailable
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.sandbox import gvisor as gvisor_kind
from toolgate.sandbox.choosing import chosen
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.probing import interpreter
from toolgate.sandbox.sandbox import Sandbox
from toolgate.settings.outward import McpServer, Net
from toolgate.settings.outward import Sandbox as Settings
from toolgate.settings.settings import Settings as All
from toolgate.upstreams.dialing import connected

pytestmark = [pytest.mark.req("P4"), pytest.mark.usefixtures("bubblewrap")]
Kind = Literal["bubblewrap", "gvisor"]
_FETCHING = Path(__file__).with_name("fetching.py")
_TRIES = """
import json, socket, sys, urllib.request
def fetched(url, **proxies):
    try:
        return urllib.request.build_opener(urllib.request.ProxyHandler(*proxies.values())).open(url, timeout=5).read().decode()
    except OSError as error:
        return f"refused: {error}"
def connects(host, port):
    try:
        socket.create_connection((host, port), timeout=2).close()
        return True
    except OSError:
        return False
port = int(sys.argv[1])
print(json.dumps({
    "named": fetched(f"http://api.test:{port}/"),
    "other": fetched(f"http://evil.test:{port}/"),
    "address": fetched(f"http://127.0.0.1:{port}/"),
    "directly": fetched(f"http://127.0.0.1:{port}/", none={}),
    "connects": connects("127.0.0.1", port),
    "elsewhere": connects("192.0.2.1", 80),
    "proxy": connects("127.0.0.1", 3128),
}))
"""  # noqa: E501


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(params=["bubblewrap", "gvisor"])
def kind(request: pytest.FixtureRequest) -> Kind:
    request.getfixturevalue(request.param)
    return request.param


async def _sandbox(kind: Kind, guard: Guard) -> Sandbox:
    return await chosen(Settings(kind=kind), guard=guard)


async def _tried(kind: Kind, server: Far, *hosts: str) -> dict[str, str | bool]:
    sandbox = await _sandbox(kind, server.guard())
    policy = Policy(readable=interpreter(), hosts=hosts)
    done = await sandbox.run([*PYTHON, "-c", _TRIES, str(server.port)], policy)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


async def test_a_named_host_is_reached_through_the_proxy_and_nothing_else_is(
    kind: Kind,
) -> None:
    async with far() as server:
        found = await _tried(kind, server, f"api.test:{server.port}")
        assert found.pop("named") == "hello\n"
        assert found.pop("proxy") is True
        assert "403" in str(found.pop("other"))
        assert "403" in str(found.pop("address"))
        assert "refused" in str(found.pop("directly"))
        assert found == {"connects": False, "elsewhere": False}
        assert len(server.sent) == 1
        # Without the list there is no proxy; with another list, others.
        found = await _tried(kind, server)
        assert (found["named"], found["proxy"]) != ("hello\n", True)
        assert found["proxy"] is False
        assert len(server.sent) == 1
        found = await _tried(kind, server, f"127.0.0.1:{server.port}", f"evil.test:{server.port}")
        assert (found["address"], found["other"]) == ("hello\n", "hello\n")
        assert "403" in str(found["named"])


async def test_the_network_of_gvisor_with_hosts_is_its_own(
    gvisor: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    connects = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
    policy = Policy(readable=interpreter(), hosts=("api.test",))
    async with far() as server:
        argv = [*PYTHON, "-c", connects, str(server.port)]
        done = await gvisor.run(argv, policy)
        assert done.code == 1
        assert b"refused" in done.stderr
        # Without the network that is made for it, it would be in this machine's.
        *words, text = gvisor_kind.FIRST
        shared = text.replace("_done(libc.unshare(_NEW_NETWORK))", "pass")
        assert shared != text
        monkeypatch.setattr(gvisor_kind, "FIRST", (*words, shared))
        done = await gvisor.run(argv, policy)
        assert done.code == 0, done.stderr


async def test_the_proxy_ends_with_the_program(kind: Kind) -> None:
    async with far() as server:
        sandbox = await _sandbox(kind, server.guard())
        policy = Policy(readable=interpreter(), hosts=(f"api.test:{server.port}",))
        await sandbox.run(["true"], policy)
        gc.collect()
        before = _descriptors()
        holds = (
            "import socket, time; line = socket.create_connection(('127.0.0.1', 3128))\n"
            f"line.send(b'POST http://api.test:{server.port}/ HTTP/1.1\\r\\n"
            f"Host: api.test:{server.port}\\r\\nContent-Length: 9\\r\\n\\r\\nbo')\n"
            "time.sleep(600)"
        )
        running = await sandbox.start([*PYTHON, "-c", holds], policy)
        await until(lambda: len(server.sent) >= 1)
        assert server.ended == 0
        await running.end(0)
        await until(lambda: server.ended == 1)
        gc.collect()
        await until(lambda: _descriptors() <= before)


@pytest.mark.parametrize("host", ["api.test.", "http://api.test", "api.test:70000"])
async def test_a_host_that_cannot_be_read_means_that_nothing_runs(
    kind: Kind, host: str, tmp_path: Path
) -> None:
    sandbox = await _sandbox(kind, Guard())
    made = tmp_path / "made"
    for hosts, ran in {("api.test", host): False, ("api.test",): True}.items():
        policy = Policy(writable=(str(tmp_path),), hosts=hosts)
        if ran:
            await sandbox.run(["touch", str(made)], policy)
        else:
            with pytest.raises(ProviderUnavailable, match="hosts"):
                await sandbox.run(["touch", str(made)], policy)
        assert made.exists() is ran


async def test_an_mcp_server_that_is_a_program_reaches_its_hosts_and_no_others(kind: Kind) -> None:
    async with far() as server:
        settings = McpServer(
            command=PYTHON,
            args=(str(_FETCHING),),
            readable=(str(_FETCHING), *interpreter()),
            hosts=(f"api.test:{server.port}",),
            revision="2025-11-25",
        )
        sandbox = await _sandbox(kind, server.guard())
        upstream = connected(
            "fetching", settings, client=HttpClient(Guard()), sandbox=sandbox, environ={}
        )
        await upstream.open(20)
        try:
            url = f"http://api.test:{server.port}/"
            answer = await upstream.call("fetch", {"url": url}, seconds=20)
            assert answer["content"][0]["text"] == "hello\n"
            url = f"http://evil.test:{server.port}/"
            answer = await upstream.call("fetch", {"url": url}, seconds=20)
            assert "403" in answer["content"][0]["text"]
        finally:
            await upstream.close()
        assert len(server.sent) == 1


async def test_a_command_reaches_its_hosts_where_the_settings_allow_private_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").mkdir()
    async with far() as server:
        place = f"localhost:{server.port}"
        code = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=9).read())"
        script = tmp_path / "fetch.py"
        script.write_text(code)
        fetch = shell_tool(
            "fetch", PYTHON[0], "-I", "-S", str(script), "{url}",
            properties={"url": {"type": "string"}}, effect="pure",
            config={"hosts": [place], "readable": [str(script), *interpreter()]},
        )  # fmt: skip
        (tmp_path / "tools" / "shell.json").write_text(json.dumps({"tools": [fetch]}))
        for allow in ((), (place,)):
            settings = All(root=tmp_path, net=Net(allow=allow))
            async with Toolgate.open(settings) as gate:
                output = await gate.call("fetch", {"url": f"http://{place}/"}, caller=ME)
                assert output.ok is bool(allow), output
        assert len(server.sent) == 1
