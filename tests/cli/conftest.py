"""A command line in a folder of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from toolgate.cli.main import app

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    return invoke


def as_json(result: Result) -> Any:
    return orjson.loads(result.stdout)


def write_tools(folder: Path, text: str, *, name: str = "mine.yaml") -> None:
    (folder / "tools").mkdir(exist_ok=True)
    (folder / "tools" / name).write_text(text, "utf-8")
