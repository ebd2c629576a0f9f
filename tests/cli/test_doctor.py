"""`toolgate doctor` and the gate: engines, policies, and what is there before the first start."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from tests.house import STORE
from tests.servers.opa import Opa
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB
from toolgate.cli.around import skew
from toolgate.sandbox import choosing

BESIDE = ["open files", "disk", "sandbox", "relations", "cache", "events", "telemetry", "auth"]
BROKEN = "package toolgate\n\ndeny contains if {\n"
# A port that nobody listens on, and nobody may.
NOBODY = "127.0.0.1:1"


def settings(folder: Path, text: str) -> None:
    (folder / "toolgate.toml").write_text(text, "utf-8")


def policy(folder: Path, text: str) -> None:
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "policies" / "mine.rego").write_text(text, "utf-8")


def bad(run: Run) -> dict[str, str]:
    told = run("doctor", "--json")
    found = {one["part"]: one["says"] for one in as_json(told) if not one["fine"]}
    assert told.exit_code == (1 if found else 0)
    return found


@pytest.mark.req("V5")
def test_what_is_broken_is_found_before_the_first_start(run: Run, tmp_path: Path) -> None:
    assert bad(run) == {}
    write_tools(tmp_path, "tools: [{name: x, efect: pure}]")
    policy(tmp_path, BROKEN)
    found = bad(run)
    assert found.keys() == {"catalog", "policy"}
    assert "Did you mean effect?" in found["catalog"]
    assert "mine.rego:3" in found["policy"]
    parts = [one["part"] for one in as_json(run("doctor", "--json"))]
    assert parts == ["python", "settings", "store", "catalog", "policy", *BESIDE]
    assert not (tmp_path / STORE).parent.exists(), "nothing was made"
    write_tools(tmp_path, "tools: [{name: x, provider: nowhere, effect: pure}]")
    policy(tmp_path, "package toolgate\n\ndeny contains 'x' if true\n".replace("'", '"'))
    assert bad(run).keys() == {"tool"}


@pytest.mark.req("G3")
def test_a_broken_policy_is_found_beside_everything_else(run: Run, tmp_path: Path) -> None:
    run("tools", "list")
    policy(tmp_path, BROKEN)
    parts = [one["part"] for one in as_json(run("doctor", "--json"))]
    house = ["python", "settings", "store", "policy", "source", "source", "tools", "keys"]
    assert parts == [*house, *BESIDE[:3], "clock", *BESIDE[3:]]
    assert bad(run).keys() == {"policy"}


@pytest.mark.req("G7", "G8")
@pytest.mark.parametrize("when", ["before the first start", "later"])
def test_a_server_that_is_away_is_found(run: Run, tmp_path: Path, when: str) -> None:
    if when == "later":
        run("tools", "list")
    settings(tmp_path, f'[policy]\nengine = "opa"\nurl = "http://{NOBODY}"\n')
    found = bad(run)
    assert found.keys() == {"policy"}
    assert found["policy"].startswith("opa: ")
    settings(tmp_path, f'[cache]\nurl = "redis://{NOBODY}/0"\n')
    found = bad(run)
    assert found.keys() == {"cache"}
    assert found["cache"].startswith("redis: ")


@pytest.mark.req("P3", "V5")
def test_each_mcp_server_is_asked_and_what_is_wrong_is_told(run: Run, tmp_path: Path) -> None:
    """One program, one address, one whose overlay has a typo, one that is switched off."""
    (tmp_path / "wrong.yaml").write_text("tools: {one: {efect: pure}}", "utf-8")
    settings(
        tmp_path,
        f"""\
