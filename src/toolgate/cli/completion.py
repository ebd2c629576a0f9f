"""What a shell is told when somebody presses Tab: the names of tools, as far as files know them."""

import os

from toolgate.cli.far import URL
from toolgate.cli.session import load
from toolgate.errors import ToolgateError
from toolgate.toolfiles import names_in_files

_MOST = 1_000


def tool_names(incomplete: str) -> list[str]:
    """Those that begin so. No store is opened, and no server asked: who waits for Tab waits."""
    if os.environ.get(URL):
        return []
    try:
        known = names_in_files(load(None))
    except ToolgateError:
        return []
    return sorted(name for name in known if name.startswith(incomplete))[:_MOST]
