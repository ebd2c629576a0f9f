"""Commands on a running server: its key, whom it stands for, and how it stands."""

import signal
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from typer.testing import CliRunner, Result

from tests.cli.conftest import as_json, write_tools
from tests.cli.test_script import SCRIPT
from tests.server.serving import Serving
from toolgate.cli.main import app
from toolgate.sandbox import choosing

pytestmark = pytest.mark.req("V5")
TOOLS = """\
tools:
  - {name: careful, config: {builtin: timestamp}, effect: irreversible, requires_approval: true}
  - {name: slowly, config: {builtin: timestamp}, effect: irreversible, requires_approval: true}
  - {name: lost, config: {module: losing, function: lose}, effect: irreversible}
  - {name: hidden, config: {builtin: timestamp}, effect: pure, enabled: false}
"""
MODULE = '''\
"""A tool whose end nobody sees."""


async def lose() -> None:
    raise ValueError
'''


class There(NamedTuple):
    server: Serving
    folder: Path
    keys: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def run(self, who: str, *arguments: str, **environment: str) -> Result:
        known = {"TOOLGATE_URL": self.url, "TOOLGATE_KEY": self.keys.get(who, "")} | environment
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            return CliRunner().invoke(app, list(arguments), env=known)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Generator[There]:
    root, folder = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("else")
    write_tools(root, TOOLS)
    (root / "losing.py").write_text(MODULE, "utf-8")
    with Serving(root) as server:
        yield There(server, folder, server.greeting["keys"])


def test_a_person_decides_from_elsewhere_and_the_call_goes_on(there: There) -> None:
    waits = there.run("agent", "call", "careful", "--json", "--turn", "t-1")
    assert (waits.exit_code, as_json(waits)["status"]) == (1, "pending_approval")
    [asked] = as_json(there.run("admin", "approvals", "list", "--json"))
    shown = there.run("admin", "approvals", "show", asked["id"])
    assert "careful (approval, waiting), asked for by assistant of demo" in shown.stdout
    said = there.run("admin", "approvals", "approve", asked["id"], "--reason", "seen")
    assert said.stdout.startswith("careful may run once")
    assert there.run("agent", "call", "careful", "--turn", "t-1").exit_code == 0
    again = there.run("agent", "call", "careful", "--json", "--turn", "t-2")
    assert as_json(again)["status"] == "pending_approval"
    [asked] = as_json(there.run("admin", "approvals", "list", "--json"))
    said = there.run("admin", "approvals", "deny", asked["id"], "--json")
    assert as_json(said)["state"] == "denied"


def test_what_nobody_knows_is_settled_from_elsewhere(there: There) -> None:
    lost = there.run("agent", "call", "lost")
    assert (lost.exit_code, "toolgate ledger show" in lost.stderr) == (1, True)
    [row] = as_json(there.run("admin", "ledger", "list", "--state", "unknown", "--json"))
    shown = there.run("admin", "ledger", "show", row["call_id"])
    assert f"call_id     {row['call_id']}" in shown.stdout
    settle = ["ledger", "settle", row["call_id"], "did-not-happen", "--why", "looked"]
    assert as_json(there.run("admin", *settle, "--json"))["state"] == "failed"
    again = there.run("admin", "ledger", "again", row["call_id"], "--why", "mended", "--json")
    assert (again.exit_code, as_json(again)["status"]) == (1, "unknown")


def test_an_agents_key_sees_its_own_tools_and_no_more(there: There) -> None:
    own = {row["name"] for row in as_json(there.run("agent", "tools", "list", "--json"))}
    every = {row["name"] for row in as_json(there.run("admin", "tools", "list", "--json"))}
    assert "echo" in own
    assert "hidden" in every - own
    assert there.run("agent", "tools", "search", "echo").stdout.splitlines()[1].startswith("echo")
    assert as_json(there.run("agent", "tools", "show", "echo", "--json"))["name"] == "echo"
    assert there.run("agent", "tools", "show", "hidden").exit_code == 1
    assert as_json(there.run("agent", "tools", "export", "--json"))
    for arguments in (
        ["tenants", "list"],
        ["keys", "list"],
        ["tools", "reload"],
        ["tools", "list", "--tenant", "demo"],
        ["tools", "disable", "echo"],
    ):
        refused = there.run("agent", *arguments, "--json")
        assert (refused.exit_code, as_json(refused)["error"]["code"]) == (1, "permission_denied")
    assert there.run("agent", "call", "echo", "--args", '{"text": "on"}').exit_code == 0


def test_the_key_says_who_calls(there: There) -> None:
    for more in (["--tenant", "acme"], ["--agent", "x"], ["--user", "ann"], ["--role", "clerk"]):
        refused = there.run("agent", "call", "echo", *more)
        assert (refused.exit_code, "the key says who calls" in refused.stderr) == (2, True)


def test_the_key_comes_from_the_environment_or_from_a_file(there: There) -> None:
    file = there.folder / "key"
    file.write_text(there.keys["admin"] + "\n", "utf-8")
    known = there.run("", "tenants", "list", "--key-file", str(file))
    assert (known.exit_code, "demo" in known.stdout) == (0, True)
    assert there.run("agent", "tenants", "list", "--key-file", str(file)).exit_code == 0
    for arguments, code, told in (
        (["--key-file", "nowhere"], "invalid_request", "cannot be read"),
        (["--key-file", str(there.folder)], "invalid_request", "cannot be read"),
    ):
        refused = there.run("", "tenants", "list", *arguments)
        assert refused.exit_code == 1
        assert refused.stderr.startswith(f"{code}: ")
        assert told in refused.stderr
    without = there.run("", "tenants", "list")
    assert (without.exit_code, "set TOOLGATE_KEY" in without.stderr) == (2, True)
    wrong = there.run("", "tenants", "list", "--json", TOOLGATE_KEY="tg_admin_wrong")
    assert (wrong.exit_code, as_json(wrong)["error"]["code"]) == (1, "unauthenticated")
    assert "TOOLGATE_KEY" in as_json(wrong)["error"]["message"], "as a command is given one"
    assert there.run("admin", "tenants", "list", "--key", "x").exit_code == 2, "ps would show it"


