"""Programs that are installed somewhere else: what they need is named before they begin."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import executable, seccomp
from toolgate.sandbox.executable import check, installed_in
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.probing import interpreter
from toolgate.sandbox.roots import mounts
from toolgate.sandbox.sandbox import Sandbox
from toolgate.sandbox.ways import RefusedRootError

pytestmark = pytest.mark.req("P4")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_PYTHON = Path(os.path.realpath(sys.executable))


def _script(place: Path, first: str, rest: str = "") -> str:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{first}\n{rest}\n")
    place.chmod(0o755)
    return str(place)


def _environment(root: Path) -> Path:
    """As `python -m venv` makes it, with a program that pip has installed."""
    home = root / "venv"
    (home / "bin").mkdir(parents=True)
    (home / "pyvenv.cfg").write_text(f"home = {_PYTHON.parent}\n")
    (home / "bin" / "python3").symlink_to(_PYTHON)
    (home / "bin" / "python").symlink_to("python3")
    packages = home / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "a_server.py").write_text("def main(): print('it runs')\n")
    _script(home / "bin" / "a-server", f"#!{home}/bin/python", "import a_server; a_server.main()")
    return home


def _needs(program: str, *readable: str) -> str:
    shown = mounts(Policy(readable=readable))
    try:
        check(program, shown, path=_PATH, folder="/tmp")  # noqa: S108
    except RefusedRootError as refused:
        return str(refused)
    return ""


def _unchecked(program: str, shown: object, *, path: str, folder: str) -> None:
    assert all((program, shown, path, folder))


async def test_a_program_of_pip_runs_once_its_folders_are_named(
    bubblewrap: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = _environment(tmp_path)
    program = str(home / "bin" / "a-server")
    readable: tuple[str, ...] = ()
    for named in (str(home), *interpreter()):
        with pytest.raises(ProviderUnavailable, match=f"othing ran .* put {named} in `readable`"):
            await bubblewrap.run([program], Policy(readable=readable))
        with pytest.raises(ProviderUnavailable, match=f"put {named} in `readable`"):
            await bubblewrap.start([program], Policy(readable=readable))
        readable = (*readable, named)
    done = await bubblewrap.run([program], Policy(readable=readable))
    assert done.stdout == b"it runs\n", done.stderr
    # What bubblewrap says of it by itself is not so: the program is there.
    monkeypatch.setattr(executable, "check", _unchecked)
    if interpreter():
        with pytest.raises(ProviderUnavailable, match="No such file"):
            await bubblewrap.run([program], Policy(readable=(str(home),)))


def test_what_a_program_needs_is_found_link_by_link_and_script_by_script(tmp_path: Path) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    tool = _script(far / "bin" / "tool", "#!/bin/sh")
    for text in (
        f"#!{tool}",
        f"#! {tool} -x",
        f"#!/usr/bin/env {tool}",
        f"#!/usr/bin/env -S {tool} -x",
    ):
        program = _script(near / "program", text)
        assert _needs(program) == (
            f"the program {program!r} is not among what it may read: put {near} in `readable`"
        )
        assert f"needs {tool!r}" in _needs(program, str(near))
        assert f"put {far} in" in _needs(program, str(near))
        assert _needs(program, str(near), str(far)) == ""
    (near / "link").symlink_to("../far/bin/tool")
    assert f"needs {tool!r}, which is not among" in _needs(f"{near}/link", str(near))
    (near / "link").unlink()
    (near / "link").symlink_to(far / "bin" / "gone")
    assert "is not there; correct" in _needs(f"{near}/link", str(near), str(far))
    missing = _script(near / "program", "#!/usr/bin/env no-such-interpreter")
    assert "needs 'no-such-interpreter', which is in no folder of its PATH" in _needs(
        missing, str(near)
    )
    assert f"is in no folder of its PATH ({_PATH})" in _needs("no-such-program")
    for known in ("sh", "/bin/sh", "/usr/bin/env", "/proc/self/exe", "/dev/fd/3"):
        assert _needs(known) == ""


def test_what_it_cannot_judge_it_lets_pass(tmp_path: Path) -> None:
    texts = ("#!", "#!/usr/bin/env", "#!/usr/bin/env -u A b", "#!/usr/bin/env A=1 b", "\0\0", "#!x")
    for number, first in enumerate(texts):
        program = _script(tmp_path / f"program{number}", first)
        assert _needs(program, str(tmp_path)) == ""
    (tmp_path / "round").symlink_to("round")
    os.mkfifo(tmp_path / "pipe")
    own = _script(tmp_path / "own", f"#!{tmp_path}/own")
    for program in (f"{tmp_path}/round", f"{tmp_path}/pipe", own, str(tmp_path)):
        assert _needs(program, str(tmp_path)) == ""


def test_nothing_is_looked_at_that_the_program_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may name a program may not have the right to read this machine."""
    secret = _script(tmp_path / "secret" / "program", "#!/a/secret")
    (tmp_path / "secret" / "link").symlink_to("/another/secret")
    for name in ("program", "link", "missing"):
        named = f"{tmp_path}/secret/{name}"
        assert _needs(named) == (
            f"the program {named!r} is not among what it may read: put {tmp_path}/secret in "
            "`readable`"
        )
    looked: list[str] = []
    real = os.lstat

    def told(path: str) -> os.stat_result:
        looked.append(path)
        return real(path)

    monkeypatch.setattr(os, "lstat", told)
    _needs(secret)
    assert not [path for path in looked if path.startswith(str(tmp_path))]
    _needs(secret, str(tmp_path))
    assert secret in looked


