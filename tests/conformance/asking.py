"""The suite's tools that ask their caller something: by request, or by an answer to call again."""

import asyncio
from typing import Any

from tests.conformance.fixtures import STEP_S
from toolgate import Call, tool
from toolgate.asked import Question

TEXT = {"type": "string"}
FLAG = {"type": "boolean"}


def form(message: str, properties: dict[str, Any], *required: str) -> Question:
    """What the user is asked to fill in."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return Question("elicitation/create", {"message": message, "requestedSchema": schema})


def sample(text: str, most: int) -> Question:
    """What the client's model is asked."""
    said = {"role": "user", "content": {"type": "text", "text": text}}
    return Question("sampling/createMessage", {"messages": [said], "maxTokens": most})


ROOTS = Question("roots/list", {})
NAME = form("What is your name?", {"name": TEXT}, "name")
CONFIRM = form("Please confirm", {"ok": FLAG}, "ok")
_DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}
DEFAULTS = form("Please review", _DEFAULTS)
_TITLED = [{"const": f"value{one}", "title": f"Option {one}"} for one in (1, 2, 3)]
_PLAIN = ["option1", "option2", "option3"]
_ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": _PLAIN},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _PLAIN}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}
ENUMS = form("Please choose", _ENUMS)


@tool(effect="pure")
async def test_sampling(prompt: str, call: Call) -> str:
    """Asks the client's model."""
    said = await call.ask({"answer": sample(prompt, 100)})
    return f"LLM response: {said['answer']['content']['text']}"


@tool(effect="pure")
async def test_elicitation(message: str, call: Call) -> str:
    """Asks the user for a name and an address."""
    asked = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    said = await call.ask({"answer": form(message, asked, "username", "email")})
    return f"User response: {said['answer']}"


@tool(effect="pure")
async def test_elicitation_sep1034_defaults(call: Call) -> str:
    """Asks the user, with a default for every kind of field."""
    said = await call.ask({"answer": DEFAULTS})
    return f"Elicitation completed: {said['answer']}"


@tool(effect="pure")
async def test_elicitation_sep1330_enums(call: Call) -> str:
    """Asks the user to choose, in every way that there is."""
    said = await call.ask({"answer": ENUMS})
    return f"Elicitation completed: {said['answer']}"


@tool(effect="pure")
async def test_streaming_elicitation(call: Call) -> str:
    """Tells how far it has come, and asks the user."""
    call.progress(0, 1)
    await asyncio.sleep(STEP_S)
    said = await call.ask({"confirm": CONFIRM})
    return f"Confirmed: {said['confirm']}"


@tool(effect="pure")
async def test_input_required_result_elicitation(call: Call) -> str:
    """Asks for a name."""
    said = (await call.ask({"user_name": NAME}))["user_name"]
    return f"Hello, {said['content']['name']}!"


@tool(effect="pure")
async def test_input_required_result_sampling(call: Call) -> str:
    """Asks the client's model."""
    asked = {"capital_question": sample("What is the capital of France?", 100)}
    return f"Model said {(await call.ask(asked))['capital_question']['content']['text']}"


@tool(effect="pure")
async def test_input_required_result_list_roots(call: Call) -> str:
    """Asks for the client's folders."""
    said = (await call.ask({"client_roots": ROOTS}))["client_roots"]
    return "Roots: " + ", ".join(one["uri"] for one in said["roots"])


@tool(effect="pure")
async def test_input_required_result_request_state(call: Call) -> str:
    """Asks for a yes."""
    await call.ask({"confirm": CONFIRM})
    return "state-ok"


@tool(effect="pure")
async def test_input_required_result_tampered_state(call: Call) -> str:
    """Asks for a yes that somebody will meddle with."""
    await call.ask({"confirm": CONFIRM})
    return "state-ok"


@tool(effect="pure")
async def test_input_required_result_multiple_inputs(call: Call) -> str:
    """Asks three things at once."""
    asked = {
        "user_name": NAME,
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    return f"Answered: {sorted(await call.ask(asked))}"


@tool(effect="pure")
async def test_input_required_result_multi_round(call: Call) -> str:
    """Asks twice: the second time with the first answer at hand."""
    first = form("Step 1: What is your name?", {"name": TEXT}, "name")
    name = (await call.ask({"step1": first}))["step1"]["content"]["name"]
    second = form("Step 2: What is your favorite color?", {"color": TEXT}, "color")
    color = (await call.ask({"step2": second}))["step2"]["content"]["color"]
    return f"{name} likes {color}"


@tool(effect="pure")
async def test_input_required_result_capabilities(call: Call) -> str:
    """Asks only what the client can answer."""
    asked: dict[str, Question] = {}
    if "sampling" in call.capabilities:
        asked["sample"] = sample("Say hello", 50)
    if "elicitation" in call.capabilities:
        asked["name"] = NAME
    return f"Answered: {sorted(await call.ask(asked))}"


@tool(effect="pure")
async def test_missing_capability(call: Call) -> str:
    """Asks what the client has not said that it can answer."""
    return f"Model said {await call.ask({'answer': sample('Say hello', 50)})}"
