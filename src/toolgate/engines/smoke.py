"""A few made-up questions, asked before a policy is used: what only fails when it is evaluated."""

from collections.abc import Iterator
from typing import Any

import orjson

from toolgate.caller import Action
from toolgate.engines.bundle import Bundle
from toolgate.engines.interpreter import Interpreter, RegoError

CALL, LISTED, ALLOW = "data.toolgate_gate.call", "data.toolgate_gate.listed", "data.toolgate.allow"
VISIBLE, REASONS = "data.toolgate_gate.visible", "data.toolgate_gate.reasons"
_TOOL: dict[str, Any] = {
    "name": "get_order", "effect": "pure", "side_effects": [], "tags": [], "category": "",
    "categories": [], "permissions": [], "provider": "python", "destructive": False,
    "requires_confirmation": False, "requires_approval": False, "enabled": True, "source": "file",
}  # fmt: skip
_DONE: dict[str, Any] = {"calls": 0, "tools": {}}


def questions() -> Iterator[dict[str, Any]]:
    """Every action, for somebody and for nobody."""
    for action in Action:
        for name in ("", "someone"):
            yield {
                "action": action.value,
                "caller": {
                    "tenant": "acme", "agent": name, "user": name, "persona": name,
                    "roles": [name] if name else [], "session": name, "delegation": [],
                },
                "tool": _TOOL,
                "tools": {"get_order": _TOOL},
                "names": ["get_order"],
                "persona": {"can_add_tools": True if name else None},
                "args": {},
                "context": {"read_only": False, "no_web": False, "facts": {}},
                "time": {
                    "unix": 0.0, "iso": "1970-01-01T00:00:00Z", "weekday": "thursday",
                    "hour": 0, "minute": 0,
                },
                "history": {"session": _DONE, "turn": _DONE},
                "settings": {"unlisted_personas_may_add": False},
            }  # fmt: skip


def interpreter_of(bundle: Bundle) -> Interpreter:
    """An engine with this policy in it."""
    interpreter = Interpreter()
    for file, text in bundle.modules.items():
        interpreter.add_module(file, text)
    interpreter.set_data({**bundle.data, "toolgate_tools": {}})
    return interpreter


def problems(bundle: Bundle) -> list[str]:
    """What goes wrong when the policy is asked; each problem once."""
    found: dict[str, None] = {}
    try:
        interpreter = interpreter_of(bundle)
    except RegoError as error:
        return [str(error)]
    for question in questions():
        document = orjson.dumps(question)
        for rule in (ALLOW, CALL, LISTED, VISIBLE, REASONS):
            try:
                value = interpreter.ask(rule, document)
            except RegoError as error:
                found[str(error)] = None
                continue
            if rule == ALLOW and type(value) is not bool:
                found["package toolgate: `allow` is not true or false for every input."] = None
    return list(found)