@pytest.mark.skipif(not interpreter(), reason="skipped: this Python is the system's own")
def test_a_python_without_its_library_is_told_so(tmp_path: Path) -> None:
    alone = Policy(readable=(f"{tmp_path}/python",), agreed={f"{tmp_path}/python": str(_PYTHON)})
    (tmp_path / "python").symlink_to(_PYTHON)
    with pytest.raises(RefusedRootError, match=f"put {interpreter()[0]} in `readable`"):
        check(f"{tmp_path}/python", mounts(alone), path=_PATH, folder="/")
    assert _needs(str(_PYTHON), *interpreter()) == ""


@pytest.mark.parametrize(
    ("program", "folder"),
    [
        ("/srv/app/.venv/bin/a-server", "/srv/app/.venv"),
        ("/home/ann/.pyenv/versions/3.12.1/bin/python3.12", "/home/ann/.pyenv/versions/3.12.1"),
        ("/home/ann/.nvm/versions/node/v22/bin/npx", "/home/ann/.nvm/versions/node/v22"),
        ("/srv/app/node_modules/.bin/a-server", "/srv/app/node_modules"),
        ("/opt/node/lib/node_modules/npm/bin/npx-cli.js", "/opt/node/lib/node_modules"),
        # No folder with more in it than the program is proposed.
        ("/home/ann/.local/bin/uvx", "/home/ann/.local/bin"),
        ("/home/ann/bin/tool", "/home/ann/bin"),
        ("/home/ann/tool", "/home/ann/tool"),
        ("/opt/tool", "/opt/tool"),
    ],
)
def test_the_folder_that_is_proposed_is_the_one_it_is_installed_in(
    program: str, folder: str
) -> None:
    assert installed_in(program) == folder


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (ModuleNotFoundError("no", name="pyseccomp"), "Python package pyseccomp is not installed"),
        (RuntimeError("Unable to find libseccomp"), "library libseccomp is not installed"),
        (OSError("libseccomp.so.2: cannot open"), "library libseccomp is not installed"),
    ],
)
def test_the_package_and_the_library_of_the_filter_are_told_apart(
    raised: Exception, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "pyseccomp":
                raise raised

    seccomp.program.cache_clear()
    monkeypatch.delitem(sys.modules, "pyseccomp", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(seccomp.NoFilterError, match=says):
        seccomp.program()
