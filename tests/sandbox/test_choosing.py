"""Which sandbox is used: one that was tried and held, or none, and then nothing runs."""

import asyncio
import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Literal

import pytest

from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import choosing, gvisor
from toolgate.sandbox.choosing import Refusing, chosen
from toolgate.sandbox.policy import MEGABYTE, Policy
from toolgate.sandbox.probing import weakness
from toolgate.sandbox.sandbox import Ended, Finished, Running, Sandbox
from toolgate.settings.outward import Sandbox as Settings


@pytest.fixture(autouse=True)
def untried() -> Generator[None]:
    """As in a process that has tried nothing yet."""
    kept = dict(choosing.TRIED)
    choosing.TRIED.clear()
    yield
    choosing.TRIED.clear()
    choosing.TRIED.update(kept)


class _Host:
    """No sandbox at all, which calls itself one."""

    name = "the host"

    async def run(
        self, argv: Sequence[str], policy: Policy, *, stdin: bytes = b"", folder: str = ""
    ) -> Finished:
        child = await asyncio.create_subprocess_exec(*argv, stdin=-1, stdout=-1, stderr=-1)
        stdout, stderr = await child.communicate(stdin)
        code = child.returncode or 0
        return Finished(ended=Ended.BY_ITSELF, code=code, stdout=stdout, stderr=stderr, seconds=0)

    async def start(self, argv: Sequence[str], policy: Policy, *, folder: str = "") -> Running:
        raise NotImplementedError


@pytest.mark.req("P4")
async def test_what_does_not_keep_programs_in_is_found_out() -> None:
    assert "could read a file outside" in await weakness(_Host())


@pytest.mark.req("P4")
async def test_where_the_program_is_missing_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for kind in ("auto", "bubblewrap", "gvisor", "sandlock", "container"):
        found = await chosen(Settings(kind=kind))
        assert isinstance(found, Refusing)
        assert "no program runs" in found.refusal
        with pytest.raises(ProviderUnavailable, match="No sandbox holds"):
            await found.run(["touch", str(tmp_path / "made")], Policy(writable=(str(tmp_path),)))
        with pytest.raises(ProviderUnavailable, match="No sandbox holds"):
            await found.start(["touch", str(tmp_path / "made")], Policy())
    assert not (tmp_path / "made").exists()


@pytest.mark.req("P4")
async def test_each_kind_says_what_it_lacks_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def said(kind: Literal["bubblewrap", "gvisor", "sandlock"]) -> str:
        choosing.TRIED.clear()
        found = await chosen(Settings(kind=kind))
        assert isinstance(found, Refusing)
        return found.refusal

    (tmp_path / "runsc").write_text("#!/bin/sh\necho 'no such platform' >&2; exit 128\n")
    (tmp_path / "runsc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/empty")
    assert "Install a bubblewrap that has --bind-fd" in await said("bubblewrap")
    assert "apt install runsc" in await said("gvisor")
    assert 'kind = "bubblewrap"' in await said("sandlock")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gvisor, "hierarchy", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "Delegate=yes" in await said("gvisor")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    without_root = await said("gvisor")
    assert "does not run as root" in without_root
    assert 'kind = "bubblewrap", which needs no root' in without_root
    assert "--bind-fd" not in without_root


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    ("says", "does"),
    [
        ("No permissions to create a new namespace", "echo 'bwrap: {says}' >&2; exit 1"),
        ("Unknown option --disable-userns", "echo 'bwrap: {says}' >&2; exit 1"),
        ("could not", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'),
    ],
)
async def test_where_it_does_not_work_the_host_is_never_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, does: str
) -> None:
    """Name spaces forbidden, a version that is too old, and one that keeps nobody in."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{does.format(says=says)}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    found = await chosen(Settings(kind="bubblewrap"))
    assert isinstance(found, Refusing)
    assert says in found.refusal


@pytest.mark.req("P4")
async def test_lists_that_name_nothing_give_nothing(bubblewrap: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for nothing in ((), ("",), ("*",), (" ",), ("**",), ("/*",)):
        policy = Policy(readable=nothing, writable=nothing, hosts=nothing)
        done = await bubblewrap.run(["cat", str(tmp_path / "secret")], policy)
        assert done.stdout == b""
        assert done.code != 0
    # The control: what is named is there, beside what names nothing.
    named = ("", str(tmp_path))
    for policy in (Policy(readable=named), Policy(writable=named)):
        done = await bubblewrap.run(["cat", str(tmp_path / "secret")], policy)
        assert done.stdout == b"secret"


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    "root", ["/", "//", "/proc", "/sys/kernel", "/dev", "relative", "/no/such"]
)
async def test_a_root_that_cannot_be_given_is_refused(bubblewrap: Sandbox, root: str) -> None:
    for policy in (Policy(readable=(root,)), Policy(writable=(root,))):
        with pytest.raises(ProviderUnavailable, match="Nothing ran"):
            await bubblewrap.run(["true"], policy)


@pytest.mark.req("P4")
async def test_settings_give_less_and_never_more(bubblewrap: Sandbox, tmp_path: Path) -> None:
    given = tmp_path / "given"
    (given / "policies").mkdir(parents=True)
    settings = Settings(kind="bubblewrap", memory=64, readable=(str(tmp_path),))
    held = await chosen(settings, protected=(str(given / "policies"),))
    policy = Policy(writable=(str(given),), memory=4096 * MEGABYTE)
    program = f"touch {given}/made; touch {given}/policies/made; touch {tmp_path}/made; df /tmp"
    done = await held.run(["sh", "-c", program], policy)
    assert b"65536" in done.stdout
    assert (given / "made").exists()
    assert not (given / "policies" / "made").exists()
    assert not (tmp_path / "made").exists()
    with pytest.raises(ProviderUnavailable, match="governed by"):
        await held.run(["true"], Policy(writable=(str(given / "policies"),)))
