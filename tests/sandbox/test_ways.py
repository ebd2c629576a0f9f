"""Folders that are given: a link put in their place leads nowhere, and the store is in none."""

import os
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.house import ME
from tests.providers.programs import gate_with, shell_tool
from tests.servers import sandboxes
from tests.servers.fixtures import needed
from toolgate import Toolgate
from toolgate.errors import ProviderUnavailable, ToolNotFound
from toolgate.kinds import Kinds
from toolgate.sandbox import bubblewrap as bubblewrap_kind
from toolgate.sandbox import gvisor as gvisor_kind
from toolgate.sandbox import roots
from toolgate.sandbox.choosing import Refusing, chosen
from toolgate.sandbox.container import Container
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.sandbox import Sandbox
from toolgate.sandbox.ways import RefusedRootError, opened, settled
from toolgate.settings.outward import Sandbox as SandboxSettings
from toolgate.settings.settings import Settings

Kind = Literal["bubblewrap", "gvisor"]
pytestmark = pytest.mark.req("P4")
_SWAP = 'mv sub sub.old && ln -s "$1" sub'
_READER = shell_tool(
    "read", "cat", "--", "{path}", config={"folder": "work/sub", "output": "text"}, effect="pure"
)
_WRITER = shell_tool(
    "write", "tee", "--", "{path}",
    config={"folder": "work/sub", "writable": ["work/sub"], "stdin": "words"}, effect="idempotent",
)  # fmt: skip


async def _holding(kind: Kind) -> Sandbox:
    needed(sandboxes.bubblewrap if kind == "bubblewrap" else sandboxes.gvisor)
    found = await chosen(SandboxSettings(kind=kind))
    if isinstance(found, Refusing) and kind == "gvisor" and os.geteuid() != 0:
        pytest.skip(f"skipped: {found.refusal}")
    return found


def _swapper(root: Path) -> dict[str, Any]:
    script = root / "scripts" / "swap.sh"
    script.parent.mkdir()
    script.write_text(_SWAP)
    config = {"folder": "work", "writable": ["work"], "readable": ["scripts"]}
    return shell_tool("swap", "sh", str(script), "{path}", config=config, effect="idempotent")


def _followed(path: str, _: object) -> str:
    return os.path.realpath(path)


def _furnished(root: Path) -> Path:
    """A folder in a folder that a tool writes, and beside the settings somebody else's."""
    (root / "work" / "sub").mkdir(parents=True)
    (root / "work" / "sub" / "note").write_text("a note")
    victim = root / "victim"
    victim.mkdir()
    (victim / "key").write_text("a key")
    return victim


async def _said(gate: Toolgate, tool: str, path: str) -> str:
    output = await gate.call(tool, {"path": path}, caller=ME)
    assert output.ok, output.error
    return str(output.data)


