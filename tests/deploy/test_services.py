"""How the servers of the tests are brought, on a machine that is as it came."""

import os
from pathlib import Path

import pytest

from scripts.services import BringError, DebianPackage, Site

APT = """#!/bin/sh
echo "$1" >> {here}/asked
case "$1" in
  update) {update} ;;
  download) [ -e {here}/lists ] || exit 100; touch tool_1_all.deb ;;
esac
"""


def brought(folder: Path, monkeypatch: pytest.MonkeyPatch, update: str) -> list[str]:
    """What apt-get was asked for. Neither it nor dpkg is the machine's own."""
    programs = folder / "bin"
    programs.mkdir()
    told = {"apt-get": APT.format(here=folder, update=update), "dpkg": "#!/bin/sh\ntouch tool\n"}
    for name, text in told.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with (folder / "log").open("w+") as log:
        site = Site(name="tool", folder=folder / "tool", log=log)
        DebianPackage(package="tool", version="1", on_path=()).bring(site)
    assert [one.name for one in (folder / "tool").iterdir()] == ["tool"]
    return (folder / "asked").read_text().split()


def test_lists_of_packages_are_fetched_once_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = brought(tmp_path, monkeypatch, f"touch {tmp_path}/lists")
    assert asked == ["download", "update", "download"]


def test_lists_that_are_there_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lists").touch()
    assert brought(tmp_path, monkeypatch, "exit 1") == ["download"]


def test_a_package_that_is_nowhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BringError, match="apt-get ended with 100"):
        brought(tmp_path, monkeypatch, ":")
    assert (tmp_path / "asked").read_text().split() == ["download", "update", "download"]
