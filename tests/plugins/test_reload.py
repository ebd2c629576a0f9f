"""Plugins are loaded anew while their tools are called: nothing fails, and nothing is mixed."""

import asyncio
import collections
import sys
import time
from pathlib import Path

import pytest

from tests.house import ME, until
from tests.plugins.folders import agree, opened, row, told, tool, write
from tests.thorough import some
from toolgate import Toolgate

pytestmark = pytest.mark.req("U2")
RELOADS = some(12, 100)
CALLERS = 8
# Calls in a second, at the least: on a machine that is busy with others, too.
RATE = some(200, 500)
# Two modules that say the version, one of them loaded in the middle of a call.
CODE = """\
import asyncio

VERSION = {version}


async def told(text: str = "") -> dict[str, int]:
    await asyncio.sleep(0.001)
    from .late import VERSION as late

    return {{"version": VERSION, "late": late}}
"""
WAITS = """\
import asyncio
from pathlib import Path


async def told(text: str = "") -> dict[str, object]:
    Path(text, "begun").touch()
    while not Path(text, "go").exists():
        await asyncio.sleep(0.005)
    from . import late

    return {{"version": late.VERSION}}
"""


def put(root: Path, version: int, code: str = CODE) -> None:
    folder = write(root, version=version, code=code.format(version=version))
    (folder / "late.py").write_text(f"VERSION = {version}\n", "utf-8")


async def test_hundreds_of_calls_go_on_over_reloads_with_broken_ones_among_them(
    tmp_path: Path,
) -> None:
    put(tmp_path, 0)
    seen: list[tuple[str, dict[str, int]]] = []
    fingerprints: dict[str, int] = {}
    failed: list[object] = []
    over = False

    async def call(gate: Toolgate) -> None:
        while not over:
            output = await gate.call("told", {}, caller=ME)
            if not output.ok:
                failed.append(output)
            seen.append((output.call_id, output.data))
            # Others come to their turn, also when nothing of it waits.
            await asyncio.sleep(0)

    async with opened(tmp_path, "*") as gate:
        fingerprints[gate.catalog.current.specs["told"].fingerprint] = 0
        calls = [asyncio.create_task(call(gate)) for _ in range(CALLERS)]
        began = time.monotonic()
        live = 0
        for number in range(1, RELOADS + 1):
            is_broken = number % 10 == 0
            put(
                tmp_path, number, "VERSION = {version}\nraise RuntimeError\n" if is_broken else CODE
            )
            found = await gate.plugins.reload_changed()
            assert bool(found.broken) == is_broken
            if is_broken:
                assert "RuntimeError" in row(gate)["problem"]
                assert "stays live" in row(gate)["problem"]
            else:
                live = number
                fingerprints[gate.catalog.current.specs["told"].fingerprint] = number
            done = len(seen)
            await until(lambda done=done: len(seen) >= done + 2 * CALLERS)
            assert seen[-1][1] == {"version": live, "late": live}
        over = True
        await asyncio.gather(*calls)
        seconds = time.monotonic() - began
        records = await gate.journal.entries(ME.tenant, limit=len(seen))
    assert failed == []
    assert len(seen) >= 2 * CALLERS * RELOADS
    assert len(seen) / seconds >= RATE
    # Each call was of one version, and is on record as that one.
    assert all(data["version"] == data["late"] for _, data in seen)
    told_of = {call_id: data["version"] for call_id, data in seen}
    on_record = {one.call_id: fingerprints[one.fingerprint] for one in records}
    assert on_record == told_of
    assert len(collections.Counter(told_of.values())) > RELOADS // 2


async def test_a_call_in_flight_finishes_on_the_old_code(tmp_path: Path) -> None:
    put(tmp_path, 1, WAITS)
    async with opened(tmp_path, "*") as gate:
        running = asyncio.create_task(gate.call("told", {"text": str(tmp_path)}, caller=ME))
        await until((tmp_path / "begun").exists)
        put(tmp_path, 2)
        assert (await gate.plugins.reload_changed()).loaded == ("teller",)
        assert await told(gate) == {"version": 2, "late": 2}
        (tmp_path / "go").touch()
        assert (await running).data == {"version": 1}


async def test_a_newer_version_with_other_tools_takes_their_place_whole(tmp_path: Path) -> None:
    write(tmp_path, tools=[tool("one"), tool("two")])
    async with opened(tmp_path, "*") as gate:
        revision = gate.catalog.current.revision
        write(tmp_path, version=2, tools=[tool("two"), tool("three")])
        await gate.plugins.reload_changed()
        assert gate.catalog.current.revision == revision + 1
        names = {one.name for one in await gate.discover(ME)}
        assert names & {"one", "two", "three"} == {"two", "three"}


async def test_what_was_broken_is_tried_again_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, dependencies=["a_late_dependency"])
    async with opened(tmp_path, "*") as gate:
        assert row(gate)["state"] == "broken"
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "a_late_dependency.py").touch()
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
        assert await gate.plugins.check_for_changes() == []
        assert (await gate.plugins.reload_changed()).loaded == ("teller",)


async def test_the_watcher_takes_over_files_and_what_is_agreed_to_elsewhere(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    async with opened(tmp_path, refresh=0.02) as here, opened(tmp_path) as there:
        await agree(there)
        await until(lambda: here.catalog.current.get("told") is not None)
        assert await told(here) == {"text": "", "version": 1}
        before = here.catalog.current.specs["told"]
        write(tmp_path, version=2)
        await until(lambda: row(here)["state"] == "waiting")
        await agree(there)
        await until(lambda: here.catalog.current.specs["told"] is not before)
        assert await told(here) == {"text": "", "version": 2}


async def test_a_tool_loads_what_has_changed_and_says_so(tmp_path: Path) -> None:
    write(tmp_path)
    async with opened(tmp_path, "*") as gate:
        write(tmp_path, version=2)
        write(tmp_path, "broken", code="raise ValueError\n", tools=[tool("no")])
        output = await gate.call("reload_plugins", {}, caller=ME)
        assert output.ok, output
        broken = output.data.pop("broken")
        assert output.data == {"count": 1, "loaded": ["teller"], "waiting": [], "gone": []}
        assert "ValueError, tools.py line 1" in broken["broken"]
        assert await told(gate) == {"text": "", "version": 2}
        assert gate.catalog.current.specs["reload_plugins"].requires_confirmation
