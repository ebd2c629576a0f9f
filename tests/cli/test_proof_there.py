"""The audit's proof and a policy's replay on a running server: the same answers as on its store."""

import http.client
import json
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.audit.test_whole import verified_elsewhere
from tests.cli.conftest import as_json, write_tools
from tests.cli.test_policy import NOT_BOB, TOOLS, write
from tests.cli.test_script import SCRIPT
from tests.cli.test_server_commands import There
from tests.house import STORE
from tests.server.serving import Serving
from toolgate.cli import audit
from toolgate.cli.main import app

# A replay that is ended sooner than a test could wait for.
BEFORE = "import toolgate.apart; toolgate.apart._REPLAY_SECONDS = 4.0; "
ENDLESS = """\
package toolgate

deny contains "never told" if {
	every one in data.many {
		every other in data.many { one + other >= 0 }
	}
}
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Generator[There]:
    root, folder = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("else")
    write_tools(root, TOOLS)
    with Serving(root, before=BEFORE) as server:
        there = There(server, folder, server.greeting["keys"])
        for user in ("ann", "bob"):
            key = there.run(
                "admin",
                *("keys", "add", "--role", "agent", "--tenant", "demo", "--agent", "assistant"),
                *("--user", user, "--json"),
            )
            there.keys[user] = as_json(key)["secret"]
            said = there.run(user, "call", "pay", "--args", '{"text": "little"}', "--turn", user)
            assert said.exit_code == 0, said.output
        yield there


def here(root: Path, *arguments: str) -> Result:
    """The same command on the store of this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name in ("TOOLGATE_URL", "TOOLGATE_KEY"):
            patch.delenv(name, raising=False)
        return CliRunner().invoke(app, list(arguments))


@pytest.mark.req("V5")
def test_an_export_from_elsewhere_is_verified_without_the_server(there: There) -> None:
    told = there.run("admin", "audit", "export")
    lines = told.stdout.splitlines()
    assert told.exit_code == 0
    assert verified_elsewhere(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "_TOGETHER", 2)
        paged = there.run("admin", "audit", "export").stdout.splitlines()
    assert paged[: len(lines)] == lines, "page by page the same"
    assert set(lines) <= set(here(there.server.root, "audit", "export").stdout.splitlines())
    assert {json.loads(line)["tenant"] for line in lines} == {"", "demo"}
    assert not verified_elsewhere([line.replace('"succeeded"', '"failed"') for line in lines])
    demo = there.run("admin", "audit", "export", "--tenant", "demo").stdout.splitlines()
    assert {json.loads(line)["tenant"] for line in demo} == {"demo"}
    assert not (there.folder / ".toolgate").exists(), "nothing local was made"


@pytest.mark.req("V5")
def test_anchors_are_those_of_the_store_and_stay_good(there: There) -> None:
    anchors = as_json(there.run("admin", "audit", "anchor", "--tenant", "demo", "--json"))
    assert anchors == as_json(
        here(there.server.root, "audit", "anchor", "--tenant", "demo", "--json")
    )
    kept = [f"{one['number']}:{one['hash']}" for one in anchors]
    told = there.run("admin", "audit", "verify", "--anchor", *kept)
    assert (told.exit_code, told.stdout.startswith("The audit log holds: ")) == (0, True)
    assert "the server's own word" in told.stdout
    cut = there.run("admin", "audit", "verify", "--anchor", f"1:{'beef' * 16}", "--json")
    assert (cut.exit_code, as_json(cut)["holds"]) == (1, False)
    assert "is in no chain" in as_json(cut)["problems"][0]
    nobody = there.run("admin", "audit", "verify", "--tenant", "nobody")
    assert nobody.exit_code == 1
    assert "There is no tenant 'nobody'" in nobody.stderr


