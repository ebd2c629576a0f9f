"""Paths as a model writes them: which are one of ours, and what to write instead of the others."""

import re
from urllib.parse import unquote

from toolgate.errors import ToolError

_LONGEST = 4_000
_LONGEST_NAME = 255
_DEEPEST = 64
_ENCODED = re.compile(r"%(2e|2f|5c|00|25|c0|c1|e0|f0|f8|fc|u[0-9a-f]{4})", re.IGNORECASE)
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:){1,4}/|[A-Za-z]:([\\/]|\Z)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
# Characters that look like the ones that separate folders, and are made into them by others.
_LOOKALIKES = frozenset("\u2215\u2044\uff0f\uff3c\u29f5\u2216\ufe68\uff0e\u2024\ufe52")


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a path, without those that say nothing; `ToolError` where it may lead out."""
    if "\0" in path or _CONTROL.search(path):
        raise ToolError("A path has no control characters. Write it as list_directory shows it.")
    if len(path) > _LONGEST or not is_text(path):
        raise ToolError(
            f"A path is a text of at most {_LONGEST:,} characters. Write a shorter one."
        )
    if path.startswith(("/", "\\")) or _SCHEME.match(path):
        raise ToolError(
            "An absolute path is not taken. Write the path from the root folder on, such as "
            "notes/today.md; list_directory shows what is there."
        )
    if path.startswith("~"):
        raise ToolError("There is no home folder here. Write the path from the root folder on.")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    for part in parts:
        _check(part)
    if len(parts) > _DEEPEST:
        raise ToolError(f"A path has at most {_DEEPEST} folders. Write a shorter one.")
    return parts


def check_new(name: str) -> None:
    """`ToolError` where a name is not to be given to anything: others read it as something else."""
    if "\\" in name:
        raise ToolError("A name has no backslash. Separate folders by '/'.")
    if name != name.strip() or name.endswith("."):
        raise ToolError("A name does not begin or end with a space, nor end with a dot. Rename it.")
    if _DEVICE.fullmatch(name):
        raise ToolError("That name is a device on some systems. Take another one.")
    if set(name) & _LOOKALIKES:
        raise ToolError("A name has no characters that only look like '/' or '.'. Rename it.")
    if _ENCODED.search(name) or "0x2e" in name.lower() or "0x2f" in name.lower():
        raise ToolError("A name is written as it is, not percent-encoded. Decode it first.")


def is_text(text: str) -> bool:
    """Whether it can be written as UTF-8 at all."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check(part: str) -> None:
    if len(part.encode()) > _LONGEST_NAME:
        raise ToolError(f"A name has at most {_LONGEST_NAME} bytes. Write a shorter one.")
    if _leads_up(part):
        raise ToolError(
            "A path does not lead up: '..' is not taken, however it is written. Write the path "
            "from the root folder on."
        )


def _leads_up(part: str) -> bool:
    """Also where somebody decodes it first, or takes a backslash for what separates folders."""
    for _ in range(3):
        plain = part.replace("\\", "/").split("/")
        if any(one.strip() == ".." or (len(one) > 2 and set(one) == {"."}) for one in plain):
            return True
        decoded = unquote(part, errors="replace")
        if decoded == part:
            return False
        part = decoded
    return False
