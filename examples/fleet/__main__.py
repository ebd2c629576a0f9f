"""A fleet on one machine: two nodes, two workers, and the servers they share.

`make fleet` starts it, from what `make services` has brought; Ctrl-C stops all of it.
"""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import http.client
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, NamedTuple, Self

import asyncpg

from tests.fleet.balancer import Balancer
from tests.servers.kafka import Kafka
from tests.servers.opa import Opa
from tests.servers.postgres import Postgres
from tests.servers.process import AbsentError, Process, free_port
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB
from toolgate import Caller, Toolgate
from toolgate.tenancy.keys import Role

HOUSE = Path(__file__).parent / "house"
TOOLGATE = (sys.executable, "-c", "from toolgate.cli.main import main; main()")
TENANT, AGENT = "acme", "clerk"
STOP_SECONDS = 20.0


def main() -> None:
    """Until somebody says that it is enough."""
    over = threading.Event()

    def enough(_signal: int, _frame: object) -> None:
        over.set()

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, enough)
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="toolgate-fleet-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        try:
            words, environment = _servers(stack)
        except AbsentError as error:
            sys.exit(f"There is {error}.")
        environment["SHOP_BOOKS"] = str(root / "books.txt")
        (root / "books.txt").touch()
        os.environ.update(environment)
        places = [_furnished(root / name, words) for name in ("node1", "node2", "work1", "work2")]
        keys = asyncio.run(_seeded(places[0]))
        _keep(root / "admin.key", keys.admin)
        _keep(root / "env", "".join(f"export {name}={environment[name]}\n" for name in environment))
        ports = [free_port(), free_port()]
        for place, port in zip(places[:2], ports, strict=True):
            stack.enter_context(Member(place, "serve", "--port", str(port)))
        probes = [f"127.0.0.1:{free_port()}" for _ in places[2:]]
        for place, probe in zip(places[2:], probes, strict=True):
            stack.enter_context(Member(place, "worker", "--health", probe))
        balancer = stack.enter_context(Balancer(ports))
        _tell(balancer.url, ports, probes, keys, root)
        if "--once" in sys.argv:
            _try(balancer.port, keys.agent)
        else:
            over.wait()
        print("Stopping …", flush=True)


class Keys(NamedTuple):
    """The secrets of the agent, and of who runs the house."""

    agent: str
    admin: str


class Member:
    """One process of the fleet, from its greeting to its end."""

    def __init__(self, place: Path, *arguments: str) -> None:
        self._log = (place / "log").open("wb")
        self._process = Popen(
            [*TOOLGATE, *arguments],
            cwd=place,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=self._log,
            # The terminal's Ctrl-C is ours: each is told to end in its turn.
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        if not self._process.stdout.readline():
            sys.exit((place / "log").read_text("utf-8"))
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        finally:
            self._process.kill()
            self._log.close()


def _servers(stack: ExitStack) -> tuple[dict[str, str], dict[str, str]]:
    """All that the fleet shares: what stands in the settings, and in the environment."""
    print("Starting PostgreSQL, Redis, Kafka, OPA and SpiceDB …", flush=True)
    postgres, redis, kafka, opa, spicedb = Postgres(), Redis(), Kafka(), Opa(), SpiceDB()
    servers: Sequence[Process] = (postgres, redis, kafka, opa, spicedb)
    for server in servers:
        stack.enter_context(server)
    words = {
        "STORE": asyncio.run(_database(postgres)),
        "REDIS": redis.url,
        "KAFKA": kafka.address,
        "OPA": opa.url,
        "SPICEDB": spicedb.address,
    }
    return words, {"SPICEDB_KEY": spicedb.token}


async def _database(postgres: Postgres) -> str:
    """One of its own, for a role that row security holds for."""
    owner: Any = await asyncpg.connect(postgres.dsn)
    try:
        await owner.execute("CREATE ROLE fleet LOGIN")
        await owner.execute("CREATE DATABASE fleet OWNER fleet")
    finally:
        await owner.close()
    return f"postgresql://fleet@127.0.0.1:{postgres.port}/fleet"


def _furnished(place: Path, words: Mapping[str, str]) -> Path:
    shutil.copytree(HOUSE, place)
    settings = (place / "toolgate.toml").read_text("utf-8")
    for name, value in words.items():
        settings = settings.replace(f"@{name}@", value)
    (place / "toolgate.toml").write_text(settings, "utf-8")
    return place


def _keep(path: Path, text: str) -> None:
    """For who started the fleet, and nobody else."""
    path.touch(0o600)
    path.write_text(text, "utf-8")


async def _seeded(place: Path) -> Keys:
    """A tenant with an agent that may use the shop; its key, and one that runs the house."""
    async with Toolgate.open(place / "toolgate.toml", scheduled=False, queued=False) as gate:
        await gate.tenancy.set_agent(TENANT, AGENT)
        tools = [spec.name for spec in gate.catalog.current.specs.values()]
        mine = [f"tool:{name}#executor@agent:{AGENT}" for name in tools]
        await gate.tenancy.relate(TENANT, add=mine)
        assert await gate.discover(Caller(tenant=TENANT, agent=AGENT))  # noqa: S101
        agent = await gate.tenancy.add_key(Role.AGENT, tenant=TENANT, agent=AGENT)
        admin = await gate.tenancy.add_key(Role.ADMIN, tenant=TENANT)
        return Keys(agent.secret, admin.secret)


def _try(port: int, key: str) -> None:
    """One call of each kind, through the balancer; for who wants to see that it works."""
    for tool, args in (
        ("quote", {"items": 3}),
        ("report", {"account": "a-1"}),
        ("charge", {"account": "a-1", "amount": 5}),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({"tool": tool, "args": args})
        connection.request("POST", "/v1/call", body, {"Authorization": f"Bearer {key}"})
        answer = json.load(connection.getresponse())
        connection.close()
        print(f"{tool}: {answer['status']} {answer['data']}", flush=True)


def _tell(url: str, ports: Sequence[int], probes: Sequence[str], keys: Keys, root: Path) -> None:
    nodes = " and ".join(f"http://127.0.0.1:{port}" for port in ports)
    health = " and ".join(f"http://{probe}/readyz" for probe in probes)
    ask = f"curl -s -H 'Authorization: Bearer {keys.agent}' {url}"
    args = '{"tool":"charge","args":{"account":"a-1","amount":5}}'
    # Beside the Python that runs this: it may not be on the path of who reads it.
    toolgate = Path(sys.executable).with_name("toolgate")
    admin = f"--url {url} --key-file {root}/admin.key"
    lines = f"""
The fleet is up: two nodes ({nodes}) behind {url}, and two workers.

Ask any of them, as an agent:
  {ask}/v1/tools
  {ask}/v1/call -d '{args}'
  {ask}/v1/ledger
What was charged:
  cat {root}/books.txt

Run it, as its admin ({keys.admin}):
  {toolgate} queue show {admin}
  {toolgate} queue dead {admin}
  {toolgate} ledger list --tenant {TENANT} {admin}
  (. {root}/env; {toolgate} doctor --fleet --config {root}/node1/toolgate.toml)
Whether the workers are well: {health}
The logs:
  tail -f {root}/*/log

Ctrl-C stops all of it.
"""
    print(lines, flush=True)


if __name__ == "__main__":
    main()
