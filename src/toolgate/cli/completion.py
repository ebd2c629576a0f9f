"""What a shell is told when somebody presses Tab: the names of tools, as far as files know them."""

import os
from collections.abc import Iterator

from toolgate.cli.far import URL
from toolgate.cli.session import load
from toolgate.errors import ToolgateError
from toolgate.settings.settings import Settings
from toolgate.sources.files import read_file
from toolgate.tools.table import default_catalog

_MOST = 1_000


def tool_names(incomplete: str) -> list[str]:
    """Those that begin so. No store is opened, and no server asked: who waits for Tab waits."""
    if os.environ.get(URL):
        return []
    try:
        settings = load(None)
    except ToolgateError:
        return []
    found = sorted({name for name in _names(settings) if name.startswith(incomplete)})
    return found[:_MOST]


def _names(settings: Settings) -> Iterator[str]:
    for seed in default_catalog():
        yield str(seed.definition["name"])
    for glob in settings.tools.files:
        for path in settings.root.glob(glob):
            try:
                yield from (spec.name for spec in read_file(path, path.name))
            except ToolgateError:
                continue
