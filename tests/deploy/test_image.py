"""The image: its file has no known mistake, and its steps make a toolgate that works."""

import fnmatch
import os
import shutil
import site
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.deploy import dockerfile
from tests.deploy.linters import hadolint
from tests.deploy.test_compose import PARTS
from tests.server.serving import Serving
from tests.servers.fixtures import needed
from tests.servers.process import ROOT
from tests.thorough import IS_THOROUGH
from toolgate import __version__

MISTAKES = {
    "FROM python\nUSER 1\n": "DL3006",
    "FROM python:3.11-slim\nUSER 1\nRUN pip install toolgate\n": "DL3013",
    "FROM python:3.11-slim\nUSER root\n": "DL3002",
    "FROM python:3.11-slim\nUSER 1\nENTRYPOINT toolgate serve\n": "DL3025",
}


def test_the_dockerfile_has_no_known_mistake() -> None:
    assert needed(lambda: hadolint(dockerfile.TEXT)) == []


def test_mistakes_in_a_dockerfile_are_found() -> None:
    found = {text: needed(lambda text=text: hadolint(text)) for text in MISTAKES}
    assert all(code in found[text] for text, code in MISTAKES.items()), found


def test_the_image_runs_as_nobody_that_has_a_name_elsewhere() -> None:
    assert dockerfile.last("USER").rest == "10001:10001"
    assert "--uid 10001" in dockerfile.last("RUN").rest
    # Two stages: what builds is not what is shipped.
    assert len([step for step in dockerfile.STEPS if step.word == "FROM"]) == 2


def test_what_the_image_copies_is_there_and_nothing_else_is_sent() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    sent = [line[1:] for line in lines if line.startswith("!")]
    assert lines[1] == "*"
    assert {one.rstrip("/") for one in sent} == {one.rstrip("/") for one in dockerfile.copied()}
    assert all(list(ROOT.glob(one.rstrip("/"))) for one in sent)
    # Neither keys nor stores that somebody has here.
    kept = (".toolgate/toolgate.db", "deploy/secrets/toolgate.env", ".env", ".git/config")
    assert not any(fnmatch.fnmatch(name, one) for name in kept for one in sent)


def test_the_image_has_what_its_settings_need_and_each_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    # Of what the deployed settings use, all that can be left out of an installation.
    used = {"postgres", "redis", "spicedb", "kafka"} & {*project["optional-dependencies"]}
    assert used <= {*dockerfile.extras()}
    missing = [
        one for one in dockerfile.extras() if not (ROOT / "requirements" / f"{one}.txt").is_file()
    ]
    assert missing == []


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has below /opt/toolgate, made by its steps from what is sent to it.

    What it requires is what `make install` brought here; `make chaos` installs all of it anew.
    """
    folder = tmp_path_factory.mktemp("image")
    source, made = folder / "src", folder / "home"
    for name in dockerfile.copied():
        for one in ROOT.glob(name.rstrip("/")):
            to = source / one.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            if one.is_dir():
                shutil.copytree(one, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(one, to)
    dockerfile.run("python -m venv", source=source, home=made)
    if IS_THOROUGH:
        dockerfile.run("--require-hashes", source=source, home=made)
    else:
        [packages] = made.glob("lib/python*/site-packages")
        (packages / "required.pth").write_text("\n".join(site.getsitepackages()))
    dockerfile.run("--no-build-isolation", source=source, home=made)
    return made


@pytest.mark.timeout(3600 if IS_THOROUGH else 60)
def test_the_steps_install_all_of_toolgate(home: Path) -> None:
    own = ROOT / "src" / "toolgate"
    [installed] = home.glob("lib/python*/site-packages/toolgate")
    written = {one.relative_to(own) for one in own.rglob("*") if one.is_file()}
    missing = {one for one in written if one.suffix != ".pyc" and not (installed / one).is_file()}
    assert missing == set()
    said = subprocess.run(
        [home / "bin" / "toolgate", "--version"],
        cwd=home,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    assert __version__ in said.stdout


def test_the_image_is_healthy_while_its_server_answers(tmp_path: Path) -> None:
    told = [dockerfile.only("HEALTHCHECK").words, PARTS["toolgate"]["healthcheck"]["test"][1:]]
    assert [test[0] for test in told] == ["python", "python"]
    with Serving(tmp_path) as server:
        port = str(server.port)
        tests = [
            [sys.executable, *(word.replace("8700", port) for word in test[1:])] for test in told
        ]
        assert [subprocess.run(test, check=False).returncode for test in tests] == [0, 0]
    ended = [subprocess.run(test, check=False, stderr=subprocess.DEVNULL) for test in tests]
    assert all(one.returncode for one in ended)
