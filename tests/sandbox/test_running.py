"""Programs that run and are talked to, and the ends that a start can come to."""

import asyncio
import contextlib
import gc
import os
from pathlib import Path

import pytest

from tests.house import until
from tests.sandbox.conftest import PYTHON
from toolgate.errors import ProviderUnavailable
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.probing import interpreter
from toolgate.sandbox.sandbox import Ended, Sandbox

_ROUNDS = int(os.environ.get("TOOLGATE_SANDBOX_ROUNDS", "25"))


# In no other program's arguments.
_ASLEEP = ["sleep", "600.4711"]


def _asleep() -> list[str]:
    """Whoever runs it, also one that nobody here is the parent of."""
    found: list[str] = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"600.4711" in (place / "cmdline").read_bytes():
                found.append(place.name)
    return found


def _children() -> set[int]:
    mine = os.getpid()
    return set(map(int, Path(f"/proc/{mine}/task/{mine}/children").read_text().split()))


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.req("P4")
async def test_a_program_gets_its_input_and_says_how_it_ended(bubblewrap: Sandbox) -> None:
    done = await bubblewrap.run(
        ["sh", "-c", "cat; echo no >&2; exit 3"], Policy(), stdin=b"a" * 300_000
    )
    assert (done.ended, done.code) == (Ended.BY_ITSELF, 3)
    assert (done.stdout, done.stderr) == (b"a" * 300_000, b"no\n")
    done = await bubblewrap.run(["sh", "-c", "kill -9 $$"], Policy())
    assert (done.ended, done.code) == (Ended.BY_SIGNAL, -9)


@pytest.mark.req("P4")
async def test_a_program_cannot_write_its_input(
    bubblewrap: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ["sh", "-c", "(echo mine >/proc/self/fd/0) 2>/dev/null; cat"]
    done = await bubblewrap.run(program, Policy(), stdin=b"given\n")
    assert done.stdout == b"given\n"
    # The guard-off control.
    monkeypatch.setattr("toolgate.sandbox.pipes._SEALED", 0)
    done = await bubblewrap.run(program, Policy(), stdin=b"given\n")
    assert done.stdout == b"mine\n"


@pytest.mark.req("P4")
async def test_a_program_that_is_not_there_never_began(bubblewrap: Sandbox) -> None:
    for argv in (["no-such-program"], ["/usr"], [], ["sh\0"]):
        with pytest.raises(ProviderUnavailable, match="othing ran"):
            await bubblewrap.run(argv, Policy())
    pretending = ["sh", "-c", "echo 'bwrap: execvp sh: No such file' >&2; exit 1"]
    assert (await bubblewrap.run(pretending, Policy())).code == 1


@pytest.mark.req("P4")
async def test_a_program_is_talked_to_and_ended(bubblewrap: Sandbox) -> None:
    running = await bubblewrap.start(["cat"], Policy())
    for line in (b"one\n", b"two\n"):
        running.stdin.write(line)
        await running.stdin.drain()
        assert await running.stdout.readline() == line
    await running.end()
    await running.end()
    assert await running.wait() != 1
    assert running.pid not in _children()


@pytest.mark.req("P4")
async def test_one_that_will_not_end_is_ended_with_all_that_it_started(bubblewrap: Sandbox) -> None:
    program = "trap '' TERM; (setsid sleep 4711 &); echo up; sleep 4711"
    running = await bubblewrap.start(["sh", "-c", program], Policy())
    assert await running.stdout.readline() == b"up\n"
    await running.end(patience=0.05)
    assert await running.wait() == 137
    running = await bubblewrap.start(
        ["sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done"],
        Policy(),
    )
    assert await running.stdout.readline() == b"up\n"
    await running.end(patience=10)
    assert await running.wait() == 5


async def _sleeping(sandbox: Sandbox, *, talks: bool) -> None:
    if not talks:
        await sandbox.run(_ASLEEP, Policy())
        return
    running = await sandbox.start(_ASLEEP, Policy())
    try:
        await running.wait()
    finally:
        await running.end(0)


@pytest.mark.req("P4")
async def test_whoever_stops_waiting_at_any_moment_leaves_nobody_behind(
    bubblewrap: Sandbox,
) -> None:
    before = _children()
    for steps in range(_ROUNDS):
        talks = steps % 2 == 0
        task = asyncio.create_task(_sleeping(bubblewrap, talks=talks))
        for _ in range(steps):
            await asyncio.sleep(0 if steps < 20 else 0.001)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await until(lambda: _children() <= before)
    await until(lambda: not _asleep())
    # The control: while one runs it is seen.
    running = await bubblewrap.start(_ASLEEP, Policy())
    await until(lambda: bool(_asleep()))
    await running.end(0)


@pytest.mark.req("P4")
async def test_many_programs_leave_no_process_and_no_descriptor(bubblewrap: Sandbox) -> None:
    await bubblewrap.run(["true"], Policy())
    gc.collect()
    processes, descriptors = _children(), _descriptors()
    for _ in range(_ROUNDS):
        await bubblewrap.run(["true"], Policy())
        await (await bubblewrap.start(["cat"], Policy())).end(0)
    gc.collect()
    await until(lambda: _children() <= processes and _descriptors() <= descriptors)


@pytest.mark.req("P4")
async def test_the_host_runs_nothing_that_lies_in_the_work_folder(
    bubblewrap: Sandbox, tmp_path: Path
) -> None:
    planted = tmp_path / "planted"
    for name in ("git", "python", "python3", "bwrap", "sh", "setpriv"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {planted}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("sitecustomize.py", "usercustomize.py", "x.pth", "json.py"):
        (tmp_path / name).write_text(f"import pathlib; pathlib.Path({str(planted)!r}).touch()")
    (tmp_path / ".gitconfig").write_text(f"[core]\nfsmonitor = touch {planted}\n")
    policy = Policy(
        readable=(str(tmp_path), *interpreter()),
        env={"PYTHONPATH": str(tmp_path), "LD_PRELOAD": "/nowhere.so"},
    )
    done = await bubblewrap.run(
        [*PYTHON, "-c", "import json; print(1)"], policy, folder=str(tmp_path)
    )
    assert done.stdout == b"1\n"
    assert not planted.exists()
