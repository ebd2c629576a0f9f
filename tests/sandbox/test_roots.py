"""What of this machine is shown to a program, and where."""

from pathlib import Path

import pytest

from toolgate.sandbox.policy import Policy
from toolgate.sandbox.roots import Shown, mounts

pytestmark = pytest.mark.req("P4")


def _environment(root: Path) -> Path:
    """A virtual environment: its lib64 is a link to its lib."""
    home = root / ".venv"
    (home / "lib").mkdir(parents=True)
    (home / "lib64").symlink_to("lib")
    return home


def _given(policy: Policy) -> dict[str, tuple[Shown, str]]:
    return {one.path: (one.shown, one.source) for one in mounts(policy) if one.is_given}


@pytest.mark.parametrize("how", ["readable", "writable"])
def test_a_root_with_a_virtual_environment_in_it_shows_both(tmp_path: Path, how: str) -> None:
    home = _environment(tmp_path)
    parts = (str(home / "lib"), str(home / "lib64"))
    agreed = dict.fromkeys(parts, str(home / "lib"))
    around = (str(tmp_path),)
    found = _given(
        Policy(
            readable=(*parts, *around) if how == "readable" else parts,
            writable=around if how == "writable" else (),
            agreed=agreed,
            system=False,
        )
    )
    # Nothing can be mounted on the link, and what it leads to is there and cannot be written.
    assert str(home / "lib64") not in found
    assert found[str(home / "lib")] == (Shown.READ, str(home / "lib"))


def test_without_a_root_around_it_a_link_is_mounted_by_its_own_name(tmp_path: Path) -> None:
    home = _environment(tmp_path)
    agreed = {str(home / "lib64"): str(home / "lib")}
    found = _given(Policy(readable=tuple(agreed), agreed=agreed, system=False))
    assert found == {str(home / "lib64"): (Shown.READ, str(home / "lib"))}


def test_a_link_that_leads_elsewhere_does_not_say_where_a_root_is_mounted(tmp_path: Path) -> None:
    home, elsewhere = _environment(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / "lib64").unlink()
    (home / "lib64").symlink_to("../elsewhere")
    agreed = {str(home / "lib64"): str(home / "lib")}
    readable = (str(tmp_path), str(home / "lib64"))
    found = _given(Policy(readable=readable, agreed=agreed, system=False))
    assert str(elsewhere) not in found
