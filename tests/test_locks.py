"""The files that are installed from hold all that the package requires, as it requires it."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def _pinned(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return {canonicalize_name(found[1]): found[2] for found in _PIN.finditer(text)}


@pytest.mark.parametrize("name", ["run", "dev", "bench", *EXTRAS])
def test_what_the_package_requires_is_locked(name: str) -> None:
    wanted: list[str] = [*PROJECT["dependencies"], *EXTRAS.get(name, ())]
    if name in {"dev", "bench"}:
        wanted += [each for extra in EXTRAS.values() for each in extra]
    pinned = _pinned(name)
    for requirement in map(Requirement, wanted):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version, f"make lock: requirements/{name}.txt lacks {requirement.name}"
        assert requirement.specifier.contains(version, prereleases=True), requirement
