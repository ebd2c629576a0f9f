"""How long toolgate takes to start, and what it holds while idle. `python -m benchmarks.start`.

Real processes, in an empty folder, on a free port of the loopback. `make run` is not covered: it
installs first, and that is the network's figure. They may keep what Python compiles, as everything
that `make` starts does: the first of them compiles what no earlier start has.
"""

import http.client
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

from benchmarks.measure import Bar, Row, family, options, report, rss_bytes, wall_ms

REPEATS = 7
IDLE_SECONDS = 2.0
PATIENCE_SECONDS = 30.0
LOOPBACK = "127.0.0.1"
UNKEPT = "PYTHONDONTWRITEBYTECODE"

# Seconds to start and MB of memory, as handed to us: this file has not measured them, and says so.
ELSEWHERE = {"LiteLLM": (11.8, 331), "ContextForge": (6.9, 227), "FastMCP": (2.2, 89)}


def command() -> str:
    """The `toolgate` that stands beside this Python."""
    found = shutil.which("toolgate", path=Path(sys.executable).parent)
    if found is None:
        raise LookupError("no toolgate command beside this Python: install it first")
    return found


def environment(**more: str) -> dict[str, str]:
    """This one, but for what keeps Python from keeping what it compiles."""
    kept = {name: value for name, value in os.environ.items() if name != UNKEPT}
    return kept | more


def children_cpu() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def help_time() -> Row:
    """Wall seconds of `toolgate --help`, as a person waits for it."""
    program = command()

    def run() -> None:
        subprocess.run(  # noqa: S603
            [program, "--help"], check=True, env=environment(), stdout=subprocess.DEVNULL
        )

    before = children_cpu()
    took = [ms / 1e3 for ms in wall_ms(run, repeats=REPEATS)]
    cpu = (children_cpu() - before) / REPEATS
    return Row(
        name="toolgate --help",
        value=min(took),
        median=statistics.median(took),
        unit="s",
        note=f"{cpu:.2f} s CPU each",
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=1.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def served() -> Generator[tuple[int, float]]:
    """A server that answers: its process id, and the seconds from spawn to its first 200."""
    port = free_port()
    around = environment(TOOLGATE_SERVER__PORT=str(port))
    with (
        TemporaryDirectory(prefix="toolgate-bench-") as folder,
        (Path(folder) / "log").open("wb") as log,
    ):
        started = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            [command(), "serve"], cwd=folder, env=around, stdout=log, stderr=log
        )
        try:
            while not answers(port):
                waited = time.perf_counter() - started
                if process.poll() is not None or waited > PATIENCE_SECONDS:
                    said = (Path(folder) / "log").read_text(encoding="utf-8")
                    raise RuntimeError(f"toolgate serve did not answer:\n{said}")
                time.sleep(0.005)
            yield process.pid, time.perf_counter() - started
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def serve_rows() -> list[Row]:
    """Spawn to first answer, several times over; then the idle memory of the last one."""
    took: list[float] = []
    held = 0
    for at in range(REPEATS):
        with served() as (pid, seconds):
            took.append(seconds)
            if at == REPEATS - 1:
                time.sleep(IDLE_SECONDS)
                held = sum(rss_bytes(each) for each in family(pid))
    return [
        Row(
            name="toolgate serve, first answer",
            value=min(took),
            median=statistics.median(took),
            unit="s",
            note=f"the first of them {took[0]:.2f} s",
        ),
        Row(name="toolgate serve, idle memory", value=held / 1e6, unit="MB", note="with children"),
    ]


def main() -> int:
    chosen = options("How long toolgate takes to start.").parse_args()
    rows = [help_time(), *serve_rows()]
    bars = (
        Bar(name="toolgate --help, median", value=rows[0].median, limit=0.4, unit="s"),
        Bar(name="serve to first answer, median", value=rows[1].median, limit=1.0, unit="s"),
        Bar(name="idle memory", value=rows[2].value, limit=100.0, unit="MB"),
    )
    code = report("Start", rows, bars, as_json=chosen.json)
    if not chosen.json:
        print("\nelsewhere, not measured in this run:")
        for name, (seconds, megabytes) in ELSEWHERE.items():
            print(f"  {name}: {seconds} s, {megabytes} MB")
    return code


if __name__ == "__main__":
    sys.exit(main())
