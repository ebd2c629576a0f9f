"""A hundred programs that try to get out: each works outside, and none inside."""

import json
import os
import subprocess

import pytest
from msgspec.structs import replace

from tests.sandbox.conftest import PYTHON
from tests.sandbox.place import ROOT, made
from toolgate.sandbox import seccomp
from toolgate.sandbox.probing import interpreter
from toolgate.sandbox.sandbox import Ended, Sandbox

_PROGRAM = (*PYTHON, str(ROOT / "tests/sandbox/escapes/run.py"))
# Who runs the tests may be kept from it as well, by a container around all of this.
_KEPT_FROM_US = frozenset({"read_environment_of_init"})
# Kernels before 6.6 do not have it.
_NEWER = frozenset({"run_as_its_owner_by_the_newer_call"})
_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def outside() -> dict[str, bool]:
    """What each does where nothing keeps it: the same program, the same listeners, no sandbox."""
    with made() as place:
        done = subprocess.run(
            _PROGRAM,
            input=json.dumps(place.told).encode(),
            stdout=subprocess.PIPE,
            pass_fds=(place.told["descriptor"],),
            cwd=place.told["given"],
            check=True,
        )
        found: dict[str, bool] = json.loads(done.stdout)
        assert {"tcp", "tcp6", "udp", "udp6", "unix", "engine", "abstract"} <= set(place.reached)
    return found


@pytest.mark.req("P4")
def test_every_program_works_outside(outside: dict[str, bool]) -> None:
    failed = {name for name, worked in outside.items() if not worked}
    assert len(outside) >= 80
    # Without root, a good part of them is refused by the kernel already.
    assert failed <= _KEPT_FROM_US | _NEWER if _ROOT else len(failed) < len(outside) // 2


@pytest.mark.req("P4")
@pytest.mark.parametrize("hosts", [(), ("named.test",)])
async def test_no_program_works_in_bubblewrap(
    bubblewrap: Sandbox, outside: dict[str, bool], hosts: tuple[str, ...]
) -> None:
    with made() as place:
        done = await bubblewrap.run(
            _PROGRAM,
            replace(place.policy(*interpreter()), hosts=hosts),
            stdin=json.dumps(place.told).encode(),
            folder=place.told["given"],
        )
        assert (done.ended, done.code) == (Ended.BY_ITSELF, 0), done.stderr
        inside: dict[str, bool] = json.loads(done.stdout)
        assert set(inside) == set(outside)
        assert [name for name, worked in inside.items() if worked] == []
        assert place.reached == []


# In gVisor these meet a kernel that is the program's own: it may do there as it likes.
_OF_ITS_OWN = frozenset(
    {"read_environment_of_init", "nested_users", "nested_users_by_clone", "new_mounts", "ring"}
    | {"read_the_log_of_the_kernel", "netlink", "trace_a_sibling", "be_traced", "be_preferred"}
    | {"read_what_the_kernel_tells_of_this_machine"}
)


@pytest.mark.req("P4")
async def test_no_program_gets_out_of_gvisor(gvisor: Sandbox, outside: dict[str, bool]) -> None:
    with made() as place:
        place.told["deeds"] = sorted(set(outside) - _OF_ITS_OWN)
        done = await gvisor.run(
            _PROGRAM,
            place.policy(*interpreter()),
            stdin=json.dumps(place.told).encode(),
            folder=place.told["given"],
        )
        assert (done.ended, done.code) == (Ended.BY_ITSELF, 0), done.stderr
        inside: dict[str, bool] = json.loads(done.stdout)
        assert len(inside) >= 80
        assert [name for name, worked in inside.items() if worked] == []
        assert place.reached == []


@pytest.mark.req("P4")
async def test_usual_modes_are_set_as_ever(bubblewrap: Sandbox) -> None:
    program = (
        "umask 022; touch a; chmod 751 a; mkdir -m 1777 b; install -m 640 a c; stat -c %a a b c"
    )
    with made() as place:
        done = await bubblewrap.run(
            ("/bin/sh", "-c", program), place.policy(*interpreter()), folder=place.told["given"]
        )
        assert done.stdout.split() == [b"751", b"1777", b"640"], done.stderr


def _none(_library: object) -> tuple[()]:
    return ()


@pytest.mark.req("P4")
async def test_without_the_part_about_modes_the_bit_would_be_there(
    bubblewrap: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ("/bin/sh", "-c", "touch a; chmod 4755 a; stat -c %a a")
    with made() as place:
        policy, folder = place.policy(*interpreter()), place.told["given"]
        kept = await bubblewrap.run(program, policy, folder=folder)
        assert kept.stdout.split() == [b"644"], kept.stderr
        monkeypatch.setattr(seccomp, "_modes", _none)
        seccomp.program.cache_clear()
        try:
            done = await bubblewrap.run(program, policy, folder=folder)
        finally:
            seccomp.program.cache_clear()
        assert done.stdout.split() == [b"4755"], done.stderr
