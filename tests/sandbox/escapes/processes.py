"""Processes: to see, signal, trace, or outlive others; to be more than one was made."""

import ctypes
import os
import resource
import signal

from tests.sandbox.escapes.deed import Told, call, deed, libc, text

_SEIZE, _TRACEME, _NO_NEW_PRIVILEGES = 0x4206, 0, 39


@deed
def see_others(told: Told) -> bool:
    return os.path.isdir(f"/proc/{told['victim']}")  # noqa: PTH112


@deed
def see_what_others_run(told: Told) -> bool:
    return "sleep" in text(f"/proc/{told['victim']}/cmdline")


@deed
def signal_others(told: Told) -> bool:
    os.kill(told["victim"], 0)
    return True


@deed
def stop_others(told: Told) -> bool:
    os.kill(told["victim"], signal.SIGCONT)
    return True


@deed
def hold_others(told: Told) -> bool:
    os.pidfd_open(told["victim"])
    return True


@deed
def take_descriptors_of_others(told: Told) -> bool:
    return call("pidfd_getfd", os.pidfd_open(told["victim"]), 0, 0) >= 0


@deed
def compare_others(told: Told) -> bool:
    return call("kcmp", os.getpid(), told["victim"], 1, 0, 0) >= 0


@deed
def trace_others(told: Told) -> bool:
    libc("ptrace", _SEIZE, told["victim"], None, None)
    return True


@deed
def trace_a_sibling(_: Told) -> bool:
    """One that it started itself, and that lets it."""
    sibling = os.fork()
    if sibling == 0:
        signal.pause()
    try:
        libc("ptrace", _SEIZE, sibling, None, None)
    finally:
        os.kill(sibling, signal.SIGKILL)
    return True


@deed
def be_traced(_: Told) -> bool:
    libc("ptrace", _TRACEME, 0, None, None)
    return True


@deed
def read_memory_of_others(told: Told) -> bool:
    return bool(os.read(os.open(f"/proc/{told['victim']}/maps", os.O_RDONLY), 64))


@deed
def open_memory_of_others(told: Told) -> bool:
    os.open(f"/proc/{told['victim']}/mem", os.O_RDONLY)
    return True


@deed
def copy_memory_of_a_sibling(_: Told) -> bool:
    held = ctypes.create_string_buffer(b"held")
    sibling = os.fork()
    if sibling == 0:
        signal.pause()
    here = ctypes.create_string_buffer(4)
    to = (ctypes.c_void_p * 2)(ctypes.addressof(here), 4)
    at = (ctypes.c_void_p * 2)(ctypes.addressof(held), 4)
    try:
        libc("process_vm_readv", sibling, to, 1, at, 1, 0)
    finally:
        os.kill(sibling, signal.SIGKILL)
    return here.raw == b"held"


@deed
def slow_others_down(told: Told) -> bool:
    os.setpriority(os.PRIO_PROCESS, told["victim"], 0)
    return True


@deed
def move_others(told: Told) -> bool:
    os.sched_setaffinity(told["victim"], os.sched_getaffinity(told["victim"]))
    return True


@deed
def limit_others(told: Told) -> bool:
    resource.prlimit(told["victim"], resource.RLIMIT_CORE, (0, 0))
    return True


@deed
def share_memory_by_key(told: Told) -> bool:
    return libc("shmget", told["segment"], 0, 0) >= 0


@deed
def become_another(_: Told) -> bool:
    os.setresuid(12345, 12345, 12345)
    return True


@deed
def leave_groups(_: Told) -> bool:
    os.setgroups([12345])
    return True


@deed
def have_a_capability(_: Told) -> bool:
    lines = dict(line.split(":\t", 1) for line in text("/proc/self/status").splitlines())
    return int(lines["CapEff"], 16) != 0 or int(lines["CapBnd"], 16) != 0


@deed
def gain_by_running(_: Told) -> bool:
    return libc("prctl", _NO_NEW_PRIVILEGES, 0, 0, 0, 0) == 0


@deed
def be_preferred(_: Told) -> bool:
    os.nice(-5)
    return True
