"""The secrets of the compose file, made by its own script in a folder of the test's."""

import shutil
import subprocess
from pathlib import Path

from tests.deploy.linters import DEPLOY


def made(root: Path) -> dict[str, dict[str, str]]:
    """The variables of each file; those that are there are read as they are."""
    place = root / "deploy"
    place.mkdir(exist_ok=True)
    shutil.copy(DEPLOY / "secrets.sh", place)
    subprocess.run(["sh", place / "secrets.sh"], check=True, capture_output=True)
    return {file.stem: _variables(file) for file in sorted((place / "secrets").iterdir())}


def _variables(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8").splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}