def test_a_server_that_is_away_is_told(there: There) -> None:
    away = there.run("admin", "tenants", "list", "--url", "http://127.0.0.1:1")
    assert (away.exit_code, away.stdout) == (1, "")
    assert away.stderr.startswith("server_unreachable: http://127.0.0.1:1 does not answer")
    clear = there.run("admin", "tenants", "list", "--url", "http://tools.example.com")
    assert (clear.exit_code, "in the clear" in clear.stderr) == (1, True)
    assert "allow_http" not in clear.stderr, "no command takes that"
    assert there.keys["admin"] not in away.stderr + clear.stderr


def test_doctor_asks_the_server(there: There) -> None:
    told = there.run("admin", "doctor", "--json")
    assert told.exit_code == 0, told.stdout
    parts = [one["part"] for one in as_json(told)]
    own = ["store", "source", "source", "tools", "policy", "disk", "sandbox"]
    assert parts == ["server", "key", "clock", *own]
    assert f"{there.url} answers" in there.run("admin", "doctor").stdout
    known = there.run("agent", "doctor", "--json")
    assert (known.exit_code, [one["part"] for one in as_json(known)]) == (0, ["server", "key"])
    for more in ({"TOOLGATE_KEY": "wrong"}, {"TOOLGATE_URL": "http://127.0.0.1:1"}):
        wrong = there.run("admin", "doctor", **more)
        assert (wrong.exit_code, "BAD " in wrong.stdout) == (1, True)


def test_doctor_tells_of_plugins_servers_disk_and_sandbox_where_the_server_is(
    tmp_path: Path,
) -> None:
    more = """
[mcp.servers.away]
url = "http://127.0.0.1:9/mcp"
[sandbox]
kind = "container"
"""
    (tmp_path / "toolgate.toml").write_text(more, "utf-8")
    plugin = tmp_path / "plugins" / "broken"
    plugin.mkdir(parents=True)
    (plugin / "manifest.json").write_text("{", "utf-8")
    here = tmp_path / "here"
    here.mkdir()
    with Serving(tmp_path) as server:
        there = There(server, here, server.greeting["keys"])
        told = there.run("admin", "doctor", "--json")
        found = {one["part"]: one for one in as_json(told)}
        assert told.exit_code == 1
        sick = {part for part, one in found.items() if not one["fine"]}
        assert sick == {"plugin", "mcp server", "sandbox"}
        assert found["plugin"]["says"].startswith("broken: ")
        assert found["mcp server"]["says"].startswith("away: ")
        assert "GB are free" in found["disk"]["says"]
        assert found["store"]["fine"]
        # To others nothing of it is told.
        others = as_json(there.run("agent", "doctor", "--json"))
        assert [one["part"] for one in others] == ["server", "key"]
    assert not (here / ".toolgate").exists()


@pytest.mark.req("P3", "V5")
def test_doctor_counts_a_tool_without_a_sandbox_as_the_one_there_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, folder = tmp_path / "there", tmp_path / "here"
    for one in (root, folder):
        one.mkdir()
    monkeypatch.setattr(choosing, "TRIED", {})
    (root / "toolgate.toml").write_text('[sandbox]\nkind = "container"\n', "utf-8")
    with Serving(root) as server:
        there = There(server, folder, server.greeting["keys"])
        [far] = [
            one["says"]
            for one in as_json(there.run("admin", "doctor", "--json"))
            if one["part"] == "tools"
        ]
        monkeypatch.chdir(root)
        said = as_json(CliRunner().invoke(app, ["doctor", "--json"]))
    [near] = [one["says"] for one in said if one["part"] == "tools"]
    assert far.endswith(" can run, 6 built-ins without a sandbox")
    assert far.split()[0] == near.split()[0]


def test_a_reload_there_names_what_is_wrong_and_keeps_the_rest(there: There) -> None:
    assert there.run("admin", "tools", "reload").exit_code == 0
    more = "  - {name: fresh, config: {builtin: timestamp}, effect: pure}\n"
    write_tools(there.server.root, TOOLS + more)
    assert "New: fresh." in there.run("admin", "tools", "reload").stdout
    write_tools(there.server.root, TOOLS + "  - {name: x, efect: pure}\n")
    broken = there.run("admin", "tools", "reload")
    assert (broken.exit_code, "tools/mine.yaml:6" in broken.stdout) == (1, True)
    sick = there.run("admin", "doctor")
    assert (sick.exit_code, "tools/mine.yaml:6" in sick.stdout) == (1, True)
    write_tools(there.server.root, TOOLS)
    assert "Gone: fresh." in there.run("admin", "tools", "reload").stdout


def test_a_call_that_is_stopped_goes_on_there(there: There) -> None:
    """As a shell meets it: the signal is for the command, not for what the server does."""
    waiting = subprocess.Popen(
        [str(SCRIPT), "call", "slowly", "--wait", "30", "--turn", "t-9", "--json"],
        cwd=there.folder,
        env={"TOOLGATE_URL": there.url, "TOOLGATE_KEY": there.keys["agent"], "PATH": "/usr/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with waiting:
        while not as_json(there.run("admin", "approvals", "list", "--json")):
            assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        stdout, stderr = waiting.communicate(timeout=50)
    assert (waiting.returncode, stderr) == (130, b"")
    assert orjson.loads(stdout)["error"]["code"] == "interrupted"