[mcp.servers.program]
command = ["no-such-program"]
[mcp.servers.address]
url = "http://{NOBODY}/mcp"
[mcp.servers.typo]
url = "http://{NOBODY}/mcp"
overlay = "wrong.yaml"
[mcp.servers.off]
command = ["no-such-program"]
enabled = false
""",
    )
    told = as_json(run("doctor", "--json"))
    found = {one["says"].partition(":")[0]: one for one in told if one["part"] == "mcp server"}
    assert found.keys() == {"program", "address", "typo"}
    assert not any(one["fine"] for one in found.values())
    assert "the connection is refused" in found["address"]["says"]
    assert "Check its url" in found["address"]["says"]
    assert "wrong.yaml:1: one.efect is no field" in found["typo"]["says"]
    assert "asks no servers" not in str(told)
    assert all(one["fine"] for one in told if one["part"] == "source"), "each is told once"
    again = run("tools", "reload").stdout
    assert "mcp server typo (none of its tools are there): its overlay cannot be used" in again
    assert "mcp server address" not in again, "nobody asked it"


@pytest.mark.req("P3", "V5")
def test_no_sandbox_is_fine_only_where_nothing_runs_in_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bubblewrap", "gvisor"):
        monkeypatch.setitem(choosing.TRIED, (name, "", ""), "it is not here")
    told = {one["part"]: one for one in as_json(run("doctor", "--json"))}
    assert told["sandbox"]["fine"]
    ours = "code_execute, git_status, lint_python, python_eval, run_shell, run_tests"
    waits = f"none, so these built-in tools cannot run: {ours}. No sandbox holds"
    assert told["sandbox"]["says"].startswith(waits)
    assert "6 built-ins without a sandbox" in told["tools"]["says"]
    settings(tmp_path, '[tools]\nbuiltin = ["echo"]\n')
    told = {one["part"]: one for one in as_json(run("doctor", "--json"))}
    assert told["sandbox"]["fine"]
    assert told["sandbox"]["says"].startswith("none, and nothing here needs one yet.")
    assert "sandbox" not in told["tools"]["says"]
    settings(tmp_path, '[mcp.servers.program]\ncommand = ["no-such-program"]\n')
    found = bad(run)
    assert found["sandbox"].startswith("program cannot run. No sandbox holds")
    assert "No sandbox holds" in found["mcp server"]
    settings(tmp_path, "")
    config = "{argv: [echo, hi]}"
    write_tools(tmp_path, f"tools: [{{name: hi, provider: shell, effect: pure, config: {config}}}]")
    assert bad(run)["sandbox"].startswith("hi cannot run. No sandbox holds")


@pytest.mark.req("G7")
def test_relations_on_a_server_that_is_away_are_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("authzed", reason="skipped: the client is an extra")
    monkeypatch.setenv("SPICEDB_TOKEN", "token")
    url = f'[relations]\nengine = "spicedb"\nurl = "grpc://{NOBODY}"\ntoken_env = "SPICEDB_TOKEN"\n'
    settings(tmp_path, url)
    found = bad(run)
    assert found.keys() == {"relations"}
    assert found["relations"].startswith("spicedb: ")
    settings(tmp_path, '[relations]\nengine = "store"\n')
    assert bad(run) == {}


@pytest.mark.req("G7", "G8")
def test_servers_that_answer_are_told_too(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opa: Opa,
    spicedb: SpiceDB,
    redis_server: Redis,
) -> None:
    monkeypatch.setenv("SPICEDB_TOKEN", spicedb.token)
    settings(
        tmp_path,
        f"""\
[policy]
engine = "opa"
url = "{opa.url}"
timeout = 10
[relations]
engine = "spicedb"
url = "grpc://{spicedb.address}"
token_env = "SPICEDB_TOKEN"
timeout = 10
[cache]
url = "{redis_server.url}"
""",
    )
    assert bad(run) == {}
    told = {one["part"]: one["says"] for one in as_json(run("doctor", "--json"))}
    assert told["policy"].startswith("opa: revision ")
    assert (told["relations"], told["cache"]) == ("spicedb: answers", "redis: answers")
    assert spicedb.token not in run("doctor").stdout


def test_a_policy_that_only_observes_is_told(run: Run, tmp_path: Path) -> None:
    assert "only observes" not in run("doctor").stdout
    settings(tmp_path, '[policy]\nmode = "observe"\n')
    told = run("doctor")
    assert (told.exit_code, "it only observes: what it would refuse passes" in told.stdout) == (
        0,
        True,
    )


@pytest.mark.req("V5")
@pytest.mark.parametrize(
    ("text", "part", "told"),
    [
        (f'[events]\nurl = "http://{NOBODY}/in"\nsecret_env = "SIGNS"\n', "events", NOBODY),
        ('[events]\nurl = "http://x.test/in"\nsecret_env = "NOT_SET"\n', "settings", "NOT_SET"),
        (f'[telemetry]\ntraces = "http://{NOBODY}"\n', "telemetry", "[telemetry] traces"),
    ],
)
def test_an_address_that_nobody_answers_at_is_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, part: str, told: str
) -> None:
    monkeypatch.setenv("SIGNS", "a secret that signs")
    settings(tmp_path, text)
    found = bad(run)
    assert found.keys() == {part}
    assert told in found[part]
    assert "a secret" not in run("doctor").stdout


@pytest.mark.req("V5")
def test_few_open_files_and_a_full_disk_are_found(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(_which: int) -> tuple[int, int]:
        return 128, 128

    def full(_path: object) -> tuple[int, int, int]:
        return Usage(10**9, 10**9 - 10**6, 10**6)

    monkeypatch.setattr("resource.getrlimit", few)
    monkeypatch.setattr("shutil.disk_usage", full)
    found = bad(run)
    assert found.keys() == {"open files", "disk"}
    assert "ulimit -n" in found["open files"]
    assert "only 1 MB are free where the store is; make room" in found["disk"]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("seconds", "told"), [(90.0, "90.0 s ahead of"), (-7.5, "7.5 s behind"), (0.3, "")]
)
def test_a_clock_that_differs_is_found(seconds: float, told: str) -> None:
    found = skew(seconds, "the server")
    assert (found.fine, told in found.says) == (not told, True)


@pytest.mark.req("T1", "V5")
def test_a_tool_without_its_extra_is_told_with_what_installs_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {one["part"]: one for one in as_json(run("doctor", "--json"))}
    assert "EXTRAS" not in told["tools"]["says"], "here all are installed"

    def installed(name: str) -> bool:
        return name not in {"jmespath", "scipy"}

    monkeypatch.setattr("toolgate.tools.table._is_installed", installed)
    told = {one["part"]: one for one in as_json(run("doctor", "--json"))}
    assert told["tools"]["fine"], "who needs them not is not bothered"
    said = 'built-ins not installed (make install EXTRAS="tools tools-math")'
    assert said in told["tools"]["says"]
    remedies = as_json(run("explain", "json_query", "--json"))["remedies"]
    assert remedies[0].startswith("Install what it needs")
