"""OpenAI: `tool_calls` of Chat Completions, and `function_call` items of the Responses API."""

from typing import Any, cast

from toolgate.messages.said import (
    MAX_TEXT,
    Given,
    Message,
    Said,
    call_id,
    calls_of,
    shown,
    tool_name,
    unclear,
)
from toolgate.messages.tolerant import read_object


def read_completion(response: dict[str, Any], most: int) -> Message:
    """A whole answer of Chat Completions; of several choices nobody can tell which is meant."""
    choices: object = response["choices"]
    if not isinstance(choices, list) or len(cast("list[object]", choices)) != 1:
        raise unclear("A completion with one choice can be run, and no other.")
    choice = cast("list[object]", choices)[0]
    message = cast("dict[str, object]", choice).get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise unclear("The choice holds no message.")
    return read_tool_calls(cast("dict[str, Any]", message), most)


def read_tool_calls(message: dict[str, Any], most: int) -> Message:
    """An assistant's message of Chat Completions."""
    if message.get("function_call") is not None:
        raise unclear("'function_call' of a message has no id to answer to; use 'tool_calls'.")
    listed: object = message.get("tool_calls")
    if listed is None:
        return Message(format="openai")
    if not isinstance(listed, list):
        raise unclear("'tool_calls' is a list.")
    given = [_tool_call(one) for one in cast("list[Any]", listed)]
    return Message(format="openai", calls=calls_of(given, _function, most))


def read_items(items: list[Any], most: int) -> Message:
    """The output of the Responses API: everything but function calls is left alone."""
    given = [
        (call_id(one.get("call_id"), "A function call"), one) for one in items if _is_call(one)
    ]
    return Message(format="responses", calls=calls_of(given, _said, most))


def _is_call(item: Any) -> bool:
    return isinstance(item, dict) and cast("dict[str, Any]", item).get("type") == "function_call"


def _tool_call(one: Any) -> Given:
    if not isinstance(one, dict):
        raise unclear("A tool call is an object.")
    call = cast("dict[str, Any]", one)
    return call_id(call.get("id"), "A tool call"), call


def _function(id_: str, call: dict[str, Any]) -> Said:
    function = call.get("function")
    if call.get("type", "function") != "function" or not isinstance(function, dict):
        return Said(id=id_, problem="only calls of functions can be run")
    return _said(id_, cast("dict[str, Any]", function))


def _said(id_: str, call: dict[str, Any]) -> Said:
    arguments = call.get("arguments")
    try:
        tool = tool_name(call.get("name"))
    except ValueError as error:
        return Said(id=id_, problem=str(error))
    if not isinstance(arguments, str) or len(arguments) > MAX_TEXT:
        told = f"the arguments of {shown(tool)} are a JSON text of at most {MAX_TEXT:,} characters"
        return Said(id=id_, tool=tool, problem=told)
    try:
        # What a model writes for a tool without parameters.
        args = read_object(arguments) if arguments.strip() else {}
    except ValueError as error:
        return Said(
            id=id_, tool=tool, problem=f"the text of the arguments of {shown(tool)} {error}"
        )
    return Said(id=id_, tool=tool, args=args)