@pytest.mark.req("V5")
def test_what_was_changed_in_the_store_is_told_from_elsewhere(there: There) -> None:
    def write_who(who: str) -> None:
        with closing(sqlite3.connect(there.server.root / STORE)) as connection:
            connection.execute(
                "UPDATE audit_log SET who = ? WHERE change = 'call.ended' AND id = "
                "(SELECT max(id) FROM audit_log WHERE change = 'call.ended')",
                (who,),
            )
            connection.commit()

    [before] = [
        row["who"]
        for row in as_json(there.run("admin", "audit", "list", "--json"))
        if row["change"] == "call.ended"
    ][:1]
    write_who("mallory")
    try:
        told = there.run("admin", "audit", "verify")
        assert (told.exit_code, told.stdout.startswith("broken: record ")) == (1, True)
        lines = there.run("admin", "audit", "export").stdout.splitlines()
        assert not verified_elsewhere(lines)
    finally:
        write_who(before)
    assert there.run("admin", "audit", "verify").exit_code == 0, "the control"


@pytest.mark.req("V5", "G3")
def test_a_changed_policy_is_replayed_there_as_on_the_store(there: There) -> None:
    path = write(there.folder / "new", NOT_BOB)
    told = as_json(there.run("admin", "policy", "replay", "--path", path, "--json"))
    assert [(one["tool"], one["caller"]["user"], one["now"]) for one in told["flips"]] == [
        ("pay", "bob", "refused")
    ]
    assert told["flips"][0]["reasons"] == ["bob pays nothing"]
    assert len(told["flips"][0]["calls"]) == 1
    assert told == as_json(here(there.server.root, "policy", "replay", "--path", path, "--json"))
    shown = there.run("admin", "policy", "replay", "--path", path).stdout
    assert f"1 of {told['asked']} decisions since 24h ago would flip." in shown
    as_it_is = as_json(there.run("admin", "policy", "replay", "--json"))
    assert (as_it_is["flips"], as_it_is["asked"]) == ([], told["asked"])
    again = there.run("bob", "call", "pay", "--args", '{"text": "more"}', "--turn", "again")
    assert again.exit_code == 0, "nothing was kept"


@pytest.mark.req("V5", "G3")
def test_a_policy_that_cannot_be_used_says_so_line_by_line(there: There) -> None:
    path = write(there.folder / "bad", "package toolgate\n\ndeny contains if {\n", "bad.rego")
    told = there.run("admin", "policy", "replay", "--path", path)
    assert told.exit_code == 1
    assert "bad.rego:3" in told.stderr
    none = there.run("admin", "policy", "replay", "--path", str(there.folder / "none"))
    assert (none.exit_code, "there is no such folder" in none.stderr) == (1, True)
    refused = there.run("agent", "policy", "replay", "--path", path)
    assert (refused.exit_code, "permission_denied" in refused.stderr) == (1, True)


@pytest.mark.req("V5", "G3")
def test_a_policy_without_end_is_ended_and_holds_up_nobody(there: There) -> None:
    """In the server's own process the engine would hold the interpreter until it ends."""
    path = write(there.folder / "endless", ENDLESS)
    write(there.folder / "endless", json.dumps({"many": list(range(20_000))}), "data.json")
    asking = subprocess.Popen(
        [str(SCRIPT), "policy", "replay", "--path", path],
        cwd=there.folder,
        env={"TOOLGATE_URL": there.url, "TOOLGATE_KEY": there.keys["admin"], "PATH": "/usr/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    answered = 0
    with asking:
        while asking.poll() is None:
            answered += _alive(there)
        told = asking.stderr.read().decode() if asking.stderr else ""
    assert asking.returncode == 1
    assert "and was ended" in told
    assert answered > 20, "others were served meanwhile"


def _alive(there: There) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", there.server.port, timeout=2)
    with closing(connection):
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200


def test_the_process_beside_reads_no_code_from_where_it_is_started(there: There) -> None:
    trap = Path(there.server.root) / "msgspec.py"
    trap.write_text("raise SystemExit(3)\n", "utf-8")
    try:
        assert there.run("admin", "audit", "verify").exit_code == 0
    finally:
        trap.unlink()
