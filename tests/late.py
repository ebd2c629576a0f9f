"""Modules that are imported once a test uses them: it takes longer than finding every test."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


def needs(package: str, reason: str) -> None:
    """Skip the module where the package is absent; it is looked for and not imported."""
    if find_spec(package) is None:
        pytest.skip(reason, allow_module_level=True)


class Late:
    """A module, imported when it is first asked for something."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        # These pytest asks of everything that it finds.
        if name.startswith("__") or name == "_mock_name":
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
