"""A2A in its two wordings: what is asked in JSON-RPC, and what the answers say."""

from typing import Any, cast

import msgspec
import orjson

_MODES = ["text/plain", "application/json"]
DONE = frozenset({"completed", "failed", "canceled", "rejected"})
# The agent has said something, and waits.
WAITS = frozenset({"input_required", "auth_required"})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is `message` where the agent has answered at once, without a task."""

    text: str
    state: str
    task: str = ""
    context: str = ""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.state == "message" or self.state in DONE or self.state in WAITS


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message to an agent."""

    id: str
    text: str
    context: str = ""
    task: str = ""


def sending(said: Said, *, is_first: bool, tenant: str = "") -> dict[str, Any]:
    """The request that says it, and does not wait until all is done."""
    message: dict[str, Any] = {"messageId": said.id}
    if said.context:
        message["contextId"] = said.context
    if said.task:
        message["taskId"] = said.task
    if is_first:
        message |= {"role": "ROLE_USER", "parts": [{"text": said.text}]}
        configuration = {"acceptedOutputModes": _MODES, "returnImmediately": True}
    else:
        part = {"kind": "text", "text": said.text}
        message |= {"kind": "message", "role": "user", "parts": [part]}
        configuration = {"acceptedOutputModes": _MODES, "blocking": False}
    params: dict[str, Any] = {"message": message, "configuration": configuration}
    method = "SendMessage" if is_first else "message/send"
    return _request(said.id, method, params, tenant if is_first else "")


def looking(task: str, number: str, *, is_first: bool, tenant: str = "") -> dict[str, Any]:
    """The request that asks how far a task is."""
    method = "GetTask" if is_first else "tasks/get"
    return _request(number, method, {"id": task}, tenant if is_first else "")


def _request(number: str, method: str, params: dict[str, Any], tenant: str) -> dict[str, Any]:
    if tenant:
        params = {**params, "tenant": tenant}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def answer(result: dict[str, Any]) -> Answer:
    """What a result says; `ValueError` where it is none."""
    if isinstance(result.get("message"), dict) and "status" not in result:
        return _message(result["message"])
    if result.get("kind") == "message" or ("parts" in result and "status" not in result):
        return _message(result)
    task = result["task"] if isinstance(result.get("task"), dict) else result
    status = task.get("status")
    if not isinstance(status, dict) or not isinstance(task.get("id"), str):
        raise ValueError("neither a message nor a task")
    state = str(cast("dict[str, Any]", status).get("state", ""))
    return Answer(
        text=_of_task(task, cast("dict[str, Any]", status)),
        state=state.lower().removeprefix("task_state_").replace("-", "_"),
        task=task["id"],
        context=str(task.get("contextId") or ""),
    )


def _message(message: dict[str, Any]) -> Answer:
    return Answer(
        text=_text(message.get("parts")),
        state="message",
        context=str(message.get("contextId") or ""),
    )


def _of_task(task: dict[str, Any], status: dict[str, Any]) -> str:
    """Its results; where there are none, what it last said."""
    artifacts = cast("list[dict[str, Any]]", task.get("artifacts") or [])
    found = [_text(one.get("parts")) for one in artifacts]
    last = status.get("message")
    if isinstance(last, dict):
        found.append(_text(cast("dict[str, Any]", last).get("parts")))
    return "\n\n".join(text for text in found if text)


def _text(parts: Any) -> str:
    found: list[str] = []
    for part in cast("list[dict[str, Any]]", parts or []):
        if isinstance(part.get("text"), str):
            found.append(part["text"])
        elif "data" in part:
            found.append(orjson.dumps(part["data"]).decode())
        else:
            file = part.get("file")
            held = cast("dict[str, Any]", file) if isinstance(file, dict) else part
            name = held.get("filename") or held.get("name") or "without a name"
            found.append(f"[a file: {str(name)[:100]}]")
    return "\n".join(found)
