"""Importing again: a tool file says how it was made, and what became of its operations is told."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, as_json
from tests.cli.test_import_openapi import DOCUMENT
from toolgate.importing import kept_address
from toolgate.text.document import read

pytestmark = pytest.mark.req("P2", "V5")
IMPORT = ("tools", "import", "openapi")
GIVEN = ("--name", "shop", "--prefix", "s_", "--tag", "items", "--overlay", "my/mine.yaml")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.yaml"
    path.write_text(DOCUMENT, "utf-8")
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "mine.yaml").write_text("tools: {s_*: {timeout: 7}}\n", "utf-8")
    return path


def kept(root: Path) -> dict[str, object]:
    return read((root / "tools" / "shop.openapi.yaml").read_bytes()).value["imported"]


def test_a_tool_file_says_how_it_was_made_and_is_made_the_same_again(
    run: Run, tmp_path: Path, shop: Path
) -> None:
    told = run(*IMPORT, shop.name, *GIVEN)
    assert told.exit_code == 0, told.stderr
    assert told.stdout.endswith("The same again: toolgate tools import openapi --again shop\n")
    assert kept(tmp_path) == {
        "document": "shop.yaml",
        "name": "shop",
        "prefix": "s_",
        "overlay": "my/mine.yaml",
        "tags": ["items"],
    }
    before = (tmp_path / "tools" / "shop.openapi.yaml").read_bytes()
    again = as_json(run(*IMPORT, "--again", "shop", "--json"))
    assert (again["added"], again["changed"], again["removed"]) == ([], [], [])
    assert (tmp_path / "tools" / "shop.openapi.yaml").read_bytes() == before
    # Without it, the options of the last time are at least told.
    bare = run(*IMPORT, shop.name, "--name", "shop")
    assert "The last import had other options: --name shop --prefix s_" in bare.stdout
    assert "run this command with them added" in bare.stdout
    assert as_json(run("tools", "show", "listItems", "--json"))["name"] == "listItems"


def test_it_is_found_from_another_folder(
    run: Run, tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toolgate.toml").write_text("", "utf-8")
    monkeypatch.chdir(tmp_path / "my")
    there = ("--config", "../toolgate.toml")
    first = run(*IMPORT, "../shop.yaml", "--name", "shop", "--overlay", "mine.yaml", *there)
    assert first.exit_code == 0, first.stderr
    assert (kept(tmp_path)["document"], kept(tmp_path)["overlay"]) == ("shop.yaml", "my/mine.yaml")
    monkeypatch.chdir(tmp_path)
    assert run(*IMPORT, "--again", "shop").exit_code == 0


def test_what_is_given_stands_above_what_was(run: Run, tmp_path: Path, shop: Path) -> None:
    run(*IMPORT, shop.name, *GIVEN)
    assert run(*IMPORT, "--again", "shop", "--prefix", "t_").exit_code == 0
    assert (kept(tmp_path)["prefix"], kept(tmp_path)["tags"]) == ("t_", ["items"])


def test_a_large_file_remembers_too(run: Run, tmp_path: Path, shop: Path) -> None:
    long = {"operationId": "long", "description": "x " * 400}
    paths = {f"/{number}": {"get": long} for number in range(1_500)}
    shop.write_text(json.dumps({"openapi": "3.0.0", "paths": paths}), "utf-8")
    given = ("--server", "https://a.example", "--name", "shop")
    assert as_json(run(*IMPORT, shop.name, *given, "--json"))["file"].endswith(".json")
    found = json.loads((tmp_path / "tools" / "shop.openapi.json").read_bytes())
    assert found["imported"]["server"] == "https://a.example"
    again = as_json(run(*IMPORT, "--again", "shop", "--json"))
    assert (len(again["tools"]), again["changed"]) == (1_500, [])


def test_operations_that_are_gone_or_called_otherwise_are_told(run: Run, shop: Path) -> None:
    run(*IMPORT, shop.name, "--name", "shop")
    shop.write_text(DOCUMENT.replace("addItem", "putItem"), "utf-8")
    told = run(*IMPORT, "--again", "shop")
    assert "1 new, 0 changed, 1 gone" in told.stdout
    assert "removed: addItem\n" in told.stdout
    assert "renamed: addItem is putItem now" in told.stdout
    shop.write_text(DOCUMENT, "utf-8")
    row = as_json(run(*IMPORT, "--again", "shop", "--json"))
    assert row["renamed"] == [{"from": "putItem", "to": "addItem"}]


def test_an_import_that_there_is_none_of_is_told_with_the_nearest(run: Run, shop: Path) -> None:
    run(*IMPORT, shop.name, "--name", "shop")
    told = run(*IMPORT, "--again", "shoop")
    assert told.exit_code == 1
    assert "There is no import 'shoop'" in told.stderr
    assert "Did you mean 'shop'?" in told.stderr


def test_a_header_that_somebody_broke_is_told(run: Run, tmp_path: Path, shop: Path) -> None:
    run(*IMPORT, shop.name, "--name", "shop")
    path = tmp_path / "tools" / "shop.openapi.yaml"
    path.write_text(path.read_text("utf-8").replace("name: shop\n", "nam: shop\n", 1), "utf-8")
    told = run(*IMPORT, "--again", "shop")
    assert (told.exit_code, "is not as an import has written it" in told.stderr) == (1, True)
    # With all options it can be made anew.
    assert run(*IMPORT, shop.name, "--name", "shop").exit_code == 0


@pytest.mark.parametrize(
    ("address", "is_kept"),
    [
        ("https://a.example/openapi.json", True),
        ("https://ann:secret@a.example/openapi.json", False),
        ("https://a.example/openapi.json?token=secret", False),
    ],
)
def test_an_address_that_can_hold_a_secret_is_not_kept(address: str, *, is_kept: bool) -> None:
    assert kept_address(address) == (address if is_kept else "")


def test_where_the_address_was_not_kept_it_is_asked_for(
    run: Run, tmp_path: Path, shop: Path
) -> None:
    run(*IMPORT, shop.name, "--name", "shop")
    path = tmp_path / "tools" / "shop.openapi.yaml"
    path.write_text(path.read_text("utf-8").replace("  document: shop.yaml\n", ""), "utf-8")
    told = run(*IMPORT, "--again", "shop")
    assert "import openapi URL --again shop" in told.stderr
    assert run(*IMPORT, shop.name, "--again", "shop").exit_code == 0


def test_tags_are_listed_and_one_that_is_misspelt_ends_with_an_error(run: Run, shop: Path) -> None:
    assert run(*IMPORT, shop.name, "--tags").stdout.split() == ["tag", "operations", "items", "1"]
    assert as_json(run(*IMPORT, shop.name, "--tags", "--json")) == {"tags": {"items": 1}}
    for wrong, meant in (
        (("--tag", "itms"), "'items'"),
        (("--path", "/itms"), "'/items'"),
        (("--operation", "listItem"), "'listItems'"),
        (("--auth", "tokn"), "'token'"),
    ):
        told = run(*IMPORT, shop.name, "--dry-run", *wrong)
        assert (told.exit_code, told.stdout) == (1, "")
        assert f"Did you mean {meant}?" in told.stderr
    shop.write_text(DOCUMENT.replace(", tags: [items]", ""), "utf-8")
    assert "has no tags" in run(*IMPORT, shop.name, "--tags").stdout


def test_a_secret_in_clear_text_is_warned_of(run: Run, shop: Path) -> None:
    shop.write_text(DOCUMENT.replace("https://", "http://"), "utf-8")
    told = run(*IMPORT, shop.name, "--name", "shop")
    assert told.exit_code == 0
    assert told.stderr.startswith("warning: its secret would go to http://shop.example/v1")
    assert 'hosts = ["shop.example"]' in told.stdout
    row = as_json(run(*IMPORT, shop.name, "--name", "shop", "--json"))
    assert row["notes"][0]["grave"] is True
    # As the warning says.
    safe = run(*IMPORT, "--again", "shop", "--server", "https://shop.example/v1")
    assert (safe.exit_code, safe.stderr) == (0, "")
