"""A house for all tools: files to read, servers to ask, and nobody who has to agree."""

import importlib
import pkgutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.tools import around
from toolgate import Toolgate
from toolgate.settings.settings import Settings


class Ground(NamedTuple):
    """What a house stands on, and what `${name}` means in cases.

    A word that is an address is one of the world's, which a server of the tests stands for.
    """

    settings: Settings
    words: dict[str, str]

    def args(self, args: Any) -> Any:
        """Arguments as they are called with here."""
        return _filled(args, self.words)

    def shown(self, text: str) -> str:
        """With the world's addresses, as readers know them."""
        for name, word in self.words.items():
            if "://" in name:
                text = text.replace(word, name)
                text = text.replace(word.split("://")[1], name.split("://")[1])
        return text.replace(str(self.settings.root), "")


class Surroundings(NamedTuple):
    """A house on its ground."""

    gate: Toolgate
    ground: Ground


@asynccontextmanager
async def ground(root: Path) -> AsyncGenerator[Ground]:
    """Every module of `around` has a `prepare` that may add files, settings and servers."""
    settings: dict[str, Any] = {
        "root": root,
        "approvals": {"mode": "never"},
        "tools": {"roots": ["files"]},
        "toolbox": {"default_timeout": 60.0},
    }
    (root / "files").mkdir()
    words: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for found in pkgutil.iter_modules(around.__path__):
            module = importlib.import_module(f"{around.__name__}.{found.name}")
            words |= await module.prepare(root, settings, stack)
        yield Ground(Settings.model_validate(settings), words)


@asynccontextmanager
async def surroundings(root: Path) -> AsyncGenerator[Surroundings]:
    """A house, open."""
    async with ground(root) as found, Toolgate.open(found.settings) as gate:
        yield Surroundings(gate, found)


def _filled(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(name if "://" in name else "${" + name + "}", word)
        return value
    if isinstance(value, list):
        return [_filled(one, words) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _filled(one, words) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
