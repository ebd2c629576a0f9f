"""`toolgate plugins`, here and on a running server, and the plugin that it writes."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.plugins.folders import settle, tool, write
from tests.server.serving import Serving
from toolgate.cli.main import app

pytestmark = pytest.mark.req("U1", "V5")


def run(root: Path, *arguments: str, **environment: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return CliRunner().invoke(app, list(arguments), env=environment)


@pytest.mark.timeout(120)
def test_a_new_plugin_works_and_its_test_passes(tmp_path: Path) -> None:
    made = run(tmp_path, "plugins", "new", "my-tools")
    assert made.exit_code == 0, made.output
    assert "plugins/my-tools/manifest.json" in made.output
    again = run(tmp_path, "plugins", "new", "my-tools")
    assert (again.exit_code, "exists already" in again.output) == (2, True)
    assert run(tmp_path, "plugins", "new", "../out").exit_code == 2
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "plugins/my-tools"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout
    # What running it has left behind is no part of it.
    before = json.loads(run(tmp_path, "plugins", "show", "my-tools", "--json").stdout)
    assert before["state"] == "waiting"
    agreed = run(tmp_path, "plugins", "approve", "my-tools", "--why", "mine")
    assert "Agreed to plugin my-tools 0.1.0.\nIt is live: 1 tool." in agreed.output
    settle(tmp_path, "my-tools", custom_config={"greeting": "Good day"})
    said = run(tmp_path, "call", "greet_by_my_tools", "--args", '{"name": "Ada"}')
    assert json.loads(said.output) == {"text": "Good day, Ada!"}
    # Settings are one machine's.
    assert (tmp_path / "plugin_settings" / ".gitignore").read_text() == "*\n"


def test_what_waits_is_shown_with_what_is_different(tmp_path: Path) -> None:
    assert "There are no plugins" in run(tmp_path, "plugins", "list").output
    write(tmp_path)
    assert run(tmp_path, "plugins", "approve", "teller").exit_code == 0
    write(tmp_path, version=2)
    (tmp_path / "plugins" / "teller" / "more.py").write_text("A = '\u202e'\n", "utf-8")
    shown = run(tmp_path, "plugins", "show", "teller").output
    assert "Another version, 2.0.0 (" in shown
    assert "  changed: tools.py (" in shown
    assert "    -VERSION = 1\n" in shown
    assert "    +VERSION = 2\n" in shown
    assert "  new: more.py (" in shown
    # Nothing in it steers a terminal, or turns the line around.
    assert "\u202e" not in shown
    listed = run(tmp_path, "plugins", "list").output
    assert "teller  waiting  2.0.0" in listed
    for told in (shown, listed):
        assert "may still have the version of teller in use that was agreed to" in told
    other = run(tmp_path, "plugins", "approve", "teller", "--fingerprint", "0" * 64)
    assert (other.exit_code, "has changed since" in other.output) == (1, True)
    assert run(tmp_path, "plugins", "approve", "teller", "--json").exit_code == 0
    nothing = run(tmp_path, "plugins", "approve", "teller")
    assert (nothing.exit_code, "Nothing of plugin 'teller' waits" in nothing.output) == (1, True)


def test_doctor_and_reload_tell_of_plugins(tmp_path: Path) -> None:
    write(tmp_path, code="raise ValueError\n")
    write(tmp_path, "other", tools=[tool("other")], enabled=False)
    (tmp_path / "toolgate.toml").write_text('[plugins]\ntrusted = ["teller"]\n', "utf-8")
    told = run(tmp_path, "doctor").output
    assert "BAD  plugin      teller 1.0.0: it cannot be loaded (ValueError, tools.py line" in told
    assert "ok   plugin      other 1.0.0: switched off" in told
    assert "Traceback" not in told
    found = run(tmp_path, "plugins", "reload")
    assert "Traceback" not in found.output
    assert (found.exit_code, "broken      teller: it cannot be" in found.output) == (1, True)
    write(tmp_path, version=2)
    found = run(tmp_path, "plugins", "reload")
    assert (found.exit_code, found.output) == (0, "loaded      teller\n")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Path, Serving]]:
    root = tmp_path_factory.mktemp("served")
    write(root)
    (root / "toolgate.toml").write_text("[plugins]\nrefresh = 0\n", "utf-8")
    with Serving(root) as server:
        yield root, server


@pytest.mark.req("U2", "V2")
def test_a_running_server_is_asked_and_told_from_elsewhere(
    served: tuple[Path, Serving], tmp_path: Path
) -> None:
    root, server = served
    keys = server.greeting["keys"]
    place = {"TOOLGATE_URL": f"http://127.0.0.1:{server.port}", "TOOLGATE_KEY": keys["admin"]}

    def call() -> Any:
        asked: dict[str, Any] = {"tool": "told", "args": {}}
        return server.ask("POST", "/v1/call", key=keys["agent"], body=asked).body

    assert "teller  waiting" in run(tmp_path, "plugins", "list", **place).output
    assert call()["code"] == "tool_not_found"
    assert run(tmp_path, "plugins", "approve", "teller", **place).exit_code == 0
    assert call()["data"] == {"text": "", "version": 1}
    write(root, version=2)
    found = run(tmp_path, "plugins", "reload", **place)
    assert (found.exit_code, found.output) == (0, "waiting     teller\n")
    assert call()["data"] == {"text": "", "version": 1}
    assert "+VERSION = 2" in run(tmp_path, "plugins", "show", "teller", **place).output
    assert run(tmp_path, "plugins", "approve", "teller", **place).exit_code == 0
    assert call()["data"] == {"text": "", "version": 2}
    assert run(tmp_path, "plugins", "reload", **place).output == "Nothing has changed.\n"
    # Who is no admin may not even look.
    body = {"fingerprint": "0" * 64}
    refused = [
        server.ask("GET", "/v1/admin/plugins", key=keys["agent"]),
        server.ask("POST", "/v1/admin/plugins", key=keys["agent"], body={}),
        server.ask("POST", "/v1/admin/plugins/teller/approve", key=keys["agent"], body=body),
    ]
    assert [one.status for one in refused] == [403, 403, 403]
    wrong = server.ask("POST", "/v1/admin/plugins/teller/approve", key=keys["admin"], body=body)
    assert (wrong.status, wrong.body["code"]) == (400, "invalid_request")
