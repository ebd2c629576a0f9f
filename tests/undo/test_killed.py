"""A process that is killed in the middle of an undo: another goes on, and nothing is doubled."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.house import until
from tests.store.lent import lent_url
from tests.store.places import FILE, POSTGRES
from tests.undo import child
from toolgate import Toolgate
from toolgate.ledger.ledger import Which

ALL = ["pay:1", "pay:2", "pay:3", "refund:p3", "refund:p2", "refund:p1"]
ROOT = Path(__file__).resolve().parents[2]


async def killed(root: Path, url: str, at: str, *more: str) -> None:
    environment = os.environ | {"TOOLGATE_CRASH_AT": at, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.undo.child", str(root), url, *more),
        cwd=ROOT,
        env=environment,
    )
    assert await process.wait() == -signal.SIGKILL


async def recovered(root: Path, url: str) -> list[str]:
    """The states of the payments, once nobody is at any of them."""
    async with Toolgate.open(child.settings(root, url)) as gate:
        gate.add(*child.tools(root))
        await until(lambda: len(child.effects(root)) == len(ALL))
        while True:
            which = Which(tenant="acme", turn_group=child.GROUP, tool="pay")
            states = [str(entry.state) for entry in await gate.ledger.search(which)]
            if "compensating" not in states:
                break
            await asyncio.sleep(0.05)
        report = await gate.undo(caller=child.ME, turn_group=child.GROUP)
        paid = [item.result for item in report.items if item.tool == "pay"]
        assert paid == ["already_undone"] * 3
        return states


@pytest.mark.req("S3", "S4")
@pytest.mark.parametrize(
    ("place", "at"),
    [
        *((FILE, at) for at in ("CP10", "CP10:2", "CP11", "CP11:3", "CP5:4", "CP9:4")),
        *((POSTGRES, at) for at in ("CP10", "CP11:2")),
    ],
)
async def test_an_undo_is_gone_on_with_in_order_and_each_step_once(
    request: pytest.FixtureRequest, tmp_path: Path, place: str, at: str
) -> None:
    if place == POSTGRES:
        async with lent_url(request.getfixturevalue("postgres")) as url:
            await killed(tmp_path, url, at)
            states = await recovered(tmp_path, url)
    else:
        await killed(tmp_path, "", at)
        states = await recovered(tmp_path, "")
    assert child.effects(tmp_path) == ALL
    assert states == ["compensated"] * 3


@pytest.mark.req("S3", "S4", "X7")
# In the second undo: before its compensation, at its intent, and at its end.
@pytest.mark.parametrize("at", ["CP10:2", "CP11:2", "CP5:6", "CP9:5"])
async def test_a_chain_whose_fourth_step_failed_is_taken_back_whole_though_its_undo_was_killed(
    tmp_path: Path, at: str
) -> None:
    await killed(tmp_path, "", at, "chain")
    assert len(child.effects(tmp_path)) in {4, 5}, "it was killed on its way back"
    states = await recovered(tmp_path, "")
    assert child.effects(tmp_path) == ALL
    assert states == ["compensated"] * 3
