"""Programs of plugins run what was agreed to, whatever happens to the plugin's folder since."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import ME
from tests.plugins.folders import agree, opened, row
from tests.plugins.test_portable import SCHEMA, SERVERS
from tests.servers.sandboxes import bubblewrap
from toolgate import Toolgate
from toolgate.errors import ToolgateError
from toolgate.plugins import copies, package, plugin
from toolgate.plugins.copies import copied
from toolgate.plugins.package import Package, Refused, taken

pytestmark = pytest.mark.req("U1")
PROGRAM = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    if number is None:
        continue
    answer = {"jsonrpc": "2.0", "id": number}
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "places", "version": "1"},
        }
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"end": {"type": "boolean"}}}
        one = {"name": "said", "description": "Says a word.", "inputSchema": schema}
        answer["result"] = {"tools": [one | {"annotations": {"readOnlyHint": True}}]}
    elif asked["params"].get("arguments", {}).get("end"):
        sys.exit(1)
    else:
        answer["result"] = {"content": [{"type": "text", "text": "WORD"}]}
    print(json.dumps(answer), flush=True)
"""


def put(root: Path) -> Path:
    folder = root / "plugins" / "places"
    folder.mkdir(parents=True)
    said = {"$schema": SCHEMA, "name": "places", "version": "1"}
    (folder / "plugin.json").write_text(json.dumps(said), "utf-8")
    entry = {"type": "stdio", "command": "./run", "env": {"PYTHON": sys.executable}}
    servers = {"$schema": SERVERS, "mcpServers": {"local": entry}}
    (folder / "mcp.json").write_text(json.dumps(servers), "utf-8")
    (folder / "run").write_text('#!/bin/sh\nexec "$PYTHON" -S -E ./lib.py\n', "utf-8")
    (folder / "run").chmod(0o755)
    (folder / "lib.py").write_text(PROGRAM.replace("WORD", "agreed"), "utf-8")
    (root / "plugin_settings").mkdir(exist_ok=True)
    readable = sorted({sys.base_prefix, sys.prefix})
    override = {"server_overrides": {"local": {"trust": "hints", "readable": readable}}}
    (root / "plugin_settings" / "places.json").write_text(json.dumps(override), "utf-8")
    return folder


async def said(gate: Toolgate, *, end: bool = False) -> str:
    """What the program says; nothing while it is away."""
    try:
        output = await gate.call("mcp:places_local:said", {"end": end}, caller=ME)
    except ToolgateError:
        return ""
    return output.to_human() if output.ok else ""


async def started_anew(gate: Toolgate, folder: Path) -> str:
    """The folder changes, nobody agrees, and the program ends and starts again."""
    await agree(gate, "places")
    assert (await gate.servers.tested("places_local"))["ok"], gate.servers.rows()
    assert await said(gate) == "agreed"
    (folder / "lib.py").write_text(PROGRAM.replace("WORD", "never agreed to"), "utf-8")
    await gate.plugins.reload_changed()
    assert row(gate, "places")["state"] == "waiting"
    assert await said(gate, end=True) == ""
    await gate.servers.tested("places_local")
    for _ in range(100):
        if word := await said(gate):
            return word
        # It is reached again when that is asked for.
        await gate.servers.tested("places_local")
    return ""


def in_place(given: Package, _data: Path) -> Path:
    """What stands for a guard that is off."""
    return given.root


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_copied", [True, False])
async def test_a_program_that_starts_anew_is_the_one_that_was_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_copied: bool
) -> None:
    bubblewrap()
    if not is_copied:
        monkeypatch.setattr(plugin, "copied", in_place)
    folder = put(tmp_path)
    async with opened(tmp_path) as gate:
        word = await started_anew(gate, folder)
    assert word == ("agreed" if is_copied else "never agreed to")


def test_a_copy_is_what_the_fingerprint_is_over(tmp_path: Path) -> None:
    folder = put(tmp_path)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core]\n", "utf-8")
    (folder / "deep").mkdir()
    (folder / "deep" / "same.py").symlink_to("../lib.py")
    before = taken(folder)
    place = copied(before, tmp_path / "data")
    assert place == tmp_path / "data" / ".agreed" / before.fingerprint / "places"
    assert taken(place).fingerprint == before.fingerprint
    assert not (place / ".git").exists()
    assert (place / "deep" / "same.py").read_text() == PROGRAM.replace("WORD", "agreed")
    assert os.access(place / "run", os.X_OK)
    assert not list(place.parent.glob(".*"))
    # What is there is used again, and made anew where it is not what it should be.
    number = (place / "lib.py").stat().st_ino
    assert (copied(before, tmp_path / "data") / "lib.py").stat().st_ino == number
    (place / "lib.py").chmod(0o644)
    (place / "lib.py").write_text("changed")
    assert taken(copied(before, tmp_path / "data")).fingerprint == before.fingerprint


def test_copies_of_versions_long_gone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_KEPT", 2)
    folder = put(tmp_path)
    made: list[Path] = []
    for number in range(4):
        (folder / "lib.py").write_text(str(number))
        made.append(copied(taken(folder), tmp_path / "data"))
    assert [place.exists() for place in made] == [False, False, True, True]


def into_git(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "x").write_text("", "utf-8")
    (folder / "lib.py").unlink()
    (folder / "lib.py").symlink_to(".git/x")


def by_another_link(folder: Path) -> None:
    into_git(folder)
    (folder / "lib.py").unlink()
    (folder / "inner").symlink_to(".git")
    (folder / "lib.py").symlink_to("inner/x")


def called_as_a_link(folder: Path) -> None:
    (folder / "a -> lib.py").write_text("", "utf-8")


def folder_called_as_a_link(folder: Path) -> None:
    (folder / "a -> b").mkdir()


WAYS: list[tuple[Callable[[Path], None], str]] = [
    (into_git, "lib.py is a link to what nobody looks at"),
    (by_another_link, "is a link to what nobody looks at"),
    (called_as_a_link, "is called as a link is shown"),
    (folder_called_as_a_link, "is called as a link is shown"),
]


@pytest.mark.parametrize(("put_there", "says"), WAYS, ids=[one[0].__name__ for one in WAYS])
def test_nothing_is_outside_of_the_fingerprint(
    tmp_path: Path, put_there: Callable[[Path], None], says: str
) -> None:
    folder = put(tmp_path)
    assert taken(folder).fingerprint
    put_there(folder)
    with pytest.raises(Refused, match=says):
        taken(folder)


def test_without_the_guard_a_link_into_git_would_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put(tmp_path)
    into_git(folder)

    def anywhere(_root: Path, _path: str, _left_out: object) -> str:
        return ".git/x"

    monkeypatch.setattr(package, "_within", anywhere)
    before = taken(folder).fingerprint
    (folder / ".git" / "x").write_text("other code", "utf-8")
    assert taken(folder).fingerprint == before
    # It would not run: what nobody looks at is not in the copy.
    assert not (copied(taken(folder), tmp_path / "data") / "lib.py").exists()
