"""Several processes at one store: together they spend what one may, also when one is killed."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import pytest

from tests.limits.house import eventually, open_limited, outcome, put, send, used
from tests.servers.leash import leashed
from tests.store.conftest import url as url  # noqa: PLC0414  a fixture

pytestmark = pytest.mark.req("X9")
ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def worker(*arguments: str, crash: str = "") -> Generator["subprocess.Popen[str]"]:
    """It ends with the block; what it says on stderr is shown by pytest."""
    with subprocess.Popen(
        leashed([sys.executable, "-m", "tests.limits.worker", *arguments], uid=os.getuid()),
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TOOLGATE_CRASH_AT": crash,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.parametrize("name", ["look", "put"])
async def test_five_hundred_in_four_processes_on_a_budget_of_a_hundred_are_a_hundred(
    url: str, tmp_path: Path, name: str
) -> None:
    async with open_limited(tmp_path, url=url) as gate:
        await gate.tenancy.set_budget("acme", "tool_calls", 100)
        given = orjson.dumps({"root": str(tmp_path), "url": url, "lease": "15"}).decode()
        with ExitStack() as stack:
            workers = [stack.enter_context(worker("spend", given, name, "125")) for _ in range(4)]
            assert [hear(one) for one in workers] == ["ready"] * 4
            for one in workers:
                tell(one)
            found: Counter[str] = Counter()
            for one in workers:
                found.update(orjson.loads(hear(one)))
            for one in workers:
                tell(one)
                one.wait()
        assert found == {"success": 100, "budget_exceeded": 400}
        assert await used(gate) == 100
        gate.add(send)
        assert await outcome(gate, "send") == "budget_exceeded"


async def test_what_a_process_held_that_was_killed_comes_back_with_its_lease(
    url: str, tmp_path: Path
) -> None:
    async with open_limited(tmp_path, url=url, lease=4) as gate:
        gate.add(put)
        await gate.tenancy.set_budget("acme", "tool_calls", 1)
        given = orjson.dumps({"root": str(tmp_path), "url": url, "lease": "4"}).decode()
        with worker("spend", given, "put", "1", crash="CP3") as killed:
            assert hear(killed) == "ready"
            tell(killed)
            killed.wait()
        assert await used(gate) == 0
        found: list[str] = []

        async def spent() -> bool:
            found.append(await outcome(gate, "put"))
            return found[-1] == "success"

        await eventually(spent)
        assert set(found) <= {"success", "budget_exceeded"}
        assert found[0] == "budget_exceeded"
        assert await used(gate) == 1
        assert await outcome(gate, "put") == "budget_exceeded"


async def test_what_a_process_left_idle_is_anothers_within_moments(
    url: str, tmp_path: Path
) -> None:
    """Far from the end of a budget more is drawn than is needed; nobody keeps it for long."""
    async with open_limited(tmp_path, url=url) as one, open_limited(tmp_path, url=url) as other:
        one.add(put)
        other.add(put)
        await one.tenancy.set_budget("acme", "tool_calls", 1_000)
        await other.tenancy.refresh()
        assert await outcome(one, "put") == "success"
        [line] = await other.usage.lines(tenant="acme")
        assert line.held > 0

        async def given_back() -> bool:
            [now] = await other.usage.lines(tenant="acme")
            return now.held == 0

        await eventually(given_back, seconds=5)
        assert await used(other) == 1
