"""Extensions that could not do what they were written for."""

import difflib
from typing import Any, cast

from toolgate.executor.extension import Extension

HOOKS = ("before", "after", "failed")


def mistake(extension: object) -> str | None:
    """Why an extension cannot stand in the chain, and what to write instead; or `None`."""
    if isinstance(extension, type):
        return f"{extension.__name__} is a class. Pass an instance: {extension.__name__}()."
    label = type(extension).__name__
    if not isinstance(extension, Extension):
        return f"a {label} is not an extension. Subclass toolgate.Extension."
    priority = cast("Any", extension.priority)
    if not isinstance(priority, int) or isinstance(priority, bool):
        return f"{label}.priority is {priority!r:.60}. Write a number, or Priority.HIGH."
    hooks = [name for name in HOOKS if getattr(extension, name, None) is not None]
    for name in hooks:
        if not callable(getattr(extension, name)):
            return f"{label}.{name} cannot be called. Write def {name}(self, call, …)."
    if hooks or type(extension).link is not Extension.link or "link" in vars(extension):
        return None
    return f"{label} has no hook and would do nothing. {_nearest(extension)}"


def _nearest(extension: Extension) -> str:
    for name in sorted(set(dir(extension)) - set(dir(Extension))):
        close = difflib.get_close_matches(name, HOOKS, n=1)
        if close:
            return f"Did you mean {close[0]} where it has {name}?"
    return f"Define one of: {', '.join(HOOKS)}."
