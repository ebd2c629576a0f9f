"""What is secret is in no sink: not the store, the log, the numbers or the traces."""

import io
import logging
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from tests.house import ME
from tests.telemetry.collector import Collector
from toolgate import Toolgate, tool
from toolgate.errors import CallRefused
from toolgate.settings.execution import Telemetry
from toolgate.settings.settings import Settings
from toolgate.telemetry.lines import JsonLines

pytestmark = pytest.mark.req("O2", "O1")
HIDDEN = Field(json_schema_extra={"secret": True})
CANARIES = [f"canary-{number:04}-x" for number in range(200)]


@tool(effect="irreversible")
def login(name: str, password: Annotated[str, HIDDEN], how: str = "") -> str:
    """Log in somewhere."""
    if how == "raise":
        raise ValueError(f"wrong password {password}")
    return "welcome"


@tool(effect="pure")
def check(password: Annotated[str, HIDDEN], how: str = "") -> bool:
    """Check a password."""
    if how == "raise":
        raise ValueError(f"wrong password {password}")
    return True


@pytest.fixture
def logged() -> Generator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger("toolgate")
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


async def _attempt(gate: Toolgate, number: int, canary: str) -> None:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("login", {"name": "ann", "password": canary}),
        ("login", {"name": "ann", "password": canary, "how": "raise"}),
        ("login", {"name": 7, "password": canary}),
        ("check", {"password": canary}),
        ("check", {"password": canary, "how": "raise"}),
        ("check", {"password": [canary]}),
        ("missing", {"password": canary}),
        ("off", {"password": canary}),
    ]
    name, args = kinds[number % len(kinds)]
    told = ""
    try:
        told = (await gate.call(name, args, caller=ME)).to_human()
    except CallRefused as error:
        told = error.message
    assert canary not in told


async def test_two_hundred_canaries_are_in_no_sink(tmp_path: Path, logged: io.StringIO) -> None:
    with Collector() as collector:
        settings = Settings(root=tmp_path, telemetry=Telemetry(traces=collector.url))
        async with Toolgate.open(settings) as gate:
            gate.add(login, check)
            gate.add(check, name="off")
            await gate.tenancy.set_tool("off", enabled=False)
            for number, canary in enumerate(CANARIES):
                await _attempt(gate, number, canary)
            assert gate.watch.metrics is not None
            numbers = await gate.watch.metrics()
            entries = await gate.journal.entries("acme", limit=1_000)
        assert len(entries) == 150, "all but those that the gate refused"
        kept = b"".join(path.read_bytes() for path in (tmp_path / ".toolgate").iterdir())
        sinks = {
            "store": kept,
            "log": logged.getvalue().encode(),
            "numbers": numbers,
            "traces": collector.raw,
        }
    assert b"tool_execution_completed" in sinks["log"], "the control: something was written"
    assert b"toolgate.call" in sinks["traces"]
    found = {
        (name, canary)
        for name, sink in sinks.items()
        for canary in CANARIES
        if canary.encode() in sink
    }
    assert found == set()


async def test_the_scan_would_see_one(tmp_path: Path) -> None:
    @tool(effect="irreversible")
    def says(word: str) -> str:
        """Say it."""
        return word

    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        gate.add(says)
        await gate.call("says", {"word": CANARIES[0]}, caller=ME)
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".toolgate").iterdir())
    assert CANARIES[0].encode() in kept, "an argument that is not marked is kept with a side effect"
