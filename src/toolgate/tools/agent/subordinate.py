"""An agent that tasks are handed to: a service, or a function of the operator's in this process."""

import asyncio
import importlib
import inspect
from contextvars import ContextVar
from typing import Any, cast

import msgspec
import orjson

from toolgate.call import Call
from toolgate.caller import Caller
from toolgate.errors import ProviderUnavailable, TimedOut, ToolError
from toolgate.net.client import Response
from toolgate.settings.builtin import Subordinate
from toolgate.tools.agent.exchange import credential, posted, seconds_left
from toolgate.tools.means import Means

# How deep a task is, in the words of its context, and in a header.
FACT = "toolgate.depth"
HEADER = "X-Toolgate-Depth"
_WORDS = ("reply", "response", "text", "message", "output")
_depth: ContextVar[int] = ContextVar("toolgate_agent_depth", default=0)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a subordinate is given. `caller` may call at most what its superior may."""

    agent: str
    message: str
    caller: Caller
    depth: int
    call_id: str
    # The same again where the task is handed over twice.
    key: str


class Reply(msgspec.Struct, frozen=True):
    """What it says, and what else it gives."""

    text: str
    data: dict[str, Any] | None = None


def depth_of(caller: Caller) -> int:
    """How often the task was handed on, by whichever way that is known."""
    told = dict(caller.context.facts).get(FACT, 0)
    said = told if type(told) is int else 0
    return max(_depth.get(), len(caller.delegation), said)


async def asked(means: Means, call: Call, name: str, message: str) -> Reply:
    """Hand it over, and wait for the answer."""
    settings = means.settings.agent
    found = settings.subordinates.get(name)
    if found is None:
        known = ", ".join(sorted(settings.subordinates)) or "none"
        raise ToolError(f"There is no subordinate agent {name[:64]!r}. Those there are: {known}.")
    depth = depth_of(call.caller) + 1
    if depth > settings.depth:
        raise ToolError(
            f"The task was handed on {depth - 1} times already, and may be {settings.depth} times. "
            "Do it yourself, or say what is missing."
        )
    task = Task(
        agent=name,
        message=message,
        caller=_delegated(call.caller, name),
        depth=depth,
        call_id=call.id,
        key=call.downstream_key or call.id,
    )
    if found.callback:
        return await _called(task, found.callback, seconds_left(means, call))
    return await _sent(means, call, task, found)


def _delegated(caller: Caller, name: str) -> Caller:
    """A caller without a name of its own has nobody to delegate by."""
    return caller.delegate(name) if caller.agent else caller


async def _called(task: Task, callback: str, seconds: float) -> Reply:
    module, _, name = callback.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ProviderUnavailable(
            f"The function behind {task.agent!r} is not to be found. Nothing was begun: ask the "
            "operator to look at [tools.agent.subordinates]."
        ) from None
    before = _depth.set(task.depth)
    try:
        async with asyncio.timeout(seconds):
            if inspect.iscoroutinefunction(function):
                said = await function(task)
            else:
                said = await asyncio.to_thread(function, task)
    except TimeoutError:
        raise TimedOut(f"{task.agent!r} was not done within {seconds:.0f} s.") from None
    finally:
        _depth.reset(before)
    return _reply(said)


async def _sent(means: Means, call: Call, task: Task, to: Subordinate) -> Reply:
    caller = call.caller
    body = {
        "agent": task.agent,
        "message": task.message,
        "depth": task.depth,
        "call_id": task.call_id,
        "caller": {
            "tenant": caller.tenant,
            "agent": caller.agent,
            "user": caller.user,
            "persona": caller.persona,
            "session": caller.session,
        },
        # What it calls here itself it calls in this context, so that there is an end to it.
        "context": {"facts": {FACT: task.depth}},
    }
    answer = await posted(
        means.client.named(to.url),
        to.url,
        body,
        who=f"The agent {task.agent!r}",
        seconds=seconds_left(means, call),
        headers={"Idempotency-Key": task.key, HEADER: str(task.depth)},
        credentials=credential(means, task.agent, to.url, to.key_env),
    )
    return _reply(_read(answer))


def _read(answer: Response) -> Any:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            pass
    return answer.body.decode("utf-8", "replace")


def _reply(said: Any) -> Reply:
    if isinstance(said, str):
        return Reply(said)
    if isinstance(said, dict):
        given = cast("dict[str, Any]", said)
        found = next((given[word] for word in _WORDS if isinstance(given.get(word), str)), None)
        if found is not None:
            rest = {name: value for name, value in given.items() if value is not found}
            return Reply(found, rest or None)
        return Reply("", given)
    return Reply("" if said is None else orjson.dumps(said).decode())
