"""The names that programs may import: few, frozen, and each where it says it is."""

import importlib
import subprocess
import sys

import pytest
from inline_snapshot import snapshot

import toolgate


@pytest.mark.req("V2")
def test_the_public_names_are_these_and_at_most_fifteen() -> None:
    assert toolgate.__all__ == snapshot(
        [
            "Call",
            "CallRefused",
            "Caller",
            "Context",
            "Extension",
            "Output",
            "Priority",
            "Question",
            "ToolError",
            "ToolSpec",
            "Toolgate",
            "ToolgateError",
            "Turn",
            "tool",
        ]
    )
    assert len(toolgate.__all__) <= 15


def test_every_public_name_comes_from_the_room_that_defines_it() -> None:
    homes = toolgate._HOMES  # pyright: ignore[reportPrivateUsage]
    assert sorted(homes) == sorted(toolgate.__all__)
    for name, home in homes.items():
        assert getattr(toolgate, name) is getattr(importlib.import_module(home), name)
        assert getattr(toolgate, name).__module__ == home


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = toolgate.Nothing


def test_importing_toolgate_loads_no_driver_and_no_server() -> None:
    told = "import sys, toolgate; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"sqlalchemy", "alembic", "uvicorn", "aiohttp", "pydantic"} & set(loaded)
