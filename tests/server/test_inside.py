"""What is inside stays inside: no answer of a broken house tells how it is built (149)."""

import os
import re
import sqlite3
import sys
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import toolgate
from tests.house import STORE
from tests.mcp.house import META, MODERN
from tests.server.busy import Busy, busy
from tests.server.samples import MISSING, asked
from toolgate.server.routes import TABLE

pytestmark = pytest.mark.req("V1", "V2", "X5")
CANARY = "canary-149-environment"
# A stream without an end asks the store for nothing.
ROUTES = [(route.method, route.address) for route in TABLE.routes if route.address != "/v1/events"]
ASKED: Mapping[str, Mapping[str, Any]] = {
    "tools/list": {},
    "tools/call": {"name": "act", "arguments": {"text": "x"}},
    "resources/read": {"uri": "focal://tools/tenant/acme/available"},
    "prompts/get": {"name": "none"},
    "tasks/get": {"taskId": "none"},
}
_STATEMENT = r"SELECT |INSERT INTO|UPDATE \w+ SET|DELETE FROM|no such (?:table|column)|sqlalche"
_PLACE = r"Traceback|File \\?\"|\.py\b|line \d+, in|/site-packages/"
INSIDE = re.compile(
    "|".join(
        [
            *(_STATEMENT, _PLACE, CANARY, "sqlite3"),
            *map(re.escape, (sys.prefix, os.environ.get("PATH", "?"), "tool_execution_log")),
            re.escape(str(Path(toolgate.__file__).parent)),
        ]
    )
)
# A failure in the driver's words.
GUARD_OFF = (
    "from toolgate.errors import StoreUnavailable; from toolgate.store import outage; "
    "outage.outage = lambda error: StoreUnavailable(str(error)); "
)


def broken(root: Path) -> None:
    """Every table has another name: whatever is asked of the store fails with its own words."""
    with closing(sqlite3.connect(root / STORE, timeout=30)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        for (name,) in names.fetchall():
            connection.execute(f"ALTER TABLE {name} RENAME TO gone_{name}")
        connection.commit()


@contextmanager
def shaken(root: Path, before: str = "") -> Generator[Busy]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLGATE_TEST_INSIDE", CANARY)
        with busy(root, before) as served:
            broken(root)
            yield served


def _refusals(house: Busy) -> Generator[tuple[str, str]]:
    """By whom they were met, and what was told."""
    for at in ROUTES:
        one = asked(at, {**MISSING, "tenant": "acme", "tool": "act"})
        for who in ("admin", "agent", "nobody"):
            answer = house.ask(who, *one)
            if answer.status >= 400:
                yield f"{who} {answer.status}", answer.text
    for method, params in ASKED.items():
        sent = {
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
            "Mcp-Name": str(next(iter(params.values()), "")),
            "Accept": "application/json, text/event-stream",
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        answer = house.ask("agent", "POST", "/mcp", body, **sent)
        if '"error":{' in answer.text or '"isError":true' in answer.text:
            yield f"mcp {method}", answer.text


def test_no_refusal_of_a_house_without_its_tables_tells_of_them(tmp_path: Path) -> None:
    with shaken(tmp_path) as house:
        found = [*_refusals(house)]
        log = house.server.log
    told = {who: text for who, text in found if INSIDE.search(text) or str(tmp_path) in text}
    assert told == {}
    # The control: it was broken for whoever came, by either door.
    assert {"admin 503", "agent 503", "nobody 401", "mcp tools/call"} <= {who for who, _ in found}
    assert (re.search(_STATEMENT, log), CANARY in log) == (None, False)
    assert "the journal could not be written (StoreUnavailable)" in log


def test_without_the_guard_the_stores_own_words_would_be_told(tmp_path: Path) -> None:
    """The guard-off control."""
    with shaken(tmp_path, GUARD_OFF) as house:
        found = {who for who, text in _refusals(house) if INSIDE.search(text)}
    assert {"admin 503", "agent 503", "mcp tools/call"} <= found
