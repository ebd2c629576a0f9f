"""How much one program may use: bound by its group, and process by process where there is none."""

import math
import resource
from collections.abc import Iterator

from toolgate.sandbox.cgroup import Group, Hierarchy
from toolgate.sandbox.policy import Policy

_NAMES = {
    resource.RLIMIT_CORE: "core",
    resource.RLIMIT_NOFILE: "nofile",
    resource.RLIMIT_FSIZE: "fsize",
    resource.RLIMIT_CPU: "cpu",
    resource.RLIMIT_DATA: "data",
    resource.RLIMIT_NPROC: "nproc",
}
# The first process inside is the sandbox's own.
_OWN_PROCESSES = 1
# What the sandbox's own program needs for itself.
_LEAST_SIZE = 65_536
_LEAST_FILES = 32


def group_for(policy: Policy, found: Hierarchy | None) -> Group | None:
    """The group that a program is to be put into, where there can be one."""
    if found is None:
        return None
    # Beside the first inside there is the one outside that waits for it.
    return found.make(memory=policy.memory, processes=policy.processes + _OWN_PROCESSES + 1)


def bind(pid: int, policy: Policy, *, grouped: bool) -> None:
    """Bound a process that has not begun, and with it whatever it starts."""
    for which, soft, hard in _each(policy, grouped=grouped):
        _, most = resource.prlimit(pid, which)
        bound = (soft, hard)
        if most != resource.RLIM_INFINITY:
            bound = (min(soft, most), min(hard, most))
        resource.prlimit(pid, which, bound)


def words(policy: Policy) -> list[str]:
    """A command that binds itself and then runs another: where nobody outside has the right to."""
    bound = [
        f"--{_NAMES[which]}={soft}:{hard}" for which, soft, hard in _each(policy, grouped=False)
    ]
    return ["prlimit", *bound, "--"]


def _each(policy: Policy, *, grouped: bool) -> Iterator[tuple[int, int, int]]:
    yield resource.RLIMIT_CORE, 0, 0
    yield resource.RLIMIT_NOFILE, policy.open_files, policy.open_files
    yield resource.RLIMIT_FSIZE, policy.file_size, policy.file_size
    if policy.cpu > 0:
        # A program that ignores the first word is ended a second later.
        seconds = max(math.ceil(policy.cpu), 1)
        yield resource.RLIMIT_CPU, seconds, seconds + 1
    if not grouped:
        # Not the address space, of which runtimes reserve far more than they use.
        yield resource.RLIMIT_DATA, policy.memory, policy.memory
        most = policy.processes + _OWN_PROCESSES
        yield resource.RLIMIT_NPROC, most, most
