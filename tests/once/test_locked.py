"""A SQLite file that eight other processes write: once, or refused, and nothing in between."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.blank import put_blank
from tests.house import ME, STORE, until
from tests.once.nest import ROOT
from toolgate import Toolgate, tool
from toolgate.errors import StoreUnavailable
from toolgate.settings.settings import Settings

pytestmark = [pytest.mark.req("S2", "D1"), pytest.mark.timeout(300)]
WRITERS = 8
CALLS = 60
done: Counter[str] = Counter()


@tool(effect="irreversible")
async def pay(to: str) -> str:
    """Pay."""
    done[to] += 1
    return to


@contextmanager
def writers(root: Path) -> Generator[list[subprocess.Popen[bytes]]]:
    """At work from the first moment to the last of the block."""
    command = [sys.executable, "-m", "tests.once.locker", str(root / STORE), str(root)]
    with ExitStack() as stack:
        found = [stack.enter_context(subprocess.Popen(command, cwd=ROOT)) for _ in range(WRITERS)]
        try:
            yield found
        finally:
            (root / "shut").unlink(missing_ok=True)
            (root / "over").touch()


async def paid(gate: Toolgate, to: str) -> str:
    try:
        return (await gate.call("pay", {"to": to}, caller=ME, idempotency_key=to)).status
    except StoreUnavailable as error:
        return error.code


async def test_among_eight_writers_each_call_is_done_once_or_refused_without_an_effect(
    tmp_path: Path,
) -> None:
    done.clear()
    put_blank(tmp_path / STORE)
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        gate.add(pay)
        with writers(tmp_path) as others:
            await until(lambda: len(list(tmp_path.glob("began-*"))) == WRITERS, seconds=60)
            names = [f"p{number}" for number in range(CALLS)]
            answers = dict(
                zip(names, await asyncio.gather(*(paid(gate, one) for one in names)), strict=True)
            )
            assert all(one.poll() is None for one in others), "all of them wrote meanwhile"
            assert set(answers.values()) <= {"success", "unknown", "store_unavailable"}
            assert "success" in answers.values()
            for name, status in answers.items():
                assert done[name] == 1 if status == "success" else done[name] <= 1
                assert done[name] == 0 or status != "store_unavailable"

            # One of them keeps it: nothing can be put on record, and so nothing happens.
            (tmp_path / "shut").touch()
            await until((tmp_path / "locked").exists, seconds=90)
            before = done.copy()
            assert await paid(gate, "shut") == "store_unavailable"
            assert done == before
            (tmp_path / "shut").unlink()
            async with asyncio.timeout(60):
                while await paid(gate, "shut") != "success":
                    pass
            assert done["shut"] == 1
