"""What servers that are added may use of this machine."""

from pathlib import Path

import pytest

from tests.sources.mcp.served import PLAIN, admission, served
from toolgate.errors import InvalidRequest
from toolgate.settings.outward import McpServer
from toolgate.testing.upstream import MemoryUpstream

pytestmark = pytest.mark.req("P3")
URL, PROGRAM = {"url": "https://far.example/mcp"}, {"command": ("time",)}
LISTED = (
    URL,
    PROGRAM,
    URL | {"headers_env": {"Authorization": "LISTED"}},
    PROGRAM | {"secrets_env": {"KEY": "LISTED"}, "readable": ("open/in",), "writable": ("open",)},
    URL | {"overlay": "open/overlay.yaml"},
    PROGRAM | {"hosts": ("listed.example", "a.below.example", "*.more.below.example")},
)
REFUSED = (
    (URL | {"headers_env": {"Authorization": "PRIVATE"}}, "added_env"),
    (PROGRAM | {"secrets_env": {"KEY": "PRIVATE"}}, "added_env"),
    (PROGRAM | {"readable": ("/etc",)}, "added_roots"),
    (PROGRAM | {"readable": ("open/../other",)}, "added_roots"),
    (PROGRAM | {"writable": ("opened",)}, "added_roots"),
    (URL | {"overlay": "/etc/passwd"}, "added_roots"),
    (PROGRAM | {"hosts": ("listed.example", "evil.example")}, "added_hosts"),
    (PROGRAM | {"hosts": ("*.example",)}, "added_hosts"),
    (PROGRAM | {"hosts": ("listed.example:22",)}, "added_hosts"),
    (PROGRAM | {"hosts": ("10.0.0.0/8",)}, "added_hosts"),
)
PRIVATE = (
    "http://127.0.0.1:8/mcp",
    "http://10.0.0.1/mcp",
    "http://169.254.169.254/latest",
    "http://[::1]:9000/mcp",
    "http://localhost:9000/mcp",
)


def server(given: dict[str, object]) -> McpServer:
    return McpServer.model_validate(given)


@pytest.mark.parametrize("given", LISTED)
def test_what_is_listed_may_be_used(given: dict[str, object], tmp_path: Path) -> None:
    assert admission(tmp_path).refusal(server(given)) == ""


def test_an_overlay_in_a_folder_that_tools_write_is_refused(tmp_path: Path) -> None:
    given = server({**URL, "overlay": "open/overlay.yaml"})
    assert admission(tmp_path).refusal(given) == ""
    written = admission(tmp_path)._replace(written=[str(tmp_path / "open")])
    assert "a folder that tools write" in written.refusal(given)


@pytest.mark.parametrize(("given", "write"), REFUSED)
async def test_what_is_not_listed_is_refused_when_it_is_added(
    given: dict[str, object], write: str, tmp_path: Path
) -> None:
    """Without the guard, or where the settings file has it, the same server is taken."""
    upstreams = {"it": MemoryUpstream("it", tools=[])}
    async with served(upstreams, {}, root=tmp_path) as house:
        with pytest.raises(InvalidRequest, match=write):
            await house.desk.add(house.gate.tenancy, "it", server(given))
        assert not house.servers.sources
        # As if it had been added while it was listed: it is not reached.
        await house.gate.tenancy.add_server("it", server(given))
        await house.servers.follow()
        assert write in house.servers.sources["it"].member.upstream.problem
    named = {"it": server(given | {"overlay": ""})}
    async with served(upstreams, named, root=tmp_path) as house:
        assert not house.servers.sources["it"].member.upstream.problem


@pytest.mark.parametrize("url", PRIVATE)
async def test_a_private_address_is_refused_when_it_is_added(url: str, tmp_path: Path) -> None:
    """One that `[net] allow` has is taken, and so is one that is found nowhere yet."""
    async with served({"it": MemoryUpstream("it", tools=[])}, {}, root=tmp_path) as house:
        with pytest.raises(InvalidRequest, match=r"\[net\] allow.*Nothing was changed"):
            await house.desk.add(house.gate.tenancy, "it", server({"url": url}))
        assert not house.gate.tenancy.world.servers.added
        await house.desk.add(house.gate.tenancy, "it", server({"url": "http://127.0.0.1:7/mcp"}))
        assert list(house.servers.sources) == ["it"]


async def test_a_plain_server_is_added(tmp_path: Path) -> None:
    async with served({"it": MemoryUpstream("it", tools=[])}, {}, root=tmp_path) as house:
        await house.desk.add(house.gate.tenancy, "it", PLAIN)
        assert list(house.servers.sources) == ["it"]
