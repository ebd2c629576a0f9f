"""Whether a command would run what an argument says: then it is a shell, whatever it is called.

Words come as `Argv.shapes` has them: where an argument has a part in one, it holds a `PLACE`.
"""

import re
from collections.abc import Iterator, Sequence

from toolgate.providers.shell.programs import INTERPRETERS, LOADS, PROGRAMS, Rule

# No text of a command holds a NUL, so that these cannot be written.
PLACE = "\0"
# An argument that may begin with a dash, and so be an option.
FREE = "\0-"
# An argument that is read on the standard input, behind all words.
STDIN = "\0<"

_CODE = re.compile(
    r"-[A-Za-z]*[ceEpr]\Z|--?(?:eval|command|execute|expression|print|source|cmd)\Z",
    re.IGNORECASE,
)
_VERSION = re.compile(r"[-0-9.]+\Z")
_SETS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_ENDS = frozenset({";", "+"})


def runs_arguments(words: Sequence[str]) -> bool:
    """Whether an argument would be run as code, as far as the program is known."""
    program, rest = _name(words[0]), words[1:]
    if not any(PLACE in word for word in rest):
        return PLACE in words[0]
    if program in INTERPRETERS and _interpreted(rest, LOADS.get(program, frozenset())):
        return True
    rule = PROGRAMS.get(program)
    return PLACE in words[0] or (rule is not None and _ruled(rest, rule))


def _interpreted(rest: Sequence[str], loads: frozenset[str]) -> bool:
    """Until its code stands fast, an argument would choose it."""
    is_value = False
    is_fast = False
    for word, value in zip(rest, (*rest[1:], STDIN), strict=True):
        is_code = _CODE.match(word) and value != STDIN
        if is_code and PLACE in value:
            return True
        if is_fast:
            continue
        if PLACE in word:
            return True
        if is_value or word in loads:
            is_value = not is_value
            continue
        is_fast = not word.startswith("-") or bool(is_code)
    return False


def _ruled(rest: Sequence[str], rule: Rule) -> bool:
    if rule.every or (rule.listens and rest[-1] == STDIN):
        return True
    if _in_option(rest, rule) or _behind(rest, rule):
        return True
    if not (rule.leads or rule.picks or rule.verbs):
        return False
    return any(PLACE in rest[at] or _found(rest, at, rule) for at in _first(rest, rule))


def _found(rest: Sequence[str], at: int, rule: Rule) -> bool:
    """Whether an argument is run where the first free word stands here."""
    behind = rest[at + 1 :]
    if not any(PLACE in word for word in behind):
        return False
    if rule.verbs:
        verb = rule.verbs.get(rest[at])
        return verb is not None and _ruled(behind, verb)
    if rule.picks:
        return False
    return _led(behind, rule.skips - 1) if rule.skips else runs_arguments(rest[at:])


def _led(rest: Sequence[str], skips: int) -> bool:
    return _ruled(rest, Rule(leads=True, skips=skips))


def _in_option(rest: Sequence[str], rule: Rule) -> bool:
    """The value of an option that is run: its next word, or what is written onto it."""
    for at, word in enumerate(rest):
        if word == FREE and (rule.code or rule.behind):
            return True
        if PLACE in word:
            if word[:2] in rule.code or word.split("=", 1)[0] in rule.code:
                return True
        elif word in rule.code and PLACE in "".join(rest[at + 1 : at + 2]):
            return True
        elif word == "--" or (rule.leads and not word.startswith("-")):
            # From here on words belong to another program, or are none of its options.
            return False
    return False


def _behind(rest: Sequence[str], rule: Rule) -> bool:
    """A command among the words, as find has it behind `-exec`."""
    for at, word in enumerate(rest):
        if word not in rule.behind:
            continue
        there = rest[at + 1 :]
        end = next((place for place, one in enumerate(there) if one in _ENDS), len(there))
        if there[:end] and runs_arguments(there[:end]):
            return True
    return False


def _first(rest: Sequence[str], rule: Rule) -> Iterator[int]:
    """Where its first free word can stand; the last of them is it, or an argument that may be."""
    before = ""
    for at, word in enumerate(rest):
        # What may belong to an option is the program in another reading: both have to hold.
        is_value = before.startswith("-") and before != "--"
        if before in rule.takes or ("=" in word and word.split("=", 1)[0] in rule.takes):
            before = ""
            continue
        is_own = word.startswith("-") or (not rule.verbs and _is_figure(word))
        if PLACE in word or not is_own:
            yield at
            if PLACE in word or not is_value:
                return
        before = "" if word in rule.bare or "=" in word else word


def _is_figure(word: str) -> bool:
    return word[:1].isdigit() or _SETS.match(word) is not None


def _name(word: str) -> str:
    """`/usr/bin/python3.11` is python, and `cowsay@1.2` cowsay."""
    base = word.rsplit("/", 1)[-1].lower().removesuffix(".exe")
    base = base.split("@", 1)[0] or base
    if base in INTERPRETERS or base in PROGRAMS:
        return base
    return _VERSION.sub("", base)
