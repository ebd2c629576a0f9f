"""The server's log: kinds and places, never an error's own words."""

import asyncio
import io
import logging
import sys
from contextlib import closing

import pytest

from toolgate.cli import log

CANARY = "canary-109"


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a process writes to stderr when its log goes there."""
    stream = io.StringIO()
    root = logging.RootLogger(logging.WARNING)
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(logging.Logger, "root", root)
    monkeypatch.setattr(sys, "stderr", stream)
    log.to_stderr()
    monkeypatch.setattr(logging.getLogger("toolgate"), "parent", root)
    return stream


def broken() -> None:
    raise LookupError(CANARY)


@pytest.mark.req("X5")
def test_a_record_is_one_line_whatever_it_quotes(logged: io.StringIO) -> None:
    forged = "x\r\nERROR toolgate: forged\x1b[2J\u2028"
    logging.getLogger("toolgate.library").warning("tool failed with %s", forged)
    kind = type(forged, (Exception,), {})
    with closing(asyncio.new_event_loop()) as loop:
        log.unhandled(loop, {"exception": kind(CANARY)})
    first, second = logged.getvalue().splitlines()
    assert first.endswith(r"x\r\nERROR toolgate: forged\x1b[2J\u2028")
    assert r"x\r\nERROR toolgate: forged\x1b[2J\u2028" in second


@pytest.mark.req("X5")
def test_a_librarys_trace_is_cut_to_kind_and_place(logged: io.StringIO) -> None:
    library = logging.getLogger("toolgate.library")
    try:
        broken()
    except LookupError:
        library.exception("it broke", stack_info=True)
    told = logged.getvalue()
    line = broken.__code__.co_firstlineno + 1
    assert told.startswith(
        f"ERROR toolgate.library: it broke\nLookupError in {__name__}, line {line}"
    )
    assert not any(leak in told for leak in (CANARY, "Traceback", "File "))


@pytest.mark.req("X5")
async def test_an_error_that_nobody_waited_for_is_told_without_its_words(
    logged: io.StringIO,
) -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(log.unhandled)
    try:
        loop.call_soon(broken)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        loop.call_exception_handler({"message": CANARY})
    finally:
        loop.set_exception_handler(before)
    told = logged.getvalue().splitlines()
    assert told[0].startswith("ERROR toolgate: an error that nobody waited for: LookupError in ")
    assert told[1:] == ["ERROR toolgate: an error that nobody waited for: unknown"]
    assert CANARY not in logged.getvalue()
