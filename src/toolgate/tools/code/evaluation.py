"""Python that only computes, evaluated by Monty: an interpreter of its own, in its own process.

This runs in a worker of ours, which hands the code on to Monty's process and never runs it. Monty's
process is kept warm for one tenant; another tenant gets a new one.
"""

import contextlib
import math
import re
from typing import TYPE_CHECKING, Any, cast

from toolgate.errors import ToolError

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError

SECONDS = 1.0
_MEMORY = 64 * 1024 * 1024
_DEEPEST_CALL = 200
_PRINTED = 100_000
_SHOWN = 10_000
_LONGEST = 400
# What JSON has no other word for is told in the note.
_DEEPEST = 50
_INTEGERS = (-(2**63), 2**64)
_LARGEST = 100_000
_ELSEWHERE = "Use code_execute for what needs all of Python."
# Kinds of errors that say that something is not there, and not that the code is wrong.
_LACKING = (NotImplementedError, ImportError, PermissionError)
# How Monty shows what it cannot hand over, and how Python would.
_PROXIES = (
    (re.compile(r"MontyClassTypeProxy\(name='(\w+)', attributes=\{\}\)"), r"<class '\1'>"),
    (re.compile(r"MontyClassTypeProxy\(name='(\w+)', attributes="), r"<class '\1'>("),
    (re.compile(r"MontyClassProxy\(name='(\w+)', attributes=\{\}\)"), r"<\1 object>"),
    (re.compile(r"MontyClassProxy\(name='(\w+)', attributes="), r"\1("),
    (re.compile(r"MontyStdTypeProxy\(kind='(\w+)', name='([\w.]+)'\)"), r"<\1 \2>"),
)
# Which of a proxy's attributes says its kind, and the kind of one that has none.
_NAMED_BY = {"MontyClassProxy": "name", "MontyStdTypeProxy": "kind"}
_TYPES = {"MontyClassTypeProxy": "type"}


class _Warm:
    """Monty's process, and whose it is."""

    def __init__(self) -> None:
        self._tenant: str | None = None
        self._pool: Monty | None = None

    def of(self, tenant: str) -> "Monty":
        if self._pool is None or self._tenant != tenant:
            self.end()
            # Deferred: only a worker of ours has it.
            from pydantic_monty import Monty  # noqa: PLC0415

            pool = Monty(max_processes=1, request_timeout=2 * SECONDS)
            self._pool, self._tenant = pool.__enter__(), tenant
        return self._pool

    def end(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(Exception):
                pool.__exit__(None, None, None)


_warm = _Warm()


def evaluated(*, tenant: str, expression: str, variables: dict[str, Any]) -> dict[str, Any]:
    """The value of the last expression, and what was printed."""
    from pydantic_monty import CollectString, MontyError  # noqa: PLC0415  as above

    printed = CollectString(_PRINTED)
    try:
        with _warm.of(tenant).checkout(
            script_name="expression",
            limits={
                "max_feed_duration_secs": SECONDS,
                "max_turn_duration_secs": SECONDS,
                "max_memory": _MEMORY,
                "max_recursion_depth": _DEEPEST_CALL,
                "max_suspensions": 1,
                "max_total_sleep_secs": 0,
            },
            os_policy={"sleep": "zero"},
        ) as session:
            value = session.feed_run(expression, inputs=variables, print_callback=printed)
            return _told(value, printed.output)
    except MontyError as error:
        raise ToolError(_reason(error)) from None
    except RecursionError:
        raise ToolError("The value is nested too deeply to be shown. Give a part of it.") from None
    except ValueError:
        # Python writes no longer ones: that takes the square of their length.
        raise ToolError(
            "The value holds an integer of more than 4,300 digits, which is not written out. Give "
            "a part of it, such as x % 10**9."
        ) from None


def _told(value: Any, printed: str) -> dict[str, Any]:
    odd: set[str] = set()
    shown = _repr(value)
    told = {
        "value": _plain(value, odd, 0),
        "type": _kind(value),
        "text": shown[:_SHOWN],
        "output": printed,
    }
    if len(shown) > _LARGEST:
        odd.add(f"nothing, for it is too large; `text` has the first {_SHOWN:,} characters")
        told["value"] = None
    if odd:
        told["note"] = "In `value`: " + "; ".join(sorted(odd)) + "."
    return told


def _repr(value: Any) -> str:
    """As Python would show it: what stands for a thing of the interpreter's is told as that."""
    shown = repr(value)
    if "Proxy(" in shown:
        for proxy, own in _PROXIES:
            shown = proxy.sub(own, shown)
    return shown


def _kind(value: Any) -> str:
    # A class of the code's own is told by its own name.
    proxy = type(value).__name__
    name = getattr(value, _NAMED_BY.get(proxy, ""), _TYPES.get(proxy))
    return name if isinstance(name, str) else proxy


def _plain(value: Any, odd: set[str], depth: int) -> Any:
    """As JSON, as far as there is any for it."""
    if depth > _DEEPEST:
        odd.add("what lies too deep is null")
        return None
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return _number(value, odd)
        case list() | tuple():
            return [_plain(one, odd, depth + 1) for one in cast("list[Any]", value)]
        case set() | frozenset():
            odd.add("a set is a list")
            members = cast("set[Any]", value)
            return [_plain(one, odd, depth + 1) for one in sorted(members, key=repr)]
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            if any(not isinstance(key, str) for key, _ in pairs):
                odd.add("keys that are no texts are written as texts")
            return {
                key if isinstance(key, str) else repr(key): _plain(one, odd, depth + 1)
                for key, one in pairs
            }
        case _:
            odd.add(f"what is of the type {_kind(value)} is null, and shown in `text`")
            return None


def _number(value: float, odd: set[str]) -> float | None:
    if isinstance(value, int):
        if _INTEGERS[0] <= value < _INTEGERS[1]:
            return value
        odd.add("an integer of more than 64 bits is null, and whole in `text`")
    elif math.isfinite(value):
        return value
    else:
        odd.add("what is no finite number is null, and shown in `text`")
    return None


def _reason(error: "MontyError") -> str:
    """What is wrong, where, and what to do about it."""
    from pydantic_monty import MontyCrashedError, MontySyntaxError  # noqa: PLC0415  as above

    if isinstance(error, MontyCrashedError):
        return "The interpreter gave up on it. Ask for less, or use code_execute."
    kind = error.exception()
    said = str(error).removeprefix(f"{type(kind).__name__}: ")[:_LONGEST]
    if isinstance(kind, TimeoutError):
        return f"It was not done in {SECONDS:g} second. Ask for less, or use code_execute."
    if isinstance(kind, MemoryError):
        return f"It takes more than {_MEMORY >> 20} MB, or prints too much. Ask for less."
    if isinstance(kind, _LACKING) or "not supported in this environment" in said:
        return (
            f"python_eval cannot do that: {said}. It computes with the basics of Python, without "
            f"files, network and packages. {_ELSEWHERE}"
        )
    what = "This is no Python" if isinstance(error, MontySyntaxError) else type(kind).__name__
    if isinstance(kind, (NameError, AttributeError, TypeError, RuntimeError)):
        more = "Not all of Python is here: code_execute has the rest."
        return f"{what}{_where(error)}: {said}. Correct the expression. {more}"
    return f"{what}{_where(error)}: {said}. Correct the expression."


def _where(error: Any) -> str:
    # One that came up before anything ran has no place.
    frames = error.traceback() if hasattr(error, "traceback") else ()
    return f" in line {frames[-1].line}" if frames else ""
