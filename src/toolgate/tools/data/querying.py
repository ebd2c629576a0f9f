"""JMESPath over JSON text: what a query finds, or where it is wrong."""

import gc
from functools import lru_cache
from typing import Any, cast

from jmespath.exceptions import (
    ArityError,
    JMESPathError,
    JMESPathTypeError,
    LexerError,
    ParseError,
)
from jmespath.parser import Parser

from toolgate.errors import ToolError
from toolgate.tools.data.budget import Budget, OverspentError
from toolgate.tools.data.compiling import Compiler, Step
from toolgate.tools.data.given import count, read

# Work where nothing else may wait, and work in a process of its own.
SHORT, LONG = 50_000, 20_000_000
_LARGEST = 4_000_000


def search(text: str, query: str) -> Any:
    """What the query finds in this text, by a worker: with as much work as there is time for."""
    # A large value is many objects at once, none of which is garbage yet.
    gc.disable()
    try:
        return found(text, query, LONG)
    except OverspentError:
        raise ToolError(
            f"The query takes more than {LONG:,} steps, or its result gets too large. Filter "
            "earlier, or query a part of the data."
        ) from None
    finally:
        gc.enable()


def found(text: str, query: str, most: int) -> Any:
    """The same with less work; `OverspentError` where it takes more."""
    value = read(text)
    budget = Budget(most)
    try:
        step, copies = _compiled(query, budget)
        result = step(value)
        if copies and count(result, room := min(budget.left, _LARGEST)) > room:
            raise OverspentError
    except JMESPathError as error:
        raise ToolError(_told(error, query)) from None
    except RecursionError:
        raise ToolError("The query or the data is nested too deep. Simplify it.") from None
    return result


def _compiled(query: str, budget: Budget) -> tuple[Step, bool]:
    compiler = Compiler(budget)
    return compiler.step(_tree(query)), compiler.copies


@lru_cache(maxsize=256)
def _tree(query: str) -> dict[str, Any]:
    return cast("dict[str, Any]", Parser().parse(query).parsed)


def _told(error: JMESPathError, query: str) -> str:
    if isinstance(error, JMESPathTypeError):
        wanted = " or ".join(str(one).replace("-", " of ") for one in error.expected_types)
        return (
            f"{error.function_name}() takes {wanted}, and was given {error.actual_type}. Filter "
            "the others out first, such as with [?field != null]."
        )
    if isinstance(error, ArityError):
        return (
            f"{error.function_name}() takes {error.expected_arity} arguments, and was given "
            f"{error.actual_arity}."
        )
    at = len(query)
    if isinstance(error, LexerError):
        at = error.lexer_position
    elif isinstance(error, ParseError):
        at = error.lex_position
    what = "it ends too early" if at >= len(query) else f"{query[at : at + 12]!r} is not expected"
    return f"The query is not JMESPath: column {at + 1}: {what}.{_hint(query)}"


def _hint(query: str) -> str:
    if query.lstrip().startswith("$"):
        return " This looks like JSONPath: leave out the leading $. and write a.b[0].c, a[*].b."
    if query.lstrip().startswith("."):
        return " This looks like jq: leave out the leading dot and write a.b[0].c, a[].b."
    if "==" in query or "<" in query or ">" in query:
        return " Literals are written as 'text' or `5`, filters as items[?price > `5`].name."
    return " Write a.b[0], items[*].name, items[?price > `5`].name or sort_by(items, &price)."
