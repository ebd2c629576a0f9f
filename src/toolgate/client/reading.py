"""What a server tells, read back into the values that a gate in this process gives."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import msgspec

from toolgate.call import Output
from toolgate.errors import ServerUnreachable
from toolgate.executor.aftercare.report import Report
from toolgate.executor.several.chain import Chain, Ran
from toolgate.spec.document import Document
from toolgate.spec.schema import Schema
from toolgate.spec.tool import ToolSpec

T = TypeVar("T")
# What reading meets in an answer that has another shape than was thought.
ODD = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
_MOST_PAGES = 10_000


def read(told: Any, kind: type[T]) -> T:
    """A value of this kind. What is not known here is left out: a newer server says more."""
    with understood():
        return msgspec.convert(told, kind, dec_hook=_document)
    raise AssertionError("it is read, or an error")


@contextmanager
def understood() -> Generator[None]:
    """Whatever an answer holds, who reads it here meets an error of ours and no other."""
    try:
        yield
    except (msgspec.ValidationError, *ODD) as error:
        raise misread(error) from None


class Pages:
    """A list that comes in pages, and comes to an end."""

    def __init__(self, most: int = _MOST_PAGES) -> None:
        self._known: set[str] = set()
        self._most = most

    def following(self, page: Any) -> str:
        """What to send for the next one; nothing behind the last."""
        with understood():
            cursor = cast("dict[str, Any]", page).get("next") or ""
            if type(cursor) is not str:
                raise TypeError("'next' of a page is a text")
            if cursor in self._known or len(self._known) >= self._most:
                raise ValueError("its pages have no end")
            self._known.add(cursor)
            return cursor
        raise AssertionError("it is read, or an error")


def misread(error: Exception) -> ServerUnreachable:
    """An answer whose words are not known here."""
    return ServerUnreachable(
        f"The server's answer does not fit: {str(error)[:200]}. Use the same version of toolgate "
        "here and there.",
        sent=True,
    )


def read_spec(told: dict[str, Any], server: str) -> ToolSpec:
    """A tool as a caller may know it: nothing of what only its provider needs.

    Its fingerprint is that of the whole definition, which only the server has.
    """
    spec = read({**told, "provider": "", "origin": {"kind": "server", "where": server}}, ToolSpec)
    if isinstance(told.get("fingerprint"), str):
        vars(spec)["fingerprint"] = told["fingerprint"]
    return spec


def read_chain(told: dict[str, Any]) -> Chain:
    """A chain; each step stands together with its Output on the wire."""
    with understood():
        steps = [
            {"name": "", **step, "output": {"status": "error", **step}} for step in told["steps"]
        ]
        found = read({**told, "steps": (), "undone": None}, Chain)
        return _with_steps(found, steps, told.get("undone"))
    raise AssertionError("it is read, or an error")


def _with_steps(found: Chain, steps: list[dict[str, Any]], undone: Any) -> Chain:
    ran = tuple(read(step, Ran) for step in steps)
    if isinstance(undone, dict):
        taken_back: dict[str, Any] = {key: of for key, of in undone.items() if key != "ok"}  # pyright: ignore[reportUnknownVariableType]
        undone = read(taken_back, Report) if "items" in taken_back else taken_back
    return msgspec.structs.replace(found, steps=ran, undone=undone)


def read_output(told: Any, *, is_structured: bool) -> Output:
    """The envelope; a house that tells results without one tells nothing else."""
    return read(told, Output) if is_structured else Output(status="success", data=told)


def _document(kind: type, given: Any) -> Any:
    if issubclass(kind, Schema):
        return Schema.of(given)
    if issubclass(kind, Document):
        return Document.of(given)
    # So msgspec is told that it cannot be decoded.
    raise NotImplementedError
