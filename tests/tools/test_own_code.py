"""No tool changes the code that toolgate itself runs, though a root holds it."""

import os
import sys
from pathlib import Path

import pytest

from tests.house import ME
from toolgate import Toolgate
from toolgate.settings.execution import Approvals
from toolgate.settings.settings import FOLDER, Settings, Tools
from toolgate.tools.code.interpreter import own_code


def test_our_own_code_is_where_this_python_finds_it() -> None:
    package = os.path.realpath(Path(sys.modules["toolgate"].__file__ or "").parent)
    assert package in own_code()
    assert sys.prefix == sys.base_prefix or os.path.realpath(sys.prefix) in own_code()


@pytest.mark.req("T4")
@pytest.mark.parametrize("is_ours", [True, False])
async def test_our_own_code_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_ours: bool
) -> None:
    own = tmp_path / FOLDER / "own"
    own.mkdir(parents=True)
    monkeypatch.setattr("toolgate.premises.own_code", lambda: (str(own),) if is_ours else ())
    tools = Tools(builtin=("write_file", "restore_file"))
    settings = Settings(root=tmp_path, tools=tools, approvals=Approvals(mode="never"))
    async with Toolgate.open(settings) as gate:
        beside = await gate.call("write_file", {"path": "a.txt", "content": "x"}, caller=ME)
        inside = await gate.call("write_file", {"path": "own/a.pth", "content": "x"}, caller=ME)
    assert beside.ok
    assert inside.ok is not is_ours
    assert (own / "a.pth").exists() is not is_ours
