"""Checks a file or a text: Python with ruff, JSON, YAML and TOML with their parsers."""

import posixpath
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.code.lint import Rules, linted
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded

_SUFFIXES = {
    ".py": "python",
    ".pyi": "python",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
}
_MOST = 1_000_000


async def lint_code(
    means: Means,
    _call: Call,
    *,
    path: str | None = None,
    code: str | None = None,
    language: str = "auto",
) -> dict[str, Any]:
    """What is wrong with it, line by line."""
    if (path is None) == (code is None):
        raise ToolError("Give either `path` or `code`: the file to check, or its text.")
    if language == "auto":
        language = _language(path)
    if code is None:
        raw = await threaded(Roots.of(means).read, path or "", most=_MOST)
        try:
            code = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ToolError(f"{path!r} is not text in UTF-8, so it cannot be checked.") from None
    # A stub is checked by other rules than code.
    name = "code.pyi" if (path or "").endswith(".pyi") else "code.py"
    found = await linted(means.workers, language, code, rules=Rules(), name=name)
    return {"path": path, **found}


def _language(path: str | None) -> str:
    suffix = posixpath.splitext(path or "")[1].lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if path is None:
        raise ToolError("Say in `language` what the code is: python, json, yaml or toml.")
    raise ToolError(
        f"{path!r} is of no kind that is checked here, which are {', '.join(sorted(_SUFFIXES))}. "
        "Say in `language` what it is: python, json, yaml or toml."
    )
