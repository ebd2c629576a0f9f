"""Where a command finds its program and its folders, and which of them it may not have."""

import os
import shutil
from pathlib import Path

import msgspec

from toolgate.sandbox import executable
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.roots import mounts
from toolgate.sandbox.ways import RefusedRootError, settled

# What every program is shown.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_BESIDE = "name a folder beside it"


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where definitions are at home, and what no command may touch."""

    root: Path
    # Settings, definitions and policies: whoever could change them would be the operator.
    own: tuple[Path, ...] = ()
    # The store, with what proves who somebody is.
    secret: tuple[Path, ...] = ()
    # What every program may read beside the system.
    readable: tuple[str, ...] = ()
    # Whether programs run with the files of this machine, and not of an image.
    is_here: bool = True


def program_at(name: str, path: str, root: Path, writable: tuple[str, ...]) -> str:
    """Found once, here; a relative one is beside the settings, never where the command runs."""
    if "/" in name:
        found = str((root / name).absolute())
    else:
        places = [place for place in path.split(":") if place.startswith("/")]
        found = shutil.which(name, path=":".join(places)) or ""
    if not found or not os.access(found, os.X_OK) or Path(found).is_dir():
        raise ValueError(f"names the program {name[:60]!r}, which is not on this machine")
    for root_of in writable:
        if is_in(found, root_of) or is_in(os.path.realpath(found), root_of):
            raise ValueError(f"runs {name[:60]!r} out of a folder that it may change; move it")
    return found


def check_begins(around: Surroundings, program: str, policy: Policy, *, path: str) -> None:
    """`ValueError` where it lacks what it runs with, as long as that is known beforehand."""
    if not around.is_here:
        return
    readable = (*policy.readable, *around.readable)
    try:
        shown = mounts(msgspec.structs.replace(policy, readable=readable))
    except RefusedRootError:
        # A root of the settings; what is wrong with it is told when something runs.
        return
    try:
        executable.check(program, shown, path=path, folder="/")
    except RefusedRootError as unseen:
        raise ValueError(f"cannot begin: {unseen}") from None


def root(around: Surroundings, text: str, key: str) -> str:
    if not text or text.startswith("~") or "{" in text:
        raise ValueError(
            f".{key} is {text[:60]!r}, which is no path; write one beside the settings"
        )
    try:
        found = settled(str(around.root.absolute() / text), [str(around.root.absolute())])
    except RefusedRootError:
        raise ValueError(
            f".{key} names {text[:60]!r}, and on the way is a link that a program may have put "
            "there; write where it is to lead, or remove it"
        ) from None
    if found == "/" or not Path(found).exists():
        lacking = "is the whole machine" if found == "/" else "is not there"
        raise ValueError(f".{key} names {text[:60]!r}, which {lacking}; name a folder that is")
    for secret in around.secret:
        if _overlap(found, os.path.realpath(secret)):
            raise ValueError(f".{key} names {text[:60]!r}, which holds toolgate's store; {_BESIDE}")
    if key == "writable" and any(is_in(found, os.path.realpath(own)) for own in around.own):
        raise ValueError(f".{key} names {text[:60]!r}, a file of toolgate's own; {_BESIDE}")
    return found


def _overlap(one: str, other: str) -> bool:
    return is_in(one, other) or is_in(other, one)


def is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
