"""Workers where there is no sandbox: what the kernel alone keeps them from."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.house import until
from tests.tools.means import means, no_sandbox
from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import landlock, seccomp
from toolgate.sandbox.choosing import NoSandbox
from toolgate.testing.working import attempts
from toolgate.tools.code.lint_python import lint_python
from toolgate.tools.code.python_eval import python_eval
from toolgate.tools.math.symbolic_solve import symbolic_solve
from toolgate.tools.working import pool
from toolgate.tools.working.pool import Workers

pytestmark = pytest.mark.req("T2", "V5")
HERE = "toolgate.testing.working:"
FILES = ("reading", "writing")
REFUSED = ("network", "program", "process", "signal")
CALL = cast("Any", type("Call", (), {"caller": type("Caller", (), {"tenant": "acme"})})())


@pytest.fixture
async def address() -> AsyncGenerator[list[Any]]:
    """A listener that anybody on this machine reaches."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield list(server.sockets[0].getsockname())


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside.txt"
    path.write_text("a secret", "utf-8")
    return path


async def _tried(address: list[Any], outside: Path) -> dict[str, str]:
    workers = Workers(no_sandbox)
    try:
        args = {"address": address, "outside": str(outside), "victim": os.getpid()}
        return await workers.run(f"{HERE}attempts", args, seconds=30)
    finally:
        await workers.close()


async def test_a_worker_reaches_no_network_program_process_or_file(
    address: list[Any], outside: Path
) -> None:
    # The positive control: from here all of it can be done.
    here = await asyncio.to_thread(attempts, address, str(outside), os.getpid())
    assert set(here.values()) == {"done"}
    found = await _tried(address, outside)
    assert {name: found[name] for name in REFUSED} == dict.fromkeys(REFUSED, "PermissionError")
    assert found["own folder"] == "done"
    if landlock.version():
        assert {name: found[name] for name in FILES} == dict.fromkeys(FILES, "PermissionError")


async def test_without_the_guard_it_would(
    address: list[Any], outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CONFINED", f"{HERE}unbound")
    assert set((await _tried(address, outside)).values()) == {"done"}


@pytest.mark.parametrize("missing", ["libseccomp", "the kernel"])
async def test_what_cannot_be_kept_in_does_not_compute(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(**_: bool) -> bytes:
        if missing == "libseccomp":
            raise seccomp.NoFilterError("the library libseccomp is not installed")
        return b"no filter"

    asked = "x^2 = 4"
    around = means()
    assert (await symbolic_solve(around, CALL, equations=asked))["solutions"]
    await around.workers.close()
    monkeypatch.setattr(seccomp, "program", none)
    around = means()
    with pytest.raises(
        NoSandbox, match=r"There is no sandbox in this test\. Nor can what computes"
    ):
        await symbolic_solve(around, CALL, equations=asked)
    await around.workers.close()


async def test_what_is_another_program_runs_in_a_sandbox_only() -> None:
    around = means()
    with pytest.raises(ProviderUnavailable, match="There is no sandbox in this test"):
        await python_eval(around, CALL, expression="1 + 1")
    with pytest.raises(ProviderUnavailable, match="There is no sandbox in this test"):
        await lint_python(around, CALL, code="import os")
    await around.workers.close()


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_the_folder_of_a_worker_is_its_own_and_goes_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    workers = Workers(no_sandbox)
    work = [workers.run(f"{HERE}linger", {"seconds": 0.2}, seconds=30) for _ in range(2)]
    await asyncio.gather(*work)
    assert [one.stat().st_mode & 0o777 for one in _inside(tmp_path)] == [0o700] * 2
    await workers.close()
    await until(lambda: not _inside(tmp_path))
