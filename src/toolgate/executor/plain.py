"""What a Python function gives, as plain JSON, at whose end nothing of it still runs."""

from collections.abc import Coroutine
from typing import Any

import orjson

from toolgate.call import Call
from toolgate.errors import InvalidOutput
from toolgate.executor.resilience.attended import attended
from toolgate.spec.document import NON_FINITE, has_non_finite

_ALREADY_JSON = frozenset({bool, type(None)})
# Nobody can change them later; but not each of them can be written.
_UNCHANGEABLE = frozenset({int, str})


async def begun(work: Coroutine[Any, Any, Any]) -> Any:
    """The coroutine's result. One that has nothing to wait for costs no more than a call."""
    try:
        waiting = work.send(None)
    except StopIteration as done:
        return done.value
    return await attended(work, waiting)


def plain(call: Call, result: Any) -> Any:
    """Through JSON and back: every door gives the same data, and nobody can change it later."""
    if type(result) in _ALREADY_JSON:
        return result
    try:
        raw = orjson.dumps(result, default=_default)
    except (TypeError, ValueError) as error:
        raise _not_json(call, str(error)) from None
    if type(result) in _UNCHANGEABLE:
        return result
    if raw.find(b"null") >= 0 and has_non_finite(result):
        raise _not_json(call, NON_FINITE)
    return orjson.loads(raw)


def _not_json(call: Call, reason: str) -> InvalidOutput:
    return InvalidOutput(f"{call.spec.name!r} ran, but what it returned is not JSON ({reason}).")


def _default(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no JSON form")