async def test_a_link_in_the_place_of_a_folder_leads_no_other_tool_out(
    tmp_path: Path, bubblewrap: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bubblewrap.name
    victim = _furnished(tmp_path)
    tools = (_READER, _WRITER, _swapper(tmp_path))
    async with gate_with(tmp_path, *tools) as gate:
        assert await _said(gate, "read", "note") == "a note"
        await _said(gate, "swap", str(victim))
        assert (tmp_path / "work" / "sub").is_symlink()
        for tool, path in (("read", "key"), ("write", "made")):
            with pytest.raises(ProviderUnavailable, match="a link, which a program may") as refused:
                await gate.call(tool, {"path": path}, caller=ME)
            assert str(tmp_path) not in refused.value.message
        assert [each.name for each in victim.iterdir()] == ["key"]
        # Where links are followed, it is all there.
        with monkeypatch.context() as off:
            off.setattr(roots, "settled", _followed)
            assert await _said(gate, "read", "key") == "a key"
    # Nor is the link what was named, for a gate that begins after it.
    async with gate_with(tmp_path, *tools) as gate:
        with pytest.raises(ToolNotFound):
            await gate.call("read", {"path": "key"}, caller=ME)


@pytest.mark.parametrize("kind", ["bubblewrap", "gvisor"])
async def test_a_root_that_has_become_a_link_is_refused(tmp_path: Path, kind: Kind) -> None:
    sandbox = await _holding(kind)
    victim = _furnished(tmp_path)
    sub = tmp_path / "work" / "sub"
    reading = Policy(readable=(str(sub),))
    assert (await sandbox.run(["cat", f"{sub}/note"], reading)).stdout == b"a note"
    sub.rename(sub.with_name("old"))
    sub.symlink_to(victim)
    deeper = Policy(writable=(str(tmp_path / "work"),), readable=(str(sub / "deeper"),))
    (victim / "deeper").mkdir()
    for policy in (reading, Policy(writable=(str(sub),)), deeper):
        with pytest.raises(ProviderUnavailable, match="a link"):
            await sandbox.run(["ls", str(sub)], policy)


async def test_what_was_opened_is_mounted_whatever_takes_its_place_meanwhile(
    tmp_path: Path, bubblewrap: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = _furnished(tmp_path)
    sub = tmp_path / "work" / "sub"

    def swapped_after(path: str) -> int:
        descriptor = opened(path)
        if path == str(sub):
            sub.rename(sub.with_name("old"))
            sub.symlink_to(victim)
        return descriptor

    monkeypatch.setattr(bubblewrap_kind, "opened_way", swapped_after)
    done = await bubblewrap.run(["ls", str(sub)], Policy(readable=(str(sub),)))
    assert sub.is_symlink()
    assert done.stdout == b"note\n"
    # By its name, it would have been the other.
    monkeypatch.setattr(bubblewrap_kind, "_mounted", _by_name)
    sub.unlink()
    sub.with_name("old").rename(sub)
    done = await bubblewrap.run(["ls", str(sub)], Policy(readable=(str(sub),)))
    assert done.stdout == b"key\n"


def _by_name(mount: roots.Mount, _: object) -> tuple[str, str, str]:
    how = "--symlink" if mount.shown is roots.Shown.LINK else "--ro-bind"
    return how, mount.source, mount.path


async def test_gvisor_mounts_what_it_was_given_or_nothing_whatever_takes_its_place(
    tmp_path: Path, gvisor: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = _furnished(tmp_path)
    sub = tmp_path / "work" / "sub"
    policy = Policy(readable=(str(sub),))
    listed = ["sh", "-c", f"cd {sub} && echo *"]

    def swapped_after(path: str) -> int:
        descriptor = opened(path)
        sub.rename(sub.with_name("old"))
        sub.symlink_to(victim)
        return descriptor

    def back() -> None:
        sub.unlink()
        sub.with_name("old").rename(sub)

    assert (await gvisor.run(listed, policy)).stdout == b"note\n"
    monkeypatch.setattr(gvisor_kind, "opened_way", swapped_after)
    with pytest.raises(ProviderUnavailable, match=r"Nothing ran.*was replaced") as refused:
        await gvisor.run(listed, policy)
    assert str(tmp_path) not in refused.value.message
    back()
    # Where links are followed, it is the other.
    *start, program = gvisor_kind.FIRST
    followed = program.replace("os.O_PATH | os.O_NOFOLLOW", "os.O_PATH")
    monkeypatch.setattr(gvisor_kind, "FIRST", (*start, followed))
    assert (await gvisor.run(listed, policy)).stdout == b"key\n"
    back()
    assert (sub / "note").read_text() == "a note"
    assert (victim / "key").read_text() == "a key"


async def test_a_program_holds_none_of_the_descriptors(bubblewrap: Sandbox, tmp_path: Path) -> None:
    policy = Policy(writable=(str(tmp_path),), readable=("/opt",))
    done = await bubblewrap.run(["sh", "-c", "ls -l /proc/self/fd /proc/1/fd"], policy)
    assert b"/proc/" in done.stdout
    assert os.fsencode(tmp_path.name) not in done.stdout
    assert b"/opt" not in done.stdout


def test_a_link_counts_where_no_program_can_have_put_it(tmp_path: Path) -> None:
    home, far = tmp_path / "home", tmp_path / "far"
    for folder in (home / "data", far / "sub"):
        folder.mkdir(parents=True)
    (home / "linked").symlink_to("../far")
    (home / "data" / "out").symlink_to(far)
    (home / "round").symlink_to(home / "round")
    anchors = [str(home)]
    assert settled(str(home / "linked" / "sub"), anchors) == str(far / "sub")
    for path in (home / "data" / "out", home / "data" / "out" / "sub", home / "round"):
        with pytest.raises(RefusedRootError, match="link"):
            settled(str(path), anchors)
    # Nor does it help to make its folder look as if nobody could write it.
    (home / "data").chmod(0o555)
    with pytest.raises(RefusedRootError, match="link"):
        settled(str(home / "data" / "out"), anchors)
    (home / "data").chmod(0o755)
    for path in (home / "linked", home / "linked" / "sub", home / "missing"):
        with pytest.raises(RefusedRootError):
            opened(str(path))
    os.close(opened(str(far / "sub")))


def _settings(root: Path, kind: Kind) -> Settings:
    (root / "toolgate.toml").write_text("")
    for name in (".toolgate", "beside"):
        (root / name).mkdir()
    (root / ".toolgate" / "toolgate.db").write_text("the store")
    return Settings(root=root, sandbox=SandboxSettings(kind=kind))


_STORE = "cat .toolgate/*; ls -A .toolgate; touch .toolgate/made; mv .toolgate moved; true"


@pytest.mark.parametrize("kind", ["bubblewrap", "gvisor"])
async def test_the_store_is_in_no_folder_that_a_program_is_given(
    tmp_path: Path, kind: Kind
) -> None:
    bare = await _holding(kind)
    root = tmp_path / "app"
    root.mkdir()
    sandbox = await Kinds(_settings(root, kind)).sandbox()
    for given in (root, tmp_path):
        for policy in (Policy(readable=(str(given),)), Policy(writable=(str(given),))):
            done = await sandbox.run(["sh", "-c", _STORE], policy, folder=str(root))
            assert (done.code, done.stdout) == (0, b""), done
    tries = "touch beside/made; echo x > toolgate.toml; touch new"
    await sandbox.run(["sh", "-c", tries], Policy(writable=(str(root),)), folder=str(root))
    assert (root / "beside" / "made").exists()
    assert not (root / "new").exists()
    assert (root / "toolgate.toml").read_text() == ""
    assert [each.name for each in (root / ".toolgate").iterdir()] == ["toolgate.db"]
    for inside in (".toolgate", ".toolgate/toolgate.db"):
        for policy in (
            Policy(readable=(str(root / inside),)),
            Policy(writable=(str(root / inside),)),
        ):
            with pytest.raises(ProviderUnavailable, match="Nothing ran"):
                await sandbox.run(["true"], policy)
    # Where nothing says that it is hidden, it is read.
    done = await bare.run(["sh", "-c", _STORE], Policy(readable=(str(root),)), folder=str(root))
    assert done.stdout.startswith(b"the store")


async def test_a_link_of_the_operators_beside_the_settings_is_followed(
    tmp_path: Path, bubblewrap: Sandbox
) -> None:
    assert bubblewrap.name
    root, far = tmp_path / "app", tmp_path / "far"
    for folder in (root, far, far / "kept"):
        folder.mkdir()
    (root / "linked").symlink_to(far)
    settings = _settings(root, "bubblewrap")
    policy = Policy(writable=(str(root / "linked"),), protected=(str(far / "kept" / "file"),))
    sandbox = await Kinds(settings).sandbox()
    tries = "touch made; touch kept/file"
    done = await sandbox.run(["sh", "-c", tries], policy, folder=str(root / "linked"))
    assert (far / "made").exists(), done.stderr
    assert not (far / "kept" / "file").exists()


async def test_a_store_without_a_folder_of_its_own_keeps_its_folder_from_programs(
    tmp_path: Path, bubblewrap: Sandbox
) -> None:
    hidden = Policy(readable=(str(tmp_path),), hidden=(str(tmp_path / "toolgate.db"),))
    for _ in range(2):
        with pytest.raises(ProviderUnavailable, match="cannot be shown without it"):
            await bubblewrap.run(["true"], hidden)
        (tmp_path / "toolgate.db").touch()


def test_a_container_is_asked_for_an_empty_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    policy = Policy(readable=(str(tmp_path),), hidden=(str(tmp_path / "store"),))
    words = list(Container("docker", "image").words(["true"], policy, ""))
    assert f"--mount=type=tmpfs,target={tmp_path}/store,tmpfs-size=4096,readonly" in words
    (tmp_path / "linked").symlink_to("/opt")
    with pytest.raises(RefusedRootError, match="a link"):
        list(
            Container("docker", "image").words(
                ["true"], Policy(readable=(f"{tmp_path}/linked",)), ""
            )
        )
