"""Programs that use up what there is: each is ended at its limit, and nothing of it is left."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.house import until
from tests.sandbox.conftest import PYTHON
from toolgate import Caller, tool
from toolgate.sandbox.cgroup import hierarchy
from toolgate.sandbox.growth import Growth
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.probing import interpreter
from toolgate.sandbox.sandbox import Ended, Finished, Sandbox
from toolgate.testing.house import in_memory

_BASE = Policy(
    readable=interpreter(),
    memory=64 * MEGABYTE,
    processes=12,
    open_files=32,
    file_size=2 * MEGABYTE,
    output=200_000,
    seconds=20,
    cpu=20,
)
_TEN_GIGABYTES = 10 * 1024**3
# How much longer than its limit one that is ended may take.
_GRACE = 2.0
_RUNAWAY = (
    "import os,signal,time\n"
    "if os.fork()==0:\n os.setsid()\n if os.fork()==0:\n"
    "  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "  signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    "  os.close(0); os.close(1); os.close(2)\n  time.sleep(600)\n os._exit(0)\n"
    "os.wait()\n#word_of_the_runaway"
)


async def _run(sandbox: Sandbox, program: str, **changed: float) -> Finished:
    return await sandbox.run([*PYTHON, "-c", program], replace(_BASE, **changed))


def _alive(word: str) -> list[int]:
    """Who runs with this word in its arguments, seen from outside."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (place / "cmdline").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


@pytest.mark.req("P4")
async def test_a_fork_bomb_is_ended_and_leaves_nobody(bubblewrap: Sandbox) -> None:
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass\n#word_of_the_bomb"
    done = await _run(bubblewrap, bomb, seconds=1)
    assert done.ended is Ended.OUT_OF_TIME
    assert done.seconds < 1 + _GRACE
    assert _alive("word_of_the_bomb") == []


@tool(effect="pure")
async def ping() -> str:
    """Say that the house is there."""
    return "pong"


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    "program",
    [
        "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
        "while True: pass",
        "n=0\nwhile True: open(f'{n}','w'); n+=1",
    ],
    ids=["bomb", "spin", "files"],
)
async def test_the_house_goes_on_while_a_program_uses_up_what_it_has(
    bubblewrap: Sandbox, program: str
) -> None:
    me = Caller(tenant="acme", agent="clerk")
    async with in_memory(ping) as gate:
        greedy = asyncio.create_task(_run(bubblewrap, program, seconds=1, memory=_BASE.memory))
        answered = 0
        while not greedy.done():
            assert (await gate.call("ping", caller=me)).data == "pong"
            answered += 1
            await asyncio.sleep(0.001)
        assert (await greedy).code != 0
    assert answered >= 100


@pytest.mark.req("P4")
async def test_processes_and_threads_are_counted_together(bubblewrap: Sandbox) -> None:
    program = (
        "import threading,time\nn=0\ntry:\n for n in range(99): "
        "threading.Thread(target=time.sleep,args=(9,),daemon=True).start()\n"
        "except RuntimeError: print(n,flush=True)\nimport os; os._exit(0)"
    )
    done = await _run(bubblewrap, program)
    assert int(done.stdout) <= 12
    more = await _run(bubblewrap, program, processes=40)
    assert int(more.stdout) > 12


@pytest.mark.req("P4")
async def test_ten_gigabytes_of_memory_are_not_to_be_had(bubblewrap: Sandbox) -> None:
    done = await _run(bubblewrap, f"bytearray({_TEN_GIGABYTES}); print('had')")
    assert done.stdout == b""
    if hierarchy() is not None:
        slowly = "kept=[]\nwhile True: kept.append(b'x'*1000000)"
        done = await _run(bubblewrap, slowly)
        assert done.ended is Ended.OUT_OF_MEMORY
    assert (await _run(bubblewrap, "b'x' * 20_000_000; print('had')")).stdout == b"had\n"


@pytest.mark.req("P4")
async def test_a_file_ends_at_its_size(bubblewrap: Sandbox, tmp_path: Path) -> None:
    program = (
        f"f=open({str(tmp_path / 'big')!r},'wb',0)\n"
        f"for _ in range({_TEN_GIGABYTES}//1000000): f.write(b'x'*1000000)"
    )
    policy = replace(_BASE, writable=(str(tmp_path),))
    done = await bubblewrap.run([*PYTHON, "-c", program], policy)
    assert done.code != 0
    assert (tmp_path / "big").stat().st_size == 2 * MEGABYTE


@pytest.mark.req("P4")
async def test_the_work_folder_takes_no_more_than_the_memory(bubblewrap: Sandbox) -> None:
    program = "n=0\nwhile True:\n open(f'{n}','wb').write(b'x'*1000000); n+=1\n print(n,flush=True)"
    done = await _run(bubblewrap, program)
    assert done.code != 0
    assert int(done.stdout.split()[-1]) <= 64


