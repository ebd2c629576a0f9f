"""What `toolgate serve` says when it is ready. What is meant to be pasted stands flush left."""

import shutil
import sys
from typing import NamedTuple

from toolgate.cli import show
from toolgate.tenancy.first import AGENT, TENANT, FirstKeys

OBSERVES = (
    'The policy only observes ([policy] mode = "observe"): '
    "what it would refuse is recorded, and passes."
)
_BODY = '{"tool": "echo", "args": {"text": "hello"}}'


class Greeting(NamedTuple):
    """Where the server is, for itself and for callers, and the keys if they are new."""

    bound: str
    public_url: str
    keys: FirstKeys | None
    observes: bool = False
    # Where a thread of its own answers probes, if one does.
    health: str = ""

    @property
    def address(self) -> str:
        """What callers use."""
        return self.public_url or self.bound


def greet(greeting: Greeting, *, json: bool) -> None:
    """Tell whoever started it."""
    keys = greeting.keys
    if json:
        shown = {"admin": keys.admin, "agent": keys.agent} if keys else None
        show.as_json(
            {
                "url": greeting.address,
                "bound": greeting.bound,
                "keys": shown,
                "mode": "observe" if greeting.observes else "enforce",
                "health": greeting.health or None,
            }
        )
        return
    show.line(f"toolgate listens on {greeting.bound}")
    if greeting.public_url:
        show.line(f"Callers use {greeting.public_url}")
    if greeting.health:
        show.line(f"Probes are answered at {greeting.health}/healthz and {greeting.health}/readyz")
    if greeting.observes:
        show.line(OBSERVES)
    if keys:
        show.line("")
        show.line("Two keys were made. They are shown this once; keep them.")
        show.line(f"  admin   {keys.admin}")
        show.line(f"  agent   {keys.agent}   (tenant {TENANT}, agent {AGENT})")
    _explain_how_to_connect(greeting.address, keys.agent if keys else "YOUR_KEY")
    if not keys:
        show.line("")
        show.line("Keys are shown only when they are made. To make another, in this folder:")
        # Whoever ran `make run` has not put it on PATH.
        us = "toolgate" if shutil.which("toolgate") else sys.argv[0]
        show.line(f"{us} keys add --role agent --tenant {TENANT} --agent {AGENT} --create")
    show.line("")
    show.line("Stop with Ctrl-C.")


def _explain_how_to_connect(address: str, key: str) -> None:
    header = f"-H 'Authorization: Bearer {key}'"
    show.line("")
    show.line("List what the agent may call:")
    show.line(f"curl {header} {address}/v1/tools")
    show.line("")
    show.line("Call a tool:")
    show.line(f"curl {header} {address}/v1/call -d '{_BODY}'")
    show.line("")
    show.line("Connect an MCP client:")
    show.line(f"{address}/mcp   with the header   Authorization: Bearer {key}")
    show.line("")
    show.line("From Python:")
    show.line("import asyncio")
    show.line("from toolgate import Toolgate")
    show.line("async def main():")
    show.line(f"    async with Toolgate.connect('{address}', '{key}') as gate:")
    show.line("        print((await gate.call('echo', {'text': 'hello'})).data)")
    # Where it is pasted into an interpreter, only an empty line ends the function.
    show.line("")
    show.line("asyncio.run(main())")
