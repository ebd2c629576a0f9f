"""Everything that leaves goes through the one client: by the source, and by a tripwire."""

from pathlib import Path
from typing import Any

import pytest

from tests.net.far import answer, far
from tests.net.tripwire import tripwire
from tests.test_architecture import MODULES, imports, name_of, tree, uses
from toolgate import Toolgate
from toolgate.errors import SourceUnavailable
from toolgate.net.errors import NotAllowed
from toolgate.outside import fetching
from toolgate.settings.outward import Net
from toolgate.settings.settings import Settings, Tools

pytestmark = pytest.mark.req("P2")
# What can open a connection by itself.
LIBRARIES = frozenset(
    {
        *("aiohttp", "httpx", "httpx2", "httpcore", "requests", "urllib3", "urllib.request"),
        *(
            "http.client",
            "ftplib",
            "smtplib",
            "telnetlib",
            "grpc",
            "asyncpg",
            "aiokafka",
            "redis",
            "websockets",
        ),
    }
)
FUNCTIONS = frozenset(
    {
        *("create_connection", "open_connection", "open_unix_connection", "sock_connect"),
        *("create_datagram_endpoint", "create_unix_connection", "urlopen", "connect_ex"),
    }
)
# Who may, and why it is not for the one client.
ALLOWED = {
    "net/dial.py": "the one that opens connections, to addresses that were checked",
    "client/wire.py": "a client of somebody else's process, to the one server it was given",
    "cli/around.py": "the doctor knocks at what the settings name, and sends nothing",
    "engines/spicedb_channel.py": "gRPC, to the server that the settings name",
    "engines/spicedb_schema.py": "its types",
    "store/postgres.py": "PostgreSQL, the store that the settings name",
    "store/line.py": "the same",
    "store/lines.py": "the same",
    "store/redis.py": "Redis, that the settings name",
    "store/rates.py": "the same",
    "store/notices.py": "the same",
    "store/channel.py": "the same",
    "brokers/arrivals.py": "Kafka, that the settings name",
    "brokers/backlog.py": "the name of a partition",
    "brokers/knock.py": "the same as arrivals",
    "brokers/line.py": "the same",
    "brokers/reader.py": "the same",
    "brokers/results.py": "the same",
    "brokers/topics.py": "the same",
    "providers/composio/client.py": "Composio's SDK, to its own API or the address in the settings",
    "providers/composio/failures.py": "the errors of the SDK",
    "sandbox/probing.py": "a listener of its own on this machine, to try the sandbox with",
    "sandbox/probe.py": "runs inside of the sandbox, and is to fail",
    "testing/working.py": "runs inside of a worker that is kept in, and is to fail",
}


def opening(path: Path) -> set[str]:
    """What of a module could open a connection."""
    named = {
        library
        for name in imports(tree(path)).values()
        for library in LIBRARIES
        if name == library or name.startswith(f"{library}.")
    }
    return named | {name for name in uses(path) if name.rsplit(".", 1)[-1] in FUNCTIONS}


def test_nothing_else_opens_connections() -> None:
    found = {name_of(path): opening(path) for path in MODULES}
    others = {name: used for name, used in found.items() if used and name not in ALLOWED}
    assert others == {}


def test_the_scan_sees_what_it_looks_for(tmp_path: Path) -> None:
    for number, text in enumerate(
        (
            "import aiohttp",
            "from urllib.request import urlopen",
            "import socket\nsocket.create_connection(('a', 1))",
            "async def f(loop, s):\n    await loop.sock_connect(s, ('a', 1))",
            "from http import client",
        )
    ):
        bad = tmp_path / f"{number}.py"
        bad.write_text(text)
        assert opening(bad), text
    assert opening(next(path for path in MODULES if name_of(path) == "net/dial.py"))


@pytest.mark.req("C2")
async def test_a_source_that_an_operator_names_is_reached_and_leads_nowhere_else(
    tmp_path: Path,
) -> None:
    tools = b'{"tools": [{"name": "ping", "provider": "http", "effect": "pure"}]}'
    async with far(lambda _got, _writer: answer(tools)) as there:
        settings = Settings(root=tmp_path, tools=Tools(urls=(there.url("/tools"),)))
        with tripwire() as seen:
            async with Toolgate.open(settings) as gate:
                assert "ping" in gate.catalog.current.specs
        assert set(seen) == {("127.0.0.1", there.port)}


async def json_of(fetch: Any, url: str) -> bytes:
    _status, body = await fetch(url, 1_000)
    return body


@pytest.mark.req("V3")
async def test_an_issuer_that_is_named_is_asked_and_what_it_points_to_is_checked() -> None:
    async with (
        far(lambda _got, _writer: answer(b"{}")) as issuer,
        far(lambda _got, _writer: answer(b"{}")) as inner,
    ):
        async with fetching(issuer.url()) as fetch:
            assert await json_of(fetch, issuer.url("/keys")) == b"{}"
            with tripwire() as seen:
                for url in (inner.url("/keys"), "https://169.254.169.254/keys"):
                    with pytest.raises(SourceUnavailable) as refused:
                        await fetch(url, 1_000)
                    assert isinstance(refused.value, NotAllowed)
            assert seen == []
        async with fetching(issuer.url(), allow=(f"127.0.0.1:{inner.port}",)) as fetch:
            assert await json_of(fetch, inner.url("/keys")) == b"{}", "the positive control"


def test_the_settings_take_what_the_guard_reads() -> None:
    assert Net(allow=("10.0.0.0/8", "*.internal", "localhost:8080", "[::1]:80")).allow
