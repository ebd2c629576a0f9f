"""Whether a command would run what an argument says: then it is a shell, whatever it is called."""

import re
from collections.abc import Sequence

from toolgate.providers.shell.programs import INTERPRETERS, JOINERS, WRAPPERS

_CODE = re.compile(
    r"-[A-Za-z]*[ceEpr]\Z|--?(?:eval|command|execute|expression|print|source|cmd)\Z",
    re.IGNORECASE,
)
_VERSION = re.compile(r"[-0-9.]+\Z")
_SETS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def runs_arguments(words: Sequence[str | None]) -> bool:
    """Whether an argument (`None`) would be run as code, as far as the program is known."""
    program = _name(words[0])
    rest = words[1:]
    if None not in rest:
        return False
    if program in JOINERS:
        return True
    if program in INTERPRETERS:
        return _interpreted(rest)
    return program in WRAPPERS and _wrapped(rest)


def _interpreted(rest: Sequence[str | None]) -> bool:
    """Until its code stands fast, an argument would choose it."""
    for at, word in enumerate(rest):
        if word is not None and _CODE.match(word) and None in rest[at + 1 : at + 2]:
            return True
    for at, word in enumerate(rest):
        if word is None:
            return True
        if not word.startswith("-") or (_CODE.match(word) and rest[at + 1 : at + 2]):
            return False
    return False


def _wrapped(rest: Sequence[str | None]) -> bool:
    """The program behind it stands fast, and is no shell for its own arguments either."""
    before = ""
    for at, word in enumerate(rest):
        if word is None:
            return True
        name = _name(word)
        if name in JOINERS or name in INTERPRETERS or name in WRAPPERS:
            return runs_arguments(rest[at:])
        # A figure, and what may belong to an option of the wrapper, is no program yet.
        is_own = word.startswith("-") or word[:1].isdigit() or _SETS.match(word)
        if not is_own and not before.startswith("-"):
            return False
        before = word
    return False


def _name(word: str | None) -> str:
    """`/usr/bin/python3.11` is python."""
    base = (word or "").rsplit("/", 1)[-1].lower().removesuffix(".exe")
    return base if base in INTERPRETERS else _VERSION.sub("", base)
