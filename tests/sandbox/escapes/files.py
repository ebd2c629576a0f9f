"""Files: to read what is hidden, to change what may be read, to replace what is protected."""

import contextlib
import ctypes
import glob
import os
import stat

from tests.sandbox.escapes.deed import Told, call, deed, libc, text, write

_NEW_MOUNTS, _BIND, _PRIVATE, _RECURSIVE = 0x20000, 4096, 1 << 18, 16384


@deed
def read_hidden(told: Told) -> bool:
    return told["mark"] in text(f"{told['hidden']}/mark")


@deed
def read_a_key(told: Told) -> bool:
    return told["mark"] in text(f"{told['hidden']}/.ssh/id_ed25519")


@deed
def list_beside(told: Told) -> bool:
    return "hidden" in os.listdir(os.path.dirname(told["hidden"]))  # noqa: PTH120, PTH208


@deed
def read_above_by_dots(told: Told) -> bool:
    return told["mark"] in text(f"{told['given']}/../hidden/mark")


@deed
def read_above_by_descriptor(told: Told) -> bool:
    above = os.open("..", os.O_RDONLY, dir_fd=os.open(told["given"], os.O_RDONLY))
    return told["mark"].encode() in os.read(os.open("hidden/mark", os.O_RDONLY, dir_fd=above), 99)


@deed
def read_environment_of_init(_: Told) -> bool:
    return text("/proc/1/environ") != ""


@deed
def read_environment_of_neighbour(told: Told) -> bool:
    return told["mark"] in text(f"/proc/{told['victim']}/environ")


@deed
def read_environment_of_anyone(told: Told) -> bool:
    return any(told["mark"] in _silent(path) for path in glob.glob("/proc/*/environ"))  # noqa: PTH207


def _silent(path: str) -> str:
    try:
        return text(path)
    except OSError:
        return ""


@deed
def have_its_environment(told: Told) -> bool:
    return told["mark"] in os.environ.values()


@deed
def read_users(_: Told) -> bool:
    return "root:" in text("/etc/passwd")


@deed
def read_passwords(_: Told) -> bool:
    return ":" in text("/etc/shadow")


@deed
def read_temporary_file(told: Told) -> bool:
    return told["mark"] in text(told["temporary"])


@deed
def read_shared_memory_file(told: Told) -> bool:
    return told["mark"] in text(told["shared"])


@deed
def write_hidden(told: Told) -> bool:
    return write(f"{told['hidden']}/written")


@deed
def write_shown(told: Told) -> bool:
    return write(f"{told['shown']}/written")


@deed
def truncate_shown(told: Told) -> bool:
    os.truncate(f"{told['shown']}/long", 1)
    return True


@deed
def remove_shown(told: Told) -> bool:
    os.remove(f"{told['shown']}/spare")  # noqa: PTH107
    return True


@deed
def change_mode_of_shown(told: Told) -> bool:
    os.chmod(f"{told['shown']}/mark", 0o777)  # noqa: PTH101, S103
    return True


@deed
def date_shown(told: Told) -> bool:
    os.utime(f"{told['shown']}/mark", (1, 1))
    return True


@deed
def symlink_and_read(told: Told) -> bool:
    os.symlink(f"{told['hidden']}/mark", f"{told['given']}/link")  # noqa: PTH211
    return told["mark"] in text(f"{told['given']}/link")


@deed
def symlink_and_write(told: Told) -> bool:
    os.symlink(f"{told['hidden']}/linked", f"{told['given']}/link_to_write")  # noqa: PTH211
    return write(f"{told['given']}/link_to_write")


@deed
def symlink_a_folder(told: Told) -> bool:
    os.symlink(told["hidden"], f"{told['given']}/folder")  # noqa: PTH211
    return told["mark"] in text(f"{told['given']}/folder/mark")


@deed
def hard_link_hidden(told: Told) -> bool:
    os.link(f"{told['hidden']}/mark", f"{told['given']}/hard")
    return told["mark"] in text(f"{told['given']}/hard")


@deed
def hard_link_shown_and_write(told: Told) -> bool:
    os.link(f"{told['shown']}/long", f"{told['given']}/hard_shown")
    return write(f"{told['given']}/hard_shown")


@deed
def rename_hidden(told: Told) -> bool:
    os.rename(f"{told['hidden']}/spare", f"{told['given']}/spare")  # noqa: PTH104
    return True


@deed
def rename_shown(told: Told) -> bool:
    os.rename(f"{told['shown']}/other", f"{told['given']}/other")  # noqa: PTH104
    return True


@deed
def read_by_root_of_self(told: Told) -> bool:
    return told["mark"] in text(f"/proc/self/root{told['hidden']}/mark")


@deed
def read_by_root_of_gateway(told: Told) -> bool:
    return told["mark"] in text(f"/proc/{told['pid']}/root{told['hidden']}/mark")


@deed
def read_by_root_of_parents(told: Told) -> bool:
    places = (f"{each}/root{told['hidden']}/mark" for each in glob.glob("/proc/[0-9]*"))  # noqa: PTH207
    return any(told["mark"] in _silent(place) for place in places)


