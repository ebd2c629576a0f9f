"""Programs in gVisor that use up what there is, or are given up: they are ended, and all of it."""

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.house import until
from tests.sandbox.conftest import PYTHON
from toolgate.sandbox.cgroup import hierarchy
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.probing import interpreter
from toolgate.sandbox.sandbox import Ended, Sandbox

pytestmark = pytest.mark.req("P4")
_BASE = Policy(
    readable=interpreter(),
    memory=64 * MEGABYTE,
    processes=12,
    open_files=32,
    file_size=2 * MEGABYTE,
    output=200_000,
    seconds=30,
    cpu=20,
)


def _folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("toolgate-gvisor-*"))


# Who was killed before this run has left some.
_BEFORE = _folders()


def _left() -> set[Path]:
    """What is still there of any program: folders, and groups, which are there while somebody is
    in them."""
    groups = hierarchy()
    found = _folders() - _BEFORE
    if groups is not None:
        found |= set(groups.processes.glob(f"toolgate-{os.getpid()}-*"))
    return found


async def test_what_is_used_up_ends_the_program(gvisor: Sandbox, tmp_path: Path) -> None:
    big = tmp_path / "big"
    # Each is one start of a kernel: they are begun together.
    tries: dict[str, tuple[str, Policy]] = {
        "time": ("while True: pass", replace(_BASE, seconds=4)),
        "output": ("while True: print('x' * 9999)", _BASE),
        "memory": ("kept=[]\nwhile True: kept.append(b'x'*1000000)", _BASE),
        "files": (
            "import os\nn=0\ntry:\n while True: os.dup(0); n+=1\nexcept OSError: print(n)",
            _BASE,
        ),
        "size": (
            f"f=open({str(big)!r},'wb',0)\nfor _ in range(9): f.write(b'x'*1000000)",
            replace(_BASE, writable=(str(tmp_path),)),
        ),
    }
    runs = [gvisor.run([*PYTHON, "-c", code], policy) for code, policy in tries.values()]
    done = dict(zip(tries, await asyncio.gather(*runs), strict=True))
    assert done["time"].ended is Ended.OUT_OF_TIME
    assert done["output"].ended is Ended.TOO_MUCH_OUTPUT
    assert len(done["output"].stdout) == 200_000
    assert done["memory"].ended is Ended.OUT_OF_MEMORY
    assert int(done["files"].stdout) < 32
    assert done["size"].code != 0
    assert big.stat().st_size <= 2 * MEGABYTE
    await until(lambda: not _left())


async def test_a_fork_bomb_is_ended_and_leaves_nobody(gvisor: Sandbox) -> None:
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    done = await gvisor.run([*PYTHON, "-c", bomb], replace(_BASE, seconds=4))
    assert done.code != 0
    await until(lambda: not _left())


async def test_whoever_stops_waiting_leaves_nobody_behind(gvisor: Sandbox) -> None:
    for steps in (0, 1, 3, 40):
        task = asyncio.create_task(gvisor.run(["sleep", "600"], _BASE))
        for _ in range(steps):
            await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await until(lambda: not _left())


async def test_one_that_is_talked_to_is_ended_with_all_that_it_started(gvisor: Sandbox) -> None:
    program = "trap '' TERM; (setsid sleep 4711 &); echo up; cat; sleep 4711"
    running = await gvisor.start(["sh", "-c", program], _BASE)
    assert await running.stdout.readline() == b"up\n"
    running.stdin.write(b"a line\n")
    assert await running.stdout.readline() == b"a line\n"
    await running.end(patience=0)
    assert await running.wait() != 0
    await until(lambda: not _left())
