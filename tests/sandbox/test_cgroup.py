"""Groups of processes: found in both versions, with their limits written; no kernel is asked."""

from pathlib import Path

import pytest

from toolgate.sandbox.cgroup import Hierarchy, candidates

_ONE = (
    "30 29 0:26 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "31 29 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "32 29 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.mark.req("P4")
def test_in_version_1_each_kind_has_its_own_place() -> None:
    [found] = candidates(_ONE, "8:pids:/\n4:memory:/service/a:b\n0::/\n")
    assert found.version == 1
    assert found.memory == Path("/sys/fs/cgroup/memory/service/a:b")
    assert found.processes == Path("/sys/fs/cgroup/pids")


@pytest.mark.req("P4")
def test_in_version_2_the_own_group_is_divided_or_the_one_above(tmp_path: Path) -> None:
    above = tmp_path / "service"
    own = above / "main"
    own.mkdir(parents=True)
    (above / "cgroup.controllers").write_text("cpu memory pids\n")
    (above / "cgroup.subtree_control").write_text("memory pids\n")
    (own / "cgroup.controllers").write_text("cpu\n")
    mounted = f"30 29 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    [found] = candidates(mounted, "0::/service/main\n")
    assert (found.memory, found.processes, found.version) == (above, above, 2)
    # Nothing above where it is mounted is ever touched.
    assert candidates(mounted, "0::/\n") == []


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    ("version", "files"),
    [
        (1, {"memory.limit_in_bytes": "1000", "memory.memsw.limit_in_bytes": "1000"}),
        (2, {"memory.max": "1000", "memory.swap.max": "0", "memory.oom.group": "1"}),
    ],
)
def test_limits_are_written_as_each_version_has_them(
    tmp_path: Path, version: int, files: dict[str, str]
) -> None:
    group = Hierarchy(memory=tmp_path, processes=tmp_path, version=version).make(
        memory=1000, processes=7
    )
    written = {file.name: file.read_text() for file in group.memory.iterdir()}
    assert written == files | {"pids.max": "7"}
    assert not group.ran_out
    events = {1: "memory.oom_control", 2: "memory.events"}[version]
    (group.memory / events).write_text("under_oom 0\noom_kill 1\n")
    assert group.ran_out
    joined = "tasks" if version == 1 else "cgroup.procs"
    assert str(group.memory / joined) in group.joining()
