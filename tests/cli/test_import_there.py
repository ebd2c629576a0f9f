"""`toolgate tools import` on a running server: kept in its store, for every start."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.conftest import as_json, write_tools
from tests.cli.test_import_openapi import DOCUMENT
from tests.cli.test_proof_there import here
from tests.cli.test_server_commands import There
from tests.server.serving import Serving

pytestmark = pytest.mark.req("V5", "P2", "C2")
OURS = "tools:\n  - {name: ours, config: {builtin: timestamp}, effect: pure}\n"
WEATHER = """\
tools:
  - name: weather
    provider: http
    config: {method: GET, url: "https://weather.example/now"}
    effect: pure
"""
CODE = """\
tools:
  - {name: sneaky, provider: %s, config: {%s}, effect: pure}
"""


@pytest.fixture
def there(tmp_path: Path) -> Generator[There]:
    root, folder = tmp_path / "there", tmp_path / "else"
    for one in (root, folder):
        one.mkdir()
    write_tools(root, OURS)
    (folder / "shop.yaml").write_text(DOCUMENT, "utf-8")
    with Serving(root) as server:
        yield There(server, folder, server.greeting["keys"])


def tools(there: There) -> dict[str, str]:
    rows = as_json(there.run("admin", "tools", "list", "--json"))
    return {row["name"]: row["origin"] for row in rows}


def put(there: There, name: str, text: str) -> str:
    (there.folder / name).write_text(text, "utf-8")
    return name


def test_a_document_is_imported_there_with_the_same_report_and_outlives_the_server(
    there: There, tmp_path: Path
) -> None:
    told = there.run("admin", "tools", "import", "openapi", "shop.yaml", "--json")
    assert told.exit_code == 0, told.output
    assert tools(there)["addItem"] == "import my_shop.openapi"
    assert not (there.folder / "tools").exists(), "nothing was written here"
    assert not (there.folder / ".toolgate").exists()
    local = tmp_path / "local"
    local.mkdir()
    (local / "shop.yaml").write_text(DOCUMENT, "utf-8")
    same = as_json(here(local, "tools", "import", "openapi", "shop.yaml", "--json"))
    assert as_json(told) | {"file": ""} == same | {"file": ""}
    there.server.stop()
    with Serving(there.server.root) as again:
        back = There(again, there.folder, there.keys)
        assert tools(back)["addItem"] == "import my_shop.openapi"
    [change] = [
        row
        for row in as_json(here(there.server.root, "audit", "list", "--json"))
        if row["change"] == "set_tool_file"
    ]
    assert change["details"].keys() == {"name", "length", "sha256"}
    assert change["who"].startswith("key_")


def test_the_same_again_goes_to_the_same_server_when_it_is_pasted(there: There) -> None:
    named = ("tools", "import", "openapi", "shop.yaml", "--url", there.url)
    last = there.run("admin", *named, TOOLGATE_URL="").stdout.splitlines()[-1]
    assert last.endswith(f"--again my_shop --url {there.url}")
    words = last.partition(": toolgate ")[2].split()
    again = there.run("admin", *words, TOOLGATE_URL="")
    assert again.exit_code == 0, again.output
    assert "0 new, 0 changed, 0 gone" in again.stdout
    # A variable names it the next time too.
    told = there.run("admin", *named[:4])
    assert told.stdout.endswith("--again my_shop\n")


def test_the_same_again_says_what_changed_there(there: There) -> None:
    there.run("admin", "tools", "import", "openapi", "shop.yaml")
    text = DOCUMENT.replace("All items", "Every item").replace("addItem", "putItem")
    put(there, "shop.yaml", text)
    seen = there.run("admin", "tools", "import", "openapi", "shop.yaml", "--dry-run")
    assert "putItem" in seen.stdout
    assert "addItem" in tools(there), "a look changes nothing"
    told = there.run("admin", "tools", "import", "openapi", "--again", "my_shop", "--json")
    report = as_json(told)
    assert (report["added"], report["changed"]) == (["putItem"], ["listItems"])
    assert report["renamed"] == [{"from": "addItem", "to": "putItem"}]
    assert {"putItem", "listItems"} <= tools(there).keys()
    assert "addItem" not in tools(there)
    none = there.run("admin", "tools", "import", "openapi", "--again", "my_shp")
    assert (none.exit_code, "did you mean 'my_shop'" in none.stderr.lower()) == (1, True)


def test_a_tool_file_is_kept_there_and_taken_away_again(there: There) -> None:
    put(there, "weather.yaml", WEATHER)
    told = there.run("admin", "tools", "import", "weather.yaml")
    assert (told.exit_code, told.stdout) == (0, "weather has 1 tool: weather.\n")
    assert tools(there)["weather"] == "import weather"
    twice = there.run("admin", "tools", "import", "weather.yaml")
    assert (twice.exit_code, "is there already" in twice.stderr) == (1, True)
    assert there.run("admin", "tools", "import", "weather.yaml", "--replace").exit_code == 0
    assert there.run("admin", "tools", "import", "--remove", "weather").exit_code == 0
    assert "weather" not in tools(there)
    gone = there.run("admin", "tools", "import", "--remove", "weather")
    assert (gone.exit_code, "No tool file 'weather' is kept" in gone.stderr) == (1, True)


@pytest.mark.parametrize(
    ("provider", "config"),
    [
        ("python", "module: os, function: getcwd"),
        ("shell", "command: [id]"),
        ("builtin", "builtin: run_shell"),
        ("mcp", "server: x, tool: y"),
    ],
)
def test_nothing_that_names_code_comes_over_the_wire(
    there: There, provider: str, config: str
) -> None:
    put(there, "sneaky.yaml", CODE % (provider, config))
    told = there.run("admin", "tools", "import", "sneaky.yaml")
    assert (told.exit_code, told.stderr.startswith("invalid_specs: ")) == (1, True)
    assert "sneaky" not in tools(there)
    put(there, "sneaky.yaml", WEATHER)
    assert there.run("admin", "tools", "import", "sneaky.yaml").exit_code == 0, "the control"


def test_a_name_that_is_taken_changes_nothing(there: There) -> None:
    put(there, "weather.yaml", WEATHER.replace("name: weather", "name: ours"))
    told = there.run("admin", "tools", "import", "weather.yaml")
    assert (told.exit_code, told.stderr.startswith("name_clash: ")) == (1, True)
    assert tools(there)["ours"].startswith("file ")
    refused = there.run("agent", "tools", "import", "weather.yaml")
    assert (refused.exit_code, "permission_denied" in refused.stderr) == (1, True)


def test_what_clashes_later_is_told_and_stops_no_start(there: There) -> None:
    put(there, "weather.yaml", WEATHER)
    there.run("admin", "tools", "import", "weather.yaml")
    there.server.stop()
    write_tools(there.server.root, OURS.replace("name: ours", "name: weather"))
    with Serving(there.server.root) as again:
        back = There(again, there.folder, there.keys)
        assert tools(back)["weather"].startswith("file ")
        sick = back.run("admin", "doctor")
        assert (sick.exit_code, "Two tools are called 'weather'" in sick.stdout) == (1, True)


def test_a_document_is_fetched_by_the_command_and_within_the_guard(there: There) -> None:
    told = there.run("admin", "tools", "import", "openapi", f"{there.url}/openapi.json")
    assert told.exit_code == 1
    assert "[net] allow" in told.stderr


def test_a_large_document_goes_there_too(there: There) -> None:
    """More than the body of any other request may hold."""
    words = "word " * 800
    paths = {
        f"/p{number}": {"get": {"operationId": f"get{number}", "description": words}}
        for number in range(400)
    }
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Large", "version": "1"},
        "servers": [{"url": "https://large.example"}],
        "paths": paths,
    }
    put(there, "large.json", json.dumps(document))
    told = there.run("admin", "tools", "import", "openapi", "large.json", "--json")
    assert told.exit_code == 0, told.stderr
    assert len(as_json(told)["tools"]) == 400
    assert "get399" in tools(there)
