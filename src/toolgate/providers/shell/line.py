"""A command line as its words, the way a POSIX shell splits it, and nothing else that a shell does.

What a shell would have to carry out (a pipe, a variable, a glob) is refused, with what to write.
"""

_BREAKS = " \t\r"
_QUOTES = "'\""
# What means something to a shell outside of quotes, and what to write instead.
_INSTEAD = {
    "|": "one tool runs one program: put the pipe into a script, and name that",
    "&": "one tool runs one program: put the others into a script, and name that",
    ";": "one tool runs one program: put the others into a script, and name that",
    "\n": "write it in one line; one tool runs one program",
    "<": "write stdin: TEXT beside it",
    ">": "its output is the tool's result; leave it out",
    "(": "put it in single quotes if it is meant as it stands",
    ")": "put it in single quotes if it is meant as it stands",
    "$": "no variable is filled in: write its value, or {NAME} for an argument",
    "`": "no command is filled in: write its value, or {NAME} for an argument",
    "*": "no file names are filled in: put it in single quotes, or take a list as {NAME...}",
    "?": "no file names are filled in: put it in single quotes, or take a list as {NAME...}",
    "[": "no file names are filled in: put it in single quotes, or take a list as {NAME...}",
    "]": "put it in single quotes if it is meant as it stands",
}
# What means something only where a word begins.
_AT_START = {
    "~": "no home folder is filled in: write the whole path",
    "#": "there are no comments in a command: leave it out",
    "!": "put it in single quotes if it is meant as it stands",
}


def words(line: str) -> list[str]:
    """Its words without their quotes, or `ValueError` that says what to write."""
    found: list[str] = []
    # `None` between words: an empty pair of quotes is a word too.
    word: str | None = None
    at = 0
    while at < len(line):
        char = line[at]
        if char in _BREAKS:
            if word is not None:
                found.append(word)
            word, at = None, at + 1
        elif char in _QUOTES:
            text, at = _quoted(line, at)
            word = (word or "") + text
        elif char == "\\":
            if at + 1 == len(line) or line[at + 1] == "\n":
                raise ValueError("ends in a backslash; leave it out")
            word, at = (word or "") + line[at + 1], at + 2
        else:
            _refuse(char, is_first=word is None)
            word, at = (word or "") + char, at + 1
    if word is not None:
        found.append(word)
    if found and "=" in found[0]:
        raise ValueError("sets a variable before its program; write env: {NAME: VALUE} beside it")
    return found


def _refuse(char: str, *, is_first: bool) -> None:
    instead = _INSTEAD.get(char) or (_AT_START.get(char) if is_first else None)
    if instead is not None:
        raise ValueError(f"holds {char!r} outside of quotes, and no shell reads it; {instead}")


def _quoted(line: str, at: int) -> tuple[str, int]:
    """What stands in the quotes that begin here, and where they have ended."""
    quote, at, text = line[at], at + 1, ""
    while at < len(line):
        char = line[at]
        if char == quote:
            return text, at + 1
        if quote == '"' and char in "$`":
            raise ValueError(
                f"holds {char!r} in double quotes, which a shell would fill in; use single quotes"
            )
        if quote == '"' and char == "\\" and line[at + 1 : at + 2] in ("\\", '"', "$", "`"):
            char, at = line[at + 1], at + 1
        text, at = text + char, at + 1
    raise ValueError(f"opens {quote} and never closes it")
