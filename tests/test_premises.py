"""What is the house's own: folders that tools may not have, and what they leave alone in others."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.tools.means import means
from toolgate import Toolgate, configuration
from toolgate.errors import SettingsInvalid, ToolError
from toolgate.premises import Premises, cache_of, premises
from toolgate.settings import tree
from toolgate.settings.settings import SECTIONS, Settings
from toolgate.tools.system.replacing import replace, version
from toolgate.tools.system.roots import Roots

pytestmark = pytest.mark.req("T4")
NOTHING = Premises(own=(), secret=(), unseen=())


def house(root: Path, **given: Any) -> Settings:
    """With the root `files`, where nothing else is said."""
    (root / "files").mkdir(parents=True, exist_ok=True)
    tools = {"roots": ["files"]} | given.pop("tools", {})
    return Settings.model_validate({"root": root, "tools": tools, **given})


def rooted(settings: Settings, found: Premises) -> Roots:
    parts = {"protected": found.own, "hidden": found.unseen}
    return Roots.of(means(settings.root, settings=settings.tools, **parts))


def write(place: Roots, path: str) -> None:
    with place.writing(path, parents=True) as spot:
        replace(spot, b"written", over=version(spot))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"roots": ["."]}, "'.' is the folder of the settings"),
    ({"roots": ["files", "files/.."]}, "'files/..' is the folder of the settings"),
    ({"roots": ["link"]}, "'link' is the folder of the settings"),
    ({"roots": ["tools"]}, "lies in, 'tools'"),
    ({"roots": ["tools/deep"]}, "lies in, 'tools'"),
    ({"roots": ["policies"]}, "lies in, 'policies'"),
    ({"roots": ["plugins/one"]}, "lies in, 'plugins'"),
    ({"roots": ["plugin_settings"]}, "lies in, 'plugin_settings'"),
    ({"roots": ["plugin_data/one"]}, "lies in, 'plugin_data'"),
    ({"roots": [".toolgate"]}, "lies in, '.toolgate'"),
    ({"roots": ["toolgate.toml"]}, "lies in, 'toolgate.toml'"),
    ({"roots": [sys.prefix]}, "toolgate's own"),
    ({"roots": ["..", "files"]}, "'files' is, or lies in, the folder of the settings"),
    ({"files": ["**/*.yaml"]}, "'files' is, or lies in, the folder of the settings"),
    ({"files": ["*/tool.yaml"]}, "'files' is, or lies in, the folder of the settings"),
    ({"files": ["files/gate/*.yaml"], "roots": ["files/gate/in"]}, "lies in, 'files/gate'"),
]


@pytest.mark.parametrize(("tools", "says"), REFUSED)
async def test_what_the_house_goes_by_is_no_folder_for_tools(
    tmp_path: Path, tools: dict[str, Any], says: str
) -> None:
    home = tmp_path / "house"
    settings = house(home, tools=tools)
    (home / "link").symlink_to(".")
    with pytest.raises(SettingsInvalid, match=re.escape(says)) as refused:
        async with Toolgate.open(settings):
            pass
    assert str(tmp_path) not in str(refused.value)
    assert not (home / ".toolgate").exists()


ALLOWED: list[dict[str, Any]] = [
    {},
    {"roots": []},
    {"roots": ["notes", "src/data", "../shared"]},
    {"roots": [".."]},
    {"files": ["*.yaml", "gate/**/*.yaml"]},
]


@pytest.mark.parametrize("tools", ALLOWED)
def test_other_folders_are(tmp_path: Path, tools: dict[str, Any]) -> None:
    assert premises(house(tmp_path / "house", tools=tools)).own


# What the settings can put into a folder that tools have, and what a tool would write there.
INSIDE: list[tuple[dict[str, Any], str]] = [
    ({"tools": {"files": ["files/gate/*.yaml"]}}, "gate/new.yaml"),
    ({"tools": {"files": ["files/deep/one.yaml"]}}, "deep/one.yaml"),
    ({"tools": {"files": ["tools/*.yaml"]}}, "linked.yaml"),
    ({"tools": {"plugins": ["files/plugins"]}}, "plugins/new/manifest.json"),
    ({"tools": {"openapi": {"shop": {"document": "files/shop.yaml"}}}}, "shop.yaml"),
    (
        {"tools": {"openapi": {"shop": {"document": "s.yaml", "overlay": "files/word.yaml"}}}},
        "word.yaml",
    ),
    (
        {"mcp": {"servers": {"x": {"url": "https://x.example", "overlay": "files/x.yaml"}}}},
        "x.yaml",
    ),
    ({"mcp": {"servers": {"x": {"command": ["files/serve", "--all"]}}}}, "serve"),
    ({"policy": {"path": "files/policies"}}, "policies/new.rego"),
    ({"plugins": {"settings": "files/kept"}}, "kept/weather.json"),
    ({"plugins": {"data": "files/data"}}, "data/weather/state"),
    ({"plugins": {"data": "files/data"}}, "data/.agreed/0/weather/run"),
    ({"store": {"url": "sqlite:///files/store/gate.db"}}, "store/gate.db"),
    ({"store": {"witness": "files/seen"}}, "seen"),
    ({"queue": {"ca_file": "files/ca.pem"}}, "ca.pem"),
    ({"queue": {"cert_file": "files/cert.pem", "key_file": "files/key.pem"}}, "cert.pem"),
    ({"queue": {"cert_file": "files/cert.pem", "key_file": "files/key.pem"}}, "key.pem"),
]


@pytest.mark.parametrize(("given", "path"), INSIDE)
def test_what_the_settings_name_is_written_by_no_tool(
    tmp_path: Path, given: dict[str, Any], path: str
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "linked.yaml").write_text("tools: []\n")
    (tmp_path / "tools" / "linked.yaml").symlink_to("../files/linked.yaml")
    settings = house(tmp_path, **given)
    found = premises(settings)
    with pytest.raises(ToolError, match="toolgate's own files"):
        write(rooted(settings, found), path)
    write(rooted(settings, found), "beside/it.txt")
    # The guard-off control.
    write(rooted(settings, NOTHING), path)


def test_a_settings_file_of_any_name_is_the_houses_own(tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_text("[server]\nport = 1\n")
    found = premises(configuration.load(file, {}))
    assert {file, tmp_path / "toolgate.toml"} <= set(found.own)


def test_of_a_root_around_the_house_the_house_is_no_part(tmp_path: Path) -> None:
    home = tmp_path / "house"
    settings = house(home, tools={"roots": [".."]})
    (home / ".env").write_text("KEY=secret")
    (home / "my_tools.py").write_text("")
    found = premises(settings)
    place = rooted(settings, found)
    for path in ("house/.env", "house/my_tools.py"):
        with pytest.raises(ToolError, match="kept by toolgate"):
            place.read(path)
    for path in ("house/.env", "house/my_tools.py", "house/_winapi.py", "house/new/x"):
        with pytest.raises(ToolError, match="toolgate's own files"):
            write(place, path)
    write(place, "project/x.py")
    # The guard-off control.
    assert rooted(settings, NOTHING).read("house/.env") == b"KEY=secret"


def test_where_this_process_finds_its_modules_no_tool_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, shared = tmp_path / "shared" / "library", tmp_path / "shared"
    library.mkdir(parents=True)
    settings = house(tmp_path / "house", tools={"roots": ["../shared"]})
    write(rooted(settings, premises(settings)), "library/a.py")
    monkeypatch.setattr(sys, "path", [*sys.path, str(library)])
    with pytest.raises(ToolError, match="toolgate's own files"):
        write(rooted(settings, premises(settings)), "library/b.py")
    monkeypatch.setattr(sys, "path", [*sys.path, str(shared)])
    with pytest.raises(SettingsInvalid, match="toolgate's own"):
        premises(settings)


def test_what_git_keeps_is_written_by_no_tool(tmp_path: Path) -> None:
    settings = house(tmp_path)
    place = rooted(settings, premises(settings))
    for path in (".git/hooks/pre-commit", "deep/.GIT/config", ".git"):
        with pytest.raises(ToolError, match="belongs to git"):
            write(place, path)
    with pytest.raises(ToolError, match="belongs to git"), place.founding(".git"):
        pass
    write(place, ".gitignore")


# Settings that name a file or a folder, and why some of them need no guard.
NAMED = {
    "store.url", "tools.files", "tools.plugins", "tools.openapi.document", "tools.openapi.overlay",
    "plugins.settings", "plugins.data", "policy.path", "mcp.servers.overlay", "queue.ca_file",
    "mcp.servers.command", "queue.cert_file", "queue.key_file", "store.witness",
}  # fmt: skip
HARMLESS = {
    "tools.roots": "they are what tools have",
    "mcp.servers.readable": "what a program reads is its own business",
    "mcp.servers.writable": "as above",
    "mcp.servers.roots": "it says yes or no",
    "mcp.added_roots": "as above",
    "sandbox.readable": "as above",
    "plugins.refresh": "it is a number",
    "policy.refresh": "it is a number",
    "policy.bundled": "it says yes or no",
    "tools.urls": "they are addresses",
}
_SAYS = re.compile(r"\b([Ff]iles?|[Ff]olders?)\b|sqlite:///")


def described(path: tuple[str, ...] = ()) -> Iterator[str]:
    """Settings that speak of files or folders, or are called so."""
    for name in SECTIONS if not path else tree.inside(path).model_fields:
        inner = (*path, name)
        inside = tree.inside(inner)
        if inside is None or inside is str:
            field = tree.inside(path).model_fields[name]
            if _SAYS.search(field.description or "") or name.endswith(("path", "file", "overlay")):
                yield ".".join(inner).replace(".*", "")
        elif hasattr(inside, "model_fields"):
            yield from described(inner)
        else:
            yield from described((*inner, "*"))


def test_every_setting_that_names_a_file_is_looked_at() -> None:
    """A new one is put into `premises`, and into `INSIDE` above; or it is said why not."""
    assert set(described()) == NAMED | HARMLESS.keys()


def test_a_second_name_in_an_environment_does_not_make_a_write_slow(tmp_path: Path) -> None:
    """What has several names is looked for among what is hidden, and not among our own code."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_bytes(b"x")
    os.link(tmp_path / "files" / "a.txt", tmp_path / "files" / "b.txt")
    settings = house(tmp_path)
    found = premises(settings)
    looked: list[object] = []
    walk = os.walk

    def walked(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        looked.append(path)
        return walk(str(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "walk", walked)
        write(rooted(settings, found), "b.txt")
    assert {Path(str(one)) for one in looked} <= {Path(os.path.realpath(p)) for p in found.unseen}
    assert (tmp_path / "files" / "a.txt").read_bytes() == b"x"
    # The positive control: a second name of what is hidden is known.
    (tmp_path / "plugin_settings").mkdir()
    (tmp_path / "plugin_settings" / "weather.json").write_bytes(b"a key")
    os.link(tmp_path / "plugin_settings" / "weather.json", tmp_path / "files" / "c.json")
    with pytest.raises(ToolError, match="kept by toolgate"):
        rooted(settings, found).read("c.json")
    open_house = msgspec.structs.replace(found, unseen=())
    assert rooted(settings, open_house).read("c.json") == b"a key"


def test_what_is_run_again_is_kept_where_no_tool_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    beside = Settings(root=tmp_path)
    assert cache_of(beside) == tmp_path / ".toolgate"
    far = {"url": "postgresql://localhost/x"}
    elsewhere = Settings.model_validate({"root": tmp_path, "store": far})
    assert cache_of(elsewhere) == tmp_path / "cache" / "toolgate"
    reached = {"root": tmp_path, "store": far, "tools": {"roots": ["cache"]}}
    assert cache_of(Settings.model_validate(reached)) is None