@pytest.mark.req("P4")
async def test_a_million_files_are_not_to_be_had(bubblewrap: Sandbox) -> None:
    """The kernel counts what it keeps of each; without groups nothing but its time ends it."""
    program = "for n in range({}): open(f'{{n}}','w')\nprint('had')"
    bounds = {"seconds": 20 if hierarchy() else 4, "memory": 16 * MEGABYTE}
    done = await _run(bubblewrap, program.format(1_000_000), **bounds)
    assert done.stdout == b""
    assert done.ended is (Ended.OUT_OF_MEMORY if hierarchy() else Ended.OUT_OF_TIME)
    assert (await _run(bubblewrap, program.format(1_000), **bounds)).stdout == b"had\n"


_WRITES = (
    "import sys,time\nfor n in range(int(sys.argv[1])):\n"
    " with open(f'{sys.argv[3]}/{n}','wb') as file: file.write(b'x'*int(sys.argv[2]))\n"
    "print('had',flush=True)\ntime.sleep(float(sys.argv[4]))"
)


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    ("number", "size", "bound"),
    [(60, 1_000_000, {"written": 20 * MEGABYTE}), (300, 1, {"files": 100})],
    ids=["bytes", "files"],
)
async def test_one_that_fills_a_folder_which_it_may_write_is_ended(
    bubblewrap: Sandbox, tmp_path: Path, number: int, size: int, bound: dict[str, int]
) -> None:
    """Not one that writes less, nor any without the bound."""

    async def written(name: str, most: int, stays: float, **bounds: int) -> Finished:
        folder = tmp_path / name
        folder.mkdir()
        words = (str(most), str(size), str(folder), str(stays))
        policy = replace(_BASE, writable=(str(folder),), seconds=60, **bounds)
        return await bubblewrap.run([*PYTHON, "-c", _WRITES, *words], policy)

    done = await written("full", number, 600, **bound)
    assert done.ended is Ended.TOO_MUCH_WRITTEN
    assert done.seconds < 60
    for name, most, bounds in (("less", number // 10, bound), ("open", number, {})):
        # Long enough for it to have been noticed.
        found = await written(name, most, 1, **{"written": 0, "files": 0} | bounds)
        assert (found.ended, found.stdout) == (Ended.BY_ITSELF, b"had\n")


@pytest.mark.req("P4")
async def test_what_was_there_before_and_what_others_have_is_not_counted(
    bubblewrap: Sandbox, tmp_path: Path
) -> None:
    """Room shrinks by others as well; what is looked at then is what is new in its own folders."""
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    (tmp_path / "0/old").write_bytes(b"x" * 30 * MEGABYTE)
    growth = Growth(replace(_BASE, writable=(str(tmp_path / "1"),), written=MEGABYTE), lambda: None)
    (tmp_path / "2/others").write_bytes(b"x" * 30 * MEGABYTE)
    watching = asyncio.create_task(growth.watch())
    await asyncio.sleep(0)
    await asyncio.wait([watching], timeout=1)
    assert not watching.done()
    (tmp_path / "1/deep").mkdir()
    (tmp_path / "1/deep/own").write_bytes(b"x" * 2 * MEGABYTE)
    await asyncio.wait_for(watching, 20)
    assert growth.is_too_much


@pytest.mark.req("P4")
async def test_open_files_are_counted(bubblewrap: Sandbox) -> None:
    program = "import os\nn=0\ntry:\n while True: os.dup(0); n+=1\nexcept OSError: print(n)"
    assert int((await _run(bubblewrap, program)).stdout) < 32


@pytest.mark.req("P4")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_flood_of_output_is_cut_and_ends_the_program(
    bubblewrap: Sandbox, stream: str
) -> None:
    done = await _run(bubblewrap, f"import sys\nwhile True: sys.{stream}.write('x'*9999)")
    assert done.ended is Ended.TOO_MUCH_OUTPUT
    assert len(done.stdout) + len(done.stderr) == 200_000


@pytest.mark.req("P4")
async def test_one_that_only_computes_is_ended_by_the_clock_and_by_what_it_computes(
    bubblewrap: Sandbox,
) -> None:
    for limits, most in (({"seconds": 0.3}, 0.3), ({"cpu": 1.0}, _BASE.seconds)):
        done = await _run(bubblewrap, "while True: pass", **limits)
        assert done.ended is Ended.OUT_OF_TIME
        assert done.seconds < most + _GRACE


@pytest.mark.req("P4")
async def test_a_program_that_left_everything_behind_is_dead_when_the_call_ends(
    bubblewrap: Sandbox,
) -> None:
    done = await _run(bubblewrap, _RUNAWAY)
    assert (done.ended, done.code) == (Ended.BY_ITSELF, 0)
    await until(lambda: _alive("word_of_the_runaway") == [])


@pytest.mark.req("P4")
def test_outside_the_same_program_lives_on() -> None:
    """The guard-off control."""
    subprocess.run([*PYTHON, "-c", _RUNAWAY], check=True)
    left = _alive("word_of_the_runaway")
    for one in left:
        os.kill(one, signal.SIGKILL)
    assert left


@pytest.mark.req("P4")
async def test_no_group_is_left_of_all_that(bubblewrap: Sandbox) -> None:
    # What the ones before could not let go is let go by the next.
    await _run(bubblewrap, "pass")
    groups = hierarchy()
    if groups is None:
        pytest.skip("skipped: no groups of processes on this machine")
    left = f"toolgate-{os.getpid()}-*"
    await until(lambda: not [*groups.processes.glob(left), *groups.memory.glob(left)])
