"""A process of its own with a warm gate: it calls when it is told to, and says what came of it.

`python -m tests.gate.racer FOLDER MARKS [unguarded]`. Each effect is a line in MARKS, written by
the tool itself: the test believes that file, and not the gate's answers.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.gate.unguarded import begun_in_any_world
from toolgate import Caller, CallRefused, Toolgate, tool
from toolgate.executor.recording.twins import Twins
from toolgate.settings.settings import Settings
from toolgate.tenancy.tenancy import Tenancy

ME = Caller(tenant="acme", agent="billing", user="ann")


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


async def asleep(self: Tenancy) -> None:
    """The guard, taken out."""


async def main(folder: Path, marks: Path) -> None:
    @tool(effect="irreversible")
    async def effect(race: str) -> None:
        """Leave a mark."""
        with marks.open("ab") as file:
            file.write(f"{race} {os.getpid()}\n".encode())

    async with Toolgate.open(Settings(root=folder)) as gate:
        gate.add(effect)
        say("ready")
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            try:
                await gate.call("effect", {"race": line.strip()}, caller=ME)
                say("allowed")
            except CallRefused as error:
                say(error.code)


if __name__ == "__main__":
    if sys.argv[3:] == ["unguarded"]:
        Tenancy.freshen = asleep
        Twins._begun = begun_in_any_world  # pyright: ignore[reportPrivateUsage]
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
