"""What runs beside a server ends with whoever asked for it, and nobody's keeps out another's."""

import asyncio
import json
import signal
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.conftest import write_tools
from tests.cli.test_policy import TOOLS
from tests.cli.test_proof_there import ENDLESS
from tests.house import until
from tests.server.serving import Serving
from toolgate import Toolgate, apart
from toolgate.errors import Overloaded
from toolgate.settings.settings import Settings

FILES = {"endless.rego": ENDLESS, "data.json": json.dumps({"many": list(range(20_000))})}


@pytest.fixture
def server(tmp_path: Path) -> Generator[Serving]:
    """With a decision that a policy can be asked about again."""
    write_tools(tmp_path, TOOLS)
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"]
        assert server.call("pay", {"text": "little"}, key=key).status == 200
        yield server


def endless(server: Serving) -> socket.socket:
    """Asks for a replay that does not come to its end in any test's time."""
    body = json.dumps({"files": FILES}).encode()
    asking = socket.create_connection(("127.0.0.1", server.port))
    asking.sendall(
        b"POST /v1/admin/replay HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %b\r\nContent-Length: %d\r\n\r\n%b"
        % (server.greeting["keys"]["admin"].encode(), len(body), body)
    )
    return asking


def beside(server: Serving) -> list[int]:
    """The processes that the server has started for such work."""
    pid = server.process.pid
    found = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [one for one in found if is_there(one)]


def is_there(pid: int) -> bool:
    try:
        return apart.__name__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def works(pid: int) -> bool:
    """It has been asked, and computes: as long as it is imported it takes less."""
    spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]
    return int(spent) > 200


@pytest.mark.req("V5")
async def test_who_hangs_up_ends_the_process_that_worked_for_them(server: Serving) -> None:
    with endless(server):
        await until(lambda: bool(beside(server)))
        [pid] = beside(server)
        await until(lambda: works(pid))
        assert is_there(pid), "the control: it goes on while somebody waits"
    await until(lambda: not is_there(pid))
    assert server.get("/healthz").status == 200


@pytest.mark.req("V5")
async def test_a_server_that_is_killed_leaves_no_process_behind(server: Serving) -> None:
    with endless(server):
        await until(lambda: bool(beside(server)))
        [pid] = beside(server)
        await until(lambda: works(pid))
        server.process.send_signal(signal.SIGKILL)
        await until(lambda: not is_there(pid))


@pytest.mark.req("V5")
async def test_of_a_tenant_one_proof_runs_or_waits_and_another_tenants_comes_next(
    tmp_path: Path,
) -> None:
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        for tenant in ("acme", "globex"):
            await gate.tenancy.set_tenant_tool(tenant, "timestamp", enabled=False)
        first = asyncio.create_task(gate.trail.verify(tenant="acme"))
        await asyncio.sleep(0)
        for _ in range(40):
            with pytest.raises(Overloaded, match="Ask again when it is done"):
                await gate.trail.verify(tenant="acme")
        assert not first.done()
        assert (await gate.trail.verify(tenant="globex")).holds
        assert (await first).holds
        assert (await gate.trail.verify(tenant="acme")).holds
