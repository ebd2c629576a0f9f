"""Groups of processes whose memory and number the kernel bounds: control groups, version 1 or 2.

A group is made for one program below the group that this process is in, and removed after it.
Where that cannot be, there is none, and limits hold for each process by itself.
"""

import contextlib
import functools
import itertools
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

_MOUNTS = Path("/proc/self/mountinfo")
_MINE = Path("/proc/self/cgroup")
_NAME = re.compile(r"toolgate-(\d+)-\d+\Z")
_COUNT = itertools.count(1)
# Groups whose processes are over, but which the kernel would not let go yet.
_LEFT: "set[Group]" = set()
# The file that says how often a process was ended for want of memory.
_EVENTS = {1: "memory.oom_control", 2: "memory.events"}
# Fixed text: groups and command are its arguments.
_SCRIPT = """
while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done
shift
unset PWD OLDPWD SHLVL
exec "$@"
"""
_JOIN = ("/bin/sh", "-c", _SCRIPT, "sh")
_OUT_OF_MEMORY = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One program's group: a folder in each hierarchy that bounds something."""

    memory: Path
    processes: Path
    version: int

    @property
    def _folders(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.memory, self.processes)))

    def joining(self) -> tuple[str, ...]:
        """The words before a command that make it part of the group, with all that it starts.

        It joins by itself: whoever puts another process into a group waits for every processor of
        the machine, some ten milliseconds. In version 1 a lone thread that joins waits for nobody.
        """
        file = "cgroup.procs" if self.version == 2 else "tasks"
        return (*_JOIN, *(str(folder / file) for folder in self._folders), "--")

    @property
    def ran_out(self) -> bool:
        """Whether something in it was ended for want of memory."""
        with contextlib.suppress(OSError):
            found = _OUT_OF_MEMORY.search((self.memory / _EVENTS[self.version]).read_text())
            return found is not None and int(found[1]) > 0
        return False

    def members(self) -> list[int]:
        """Who is in it."""
        with contextlib.suppress(OSError):
            return list(map(int, (self.processes / "cgroup.procs").read_text().split()))
        return []

    def remove(self) -> bool:
        """Whether it is gone; while somebody is in it, it stays."""
        gone = True
        for folder in self._folders:
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                gone = False
        (_LEFT.discard if gone else _LEFT.add)(self)
        return gone


class Hierarchy(msgspec.Struct, frozen=True, kw_only=True):
    """Where groups can be made, and what their files are called."""

    memory: Path
    processes: Path
    version: int

    def make(self, *, memory: int, processes: int) -> Group:
        """A group with these limits; `OSError` where there cannot be one."""
        for left in tuple(_LEFT):
            left.remove()
        name = f"toolgate-{os.getpid()}-{next(_COUNT)}"
        group = self._group(name)
        try:
            group.memory.mkdir()
            group.processes.mkdir(exist_ok=group.processes == group.memory)
            for file, value, needed in self._limits(memory):
                _write(f"{group.memory}/{file}", value, needed=needed)
            _write(f"{group.processes}/pids.max", str(processes), needed=True)
        except OSError:
            group.remove()
            raise
        return group

    def _group(self, name: str) -> Group:
        return Group(
            memory=self.memory / name, processes=self.processes / name, version=self.version
        )

    def _limits(self, memory: int) -> tuple[tuple[str, str, bool], ...]:
        # Swap is memory too; not every kernel counts it.
        if self.version == 2:
            return (
                ("memory.max", str(memory), True),
                ("memory.swap.max", "0", False),
                ("memory.oom.group", "1", False),
            )
        return (
            ("memory.limit_in_bytes", str(memory), True),
            ("memory.memsw.limit_in_bytes", str(memory), False),
        )

    def sweep(self) -> None:
        """Remove the groups of processes of ours that are no more."""
        for folder in self.processes.glob("toolgate-*-*"):
            named = _NAME.match(folder.name)
            if named is None or Path(f"/proc/{named[1]}").exists():
                continue
            group = self._group(folder.name)
            # What was being started when they ended waits for a word that cannot come.
            for pid in group.members():
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
            group.remove()


@functools.cache
def hierarchy() -> Hierarchy | None:
    """The place for groups, found by making one; none where this process may not."""
    try:
        possible = candidates(_MOUNTS.read_text(), _MINE.read_text())
    except OSError:
        return None
    for found in possible:
        with contextlib.suppress(OSError):
            group = found.make(memory=64 * 1024 * 1024, processes=8)
            group.remove()
            found.sweep()
            return found
    return None


def candidates(mounted: str, belongs: str) -> list[Hierarchy]:
    """Where groups may be possible, by what the kernel says of mounts and of this process."""
    mounts, mine = _mounts(mounted), _memberships(belongs)
    found: list[Hierarchy] = []
    if "" in mounts and "" in mine:
        own = mounts[""] / mine[""].lstrip("/")
        # A group with processes of its own can have none below it, unless it is the topmost; who
        # was given a group to divide stands in one below it, and divides the one above.
        found += [
            Hierarchy(memory=folder, processes=folder, version=2)
            for folder in (own, own.parent)
            if mounts[""] in (folder, *folder.parents) and _divides(folder)
        ]
    if all(kind in mounts and kind in mine for kind in ("memory", "pids")):
        memory, pids = (mounts[kind] / mine[kind].lstrip("/") for kind in ("memory", "pids"))
        found.append(Hierarchy(memory=memory, processes=pids, version=1))
    return found


def _divides(folder: Path) -> bool:
    control = folder / "cgroup.subtree_control"
    try:
        given = set((folder / "cgroup.controllers").read_text().split())
        if not {"memory", "pids"} <= given:
            return False
        if not {"memory", "pids"} <= set(control.read_text().split()):
            control.write_text("+memory +pids")
    except OSError:
        return False
    return True


def _mounts(text: str) -> Mapping[str, Path]:
    """Where each hierarchy of groups is mounted; version 2 has no name."""
    found: dict[str, Path] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        place = Path(before.split(" ")[4])
        if kind == "cgroup2":
            found.setdefault("", place)
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, place)
    return found


def _memberships(text: str) -> Mapping[str, str]:
    """The group of this process in each hierarchy."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, kinds, path = line.split(":", 2)
        for kind in kinds.split(","):
            found[kind] = path
    return found


def _write(file: str, value: str, *, needed: bool) -> None:
    try:
        # No file object is made for it: the start of a program waits for this.
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(opened, value.encode())
        finally:
            os.close(opened)
    except OSError:
        if needed:
            raise