@deed
def read_by_folder_of_neighbour(told: Told) -> bool:
    return os.listdir(f"/proc/{told['victim']}/cwd/.") != []  # noqa: PTH208


@deed
def read_inherited_descriptor(told: Told) -> bool:
    return told["mark"].encode() in os.pread(told["descriptor"], 99, 0)


@deed
def read_by_dev_fd(told: Told) -> bool:
    return told["mark"] in text(f"/dev/fd/{told['descriptor']}")


@deed
def read_descriptor_of_gateway(told: Told) -> bool:
    return told["mark"] in text(f"/proc/{told['pid']}/fd/{told['descriptor']}")


@deed
def write_protected(told: Told) -> bool:
    return write(f"{told['given']}/kept/settings.toml")


@deed
def remove_protected(told: Told) -> bool:
    os.remove(f"{told['given']}/kept/settings.toml")  # noqa: PTH107
    return True


@deed
def create_protected(told: Told) -> bool:
    return write(f"{told['given']}/empty/toolgate.toml")


@deed
def create_protected_folder(told: Told) -> bool:
    os.makedirs(f"{told['given']}/empty/policies")  # noqa: PTH103
    return write(f"{told['given']}/empty/policies/allow.rego")


@deed
def symlink_protected(told: Told) -> bool:
    write(f"{told['given']}/mine.toml")
    os.symlink(f"{told['given']}/mine.toml", f"{told['given']}/kept/new.toml")  # noqa: PTH211
    os.replace(f"{told['given']}/kept/new.toml", f"{told['given']}/kept/second.toml")  # noqa: PTH105
    return True


@deed
def rename_over_protected(told: Told) -> bool:
    write(f"{told['given']}/theirs.toml")
    os.replace(f"{told['given']}/theirs.toml", f"{told['given']}/kept/second.toml")  # noqa: PTH105
    return True


@deed
def hard_link_protected(told: Told) -> bool:
    os.link(f"{told['given']}/kept/second.toml", f"{told['given']}/alias")
    return write(f"{told['given']}/alias")


@deed
def rename_parent_of_protected(told: Told) -> bool:
    os.rename(f"{told['given']}/moved", f"{told['given']}/aside")  # noqa: PTH104
    os.makedirs(f"{told['given']}/moved/policies")  # noqa: PTH103
    return write(f"{told['given']}/moved/policies/allow.rego")


@deed
def write_into_protected_folder(told: Told) -> bool:
    return write(f"{told['given']}/moved/policies/new.rego")


@deed
def replace_link_to_protected(told: Told) -> bool:
    os.remove(f"{told['given']}/linked/policies")  # noqa: PTH107
    os.makedirs(f"{told['given']}/linked/policies")  # noqa: PTH103
    return write(f"{told['given']}/linked/policies/allow.rego")


@deed
def mount_hidden(told: Told) -> bool:
    libc("unshare", _NEW_MOUNTS)
    libc("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    place = f"{told['given']}/mounted"
    os.mkdir(place)  # noqa: PTH102
    libc("mount", told["hidden"].encode(), place.encode(), None, _BIND, None)
    return told["mark"] in text(f"{place}/mark")


@deed
def change_root(told: Told) -> bool:
    os.chroot(told["given"])
    return True


@deed
def make_a_device(told: Told) -> bool:
    os.mknod(f"{told['given']}/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0))
    return True


@deed
def read_kernel_log(_: Told) -> bool:
    return bool(os.read(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK), 8192))


@deed
def open_kernel_settings(_: Told) -> bool:
    os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    return True


@deed
def list_kernel_objects(_: Told) -> bool:
    return os.listdir("/sys/kernel") != []  # noqa: PTH208


@deed
def list_groups(_: Told) -> bool:
    return os.listdir("/sys/fs/cgroup") != []  # noqa: PTH208


@deed
def open_by_handle(told: Told) -> bool:
    handle = (ctypes.c_ubyte * 136)()
    ctypes.memmove(handle, (128).to_bytes(4, "little"), 4)
    path, mount = told["given"].encode(), ctypes.c_int()
    call("name_to_handle_at", -100, path, handle, ctypes.byref(mount), 0)
    call("open_by_handle_at", os.open(told["given"], os.O_RDONLY), handle, os.O_RDONLY)
    return True


@deed
def give_file_away(told: Told) -> bool:
    write(f"{told['given']}/present")
    os.chown(f"{told['given']}/present", 12345, 12345)
    return True


@deed
def trust_a_file(told: Told) -> bool:
    write(f"{told['given']}/trusted")
    os.setxattr(f"{told['given']}/trusted", "trusted.toolgate", b"1")
    return True


@deed
def read_what_the_kernel_tells_of_this_machine(_: Told) -> bool:
    """Some are there on any kernel; what cannot be read is not told."""
    found = ""
    for name in ("interrupts", "cmdline", "modules", "iomem", "slabinfo", "vmallocinfo"):
        with contextlib.suppress(OSError):
            found += text(f"/proc/{name}")
    with contextlib.suppress(OSError):
        found += os.read(os.open("/proc/kpagecount", os.O_RDONLY), 8).decode("latin-1")
    return found != ""
