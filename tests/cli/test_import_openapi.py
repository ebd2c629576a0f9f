"""`toolgate tools import openapi`: what comes, what changed, what to set, what was left out."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json, write_tools
from toolgate.text import yaml_text

pytestmark = pytest.mark.req("P2", "C2", "V5")
DOCUMENT = """\
openapi: 3.0.3
info: {title: My Shop, version: "2"}
servers: [{url: "https://shop.example/v1"}]
security: [{token: []}]
components: {securitySchemes: {token: {type: http, scheme: bearer}}}
paths:
  /items:
    get: {operationId: listItems, summary: All items, tags: [items]}
    post:
      operationId: addItem
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, properties: {name: {type: string}}}}}
  /old:
    get: {operationId: old, deprecated: true}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.yaml"
    path.write_text(DOCUMENT, "utf-8")
    return path


def test_a_document_becomes_one_tool_file_that_is_read(
    run: Run, tmp_path: Path, shop: Path
) -> None:
    told = run("tools", "import", "openapi", shop.name)
    assert told.exit_code == 0, told.stderr
    assert told.stdout.startswith(
        "tools/my_shop.openapi.yaml has 2 tools: 2 new, 0 changed, 0 gone.\n"
    )
    assert "[providers.http.secrets.my_shop_token]" in told.stdout
    assert 'hosts = ["shop.example"]' in told.stdout
    assert "it is deprecated" in told.stdout
    assert sorted(path.name for path in (tmp_path / "tools").iterdir()) == ["my_shop.openapi.yaml"]
    names = [row["name"] for row in as_json(run("tools", "list", "--json"))]
    assert {"addItem", "listItems"} <= set(names)


def test_importing_again_says_what_changed(run: Run, shop: Path) -> None:
    run("tools", "import", "openapi", shop.name)
    again = as_json(run("tools", "import", "openapi", shop.name, "--json"))
    assert (again["added"], again["changed"], again["removed"]) == ([], [], [])
    text = DOCUMENT.replace("All items", "Every item").replace("addItem", "putItem")
    shop.write_text(text, "utf-8")
    told = as_json(run("tools", "import", "openapi", shop.name, "--json"))
    assert (told["added"], told["changed"], told["removed"]) == (
        ["putItem"],
        ["listItems"],
        ["addItem"],
    )
    assert told["skipped"] == [{"operation": "GET /old", "reason": "it is deprecated"}]


def test_a_large_import_is_json_and_takes_the_place_of_a_small_one(
    run: Run, tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("tools", "import", "openapi", shop.name)
    monkeypatch.setattr(yaml_text, "MAX_VALUES", 20)
    shop.write_text(json.dumps(yaml_text.read(DOCUMENT, yaml_text.Limits(10**6, 10**6))), "utf-8")
    # The small one is YAML that is now too large to be read; it goes first.
    (tmp_path / "tools" / "my_shop.openapi.yaml").unlink()
    told = as_json(run("tools", "import", "openapi", shop.name, "--json"))
    assert told["file"] == "tools/my_shop.openapi.json"
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    back = as_json(run("tools", "import", "openapi", shop.name, "--json"))
    assert (back["file"], back["changed"]) == ("tools/my_shop.openapi.yaml", [])
    assert len(list((tmp_path / "tools").iterdir())) == 1


def test_what_would_come_is_shown_and_nothing_is_written(
    run: Run, tmp_path: Path, shop: Path
) -> None:
    told = run("tools", "import", "openapi", shop.name, "--dry-run", "--method", "post")
    assert (told.exit_code, "addItem" in told.stdout, "listItems" in told.stdout) == (
        0,
        True,
        False,
    )
    assert "irreversible  POST /items" in told.stdout
    assert not (tmp_path / "tools").exists()
    assert run("tools", "import", "openapi", shop.name, "--list", "--json").exit_code == 0


def test_an_overlay_a_prefix_and_a_server_are_taken(run: Run, tmp_path: Path, shop: Path) -> None:
    (tmp_path / "mine.yaml").write_text("tools: {s_addItem: {effect: idempotent}}\n", "utf-8")
    given = ("--prefix", "s_", "--overlay", "mine.yaml", "--server", "https://other.example")
    told = run("tools", "import", "openapi", shop.name, *given, "--name", "shop")
    assert told.exit_code == 0, told.stderr
    shown = as_json(run("tools", "show", "s_addItem", "--json"))
    assert (shown["effect"], shown["config"]["url"]) == ("idempotent", "https://other.example")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["openapi"], 2, "Name the document"),
        (["openapi", "shop.yaml", "--method", "BREW"], 2, "no method"),
        (["shop.yaml", "--prefix", "x"], 2, "go with a document"),
        (["openapi", "nowhere.yaml"], 1, "cannot be read"),
        (["openapi", "shop.yaml", "--tag", "none"], 1, "No operation has the tag"),
        (["openapi", "shop.yaml", "--server", "ftp://x"], 1, "is no address"),
        (["openapi", "shop.yaml", "--overlay", "shop.yaml"], 1, "shop.yaml:1: has another shape"),
        (["openapi", "broken.yaml"], 1, "broken.yaml:2: is not YAML"),
        (["openapi", "http://127.0.0.1:9/openapi.json"], 1, "[net] allow"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_written(
    run: Run, tmp_path: Path, shop: Path, arguments: list[str], code: int, told: str
) -> None:
    shop.with_name("broken.yaml").write_text("openapi: 3.0.0\npaths: {a: [1}\n", "utf-8")
    found = run("tools", "import", *arguments)
    assert (found.exit_code, found.stdout) == (code, "")
    assert told in found.stderr
    assert not (tmp_path / "tools").exists()


def test_a_clash_of_names_is_told_before_anything_is_written(
    run: Run, tmp_path: Path, shop: Path
) -> None:
    shop.write_text(DOCUMENT.replace("listItems", "taken"), "utf-8")
    write_tools(tmp_path, "tools: [{name: taken, config: {builtin: timestamp}}]")
    found = run("tools", "import", "openapi", shop.name)
    assert (found.exit_code, found.stderr.startswith("name_clash: ")) == (1, True)
    assert [path.name for path in (tmp_path / "tools").iterdir()] == ["mine.yaml"]
    assert run("tools", "import", "openapi", shop.name, "--prefix", "my_").exit_code == 0
