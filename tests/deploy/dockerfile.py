"""The Dockerfile as a list of instructions, and its steps run here without an engine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.servers.process import ROOT

TEXT = (ROOT / "Dockerfile").read_text("utf-8")
# Where the image keeps the environment that it installs.
HOME = "/opt/toolgate"


class Step(NamedTuple):
    word: str
    rest: str

    @property
    def words(self) -> list[str]:
        """Of one that is written as a list."""
        return json.loads(self.rest[self.rest.index("[") :])


def _steps() -> list[Step]:
    whole = re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in whole.splitlines() if line.strip()]
    return [Step(word, rest) for word, rest in lines]


STEPS = _steps()


def only(word: str) -> Step:
    [found] = [step for step in STEPS if step.word == word]
    return found


def last(word: str) -> Step:
    return [step for step in STEPS if step.word == word][-1]


def extras() -> list[str]:
    """What the image has beside the core."""
    [found] = [step.rest for step in STEPS if step.rest.startswith("EXTRAS=")]
    return found.removeprefix("EXTRAS=").strip('"').split()


def copied() -> list[str]:
    """What the image takes from this folder."""
    own = [step.rest.split()[:-1] for step in STEPS if step.word == "COPY"]
    return [name for names in own if not names[0].startswith("--from") for name in names]


def run(containing: str, *, source: Path, home: Path) -> None:
    """One of its steps, with another folder in the place of the image's."""
    [step] = [step for step in STEPS if step.word == "RUN" and containing in step.rest]
    tools = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["/bin/sh", "-c", step.rest.replace(HOME, str(home))],
        cwd=source,
        env={
            **os.environ,
            "PATH": os.pathsep.join([tools, os.environ["PATH"]]),
            "EXTRAS": " ".join(extras()),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            # The image compiles what it installs; here it is looked at once.
            "PIP_NO_COMPILE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
