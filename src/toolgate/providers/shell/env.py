"""The variables of a command: those that its definition names, and no other."""

import re
from collections.abc import Mapping
from typing import cast

from toolgate.providers.shell.template import Template, template

# Where programs are looked for: fixed, and never where the command runs.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Nothing of this process's own environment is handed on.
PLAIN: Mapping[str, str] = {
    "PATH": PATH,
    "HOME": "/tmp",  # noqa: S108  inside of the sandbox, where it is the program's own
    "LANG": "C.UTF-8",
    # Else Python would take modules from the folder that it runs in.
    "PYTHONSAFEPATH": "1",
    "PYTHONNOUSERSITE": "1",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
# What programs load code by, or find others by, has no end of names. None of them begins so.
_FOR_ARGUMENTS = "ARG_"


def secrets(given: object) -> dict[str, str]:
    """Read `{NAME: SECRET}`, or `ValueError`."""
    found = variables(given)
    for name, text in found.items():
        if not text.literal:
            raise ValueError(f"names no secret for {name}; write its name in the settings")
        if name in PLAIN:
            raise ValueError(f"fills {name} from a secret, by which programs are found or run")
    return {name: text.literal or "" for name, text in found.items()}


def variables(given: object) -> dict[str, Template]:
    """Read `{NAME: TEXT}`, or `ValueError`."""
    if not isinstance(given, dict):
        raise ValueError("is no object of names and texts")
    found: dict[str, Template] = {}
    for name, text in cast("dict[object, object]", given).items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise ValueError(f"names {str(name)[:60]!r}, which is no variable")
        if not isinstance(text, str):
            raise ValueError(f"gives {name} no text; put quotes around it")
        read = template(text)
        if read.names and not name.startswith(_FOR_ARGUMENTS):
            raise ValueError(
                f"fills {name} from an argument; by some variables programs load other code, so "
                f"only those called {_FOR_ARGUMENTS}… take one: write {_FOR_ARGUMENTS}{name}, or "
                "hand it over as a word or on stdin"
            )
        found[name] = read
    return found
