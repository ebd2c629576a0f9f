"""The sandboxes that `make services` brings, on PATH as an operator would have them."""

import os
import shutil

from tests.servers.process import absent, services

_FOLDERS = ("bubblewrap/usr/bin", "gvisor/usr/bin")


def on_path() -> None:
    """For this process and whatever it starts; what the machine has comes after."""
    brought = [str(services() / folder) for folder in _FOLDERS]
    os.environ["PATH"] = os.pathsep.join([*brought, os.environ.get("PATH", os.defpath)])


def bubblewrap() -> str:
    """Its program."""
    program = shutil.which("bwrap")
    if program is None:
        raise absent("bubblewrap")
    return program


def gvisor() -> str:
    """Its program."""
    program = shutil.which("runsc")
    if program is None:
        raise absent("gVisor")
    return program
