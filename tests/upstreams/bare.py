"""Programs without a sandbox around them: real processes, a group each. What keeps them in is
proven elsewhere; here it is who talks to them that is tested."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.sandbox.policy import Policy
from toolgate.sandbox.sandbox import Finished, Running, Sandbox
from toolgate.settings.outward import McpServer
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.dialing import connected

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """One that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.pid = process.pid

    async def wait(self) -> int:
        return await self._process.wait()

    async def end(self, patience: float = 2.0) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        # Pipes that nobody reads to their end would keep it waiting.
        transport = getattr(self._process, "_transport")  # noqa: B009
        transport.close()
        await self._process.wait()


class Bare:
    """The port of a sandbox; `pids` are all that it has started."""

    name = "bare"

    def __init__(self) -> None:
        self.pids: list[int] = []
        # The one that was started last.
        self.last: Program | None = None
        self.policies: list[Policy] = []

    async def run(
        self, argv: Sequence[str], policy: Policy, *, stdin: bytes = b"", folder: str = ""
    ) -> Finished:
        raise NotImplementedError

    async def start(self, argv: Sequence[str], policy: Policy, *, folder: str = "") -> Running:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(policy.env),
            cwd=ROOT,
            start_new_session=True,
        )
        self.pids.append(process.pid)
        self.policies.append(policy)
        self.last = Program(process)
        return self.last


def program(
    *args: str,
    sandbox: Sandbox,
    elicitation: bool = False,
    secrets: Mapping[str, str] | None = None,
    script: str = "misbehaving",
    policy: Policy | None = None,
    timeout: float = 5,
) -> Connected:
    """The misbehaving server, or another, as a program. `-S -E` start it in a third of the time."""
    named = {name: f"HERE_{name}" for name in secrets or {}}
    settings = McpServer(
        command=(
            os.path.realpath(sys.executable),
            "-S",
            "-E",
            str(ROOT / f"tests/upstreams/{script}.py"),
        ),
        args=args,
        env={"PATH": os.environ.get("PATH", "")},
        secrets_env=named,
        elicitation=elicitation,
        timeout=timeout,
    )
    held = {f"HERE_{name}": value for name, value in (secrets or {}).items()}
    return connected(
        "bad", settings, client=HttpClient(Guard()), sandbox=sandbox, environ=held, policy=policy
    )


def address(
    port: int,
    client: HttpClient,
    *,
    headers: Mapping[str, str] | None = None,
    elicitation: bool = False,
    timeout: float = 5,
) -> Connected:
    """A server over HTTP, with `headers` from the environment."""
    named = {name: f"HERE_{number}" for number, name in enumerate(headers or {})}
    settings = McpServer(
        url=f"http://127.0.0.1:{port}/mcp",
        headers_env=named,
        timeout=timeout,
        elicitation=elicitation,
    )
    held = {f"HERE_{number}": one for number, one in enumerate((headers or {}).values())}
    return connected("bad", settings, client=client, sandbox=Bare(), environ=held)
