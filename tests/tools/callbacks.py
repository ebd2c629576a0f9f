"""Functions that stand for agents in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from toolgate.tools.agent.subordinate import Task

# What a test puts here is called by `further`.
further_by: list[Callable[[Task], Awaitable[Any]]] = []


async def echoed(task: Task) -> dict[str, Any]:
    return {"reply": f"{task.agent} heard: {task.message}", "depth": task.depth}


def plainly(task: Task) -> str:
    return f"by {task.caller.agent} for {task.caller.delegation[0].by}"


async def further(task: Task) -> Any:
    return await further_by[-1](task)


async def endless(_task: Task) -> str:
    await asyncio.Event().wait()
    return "never"


async def failing(_task: Task) -> str:
    raise RuntimeError("a secret that nobody should read")
