"""The tools and resources that the official MCP conformance suite calls by name: what they answer.

Texts and names are the suite's own. What asks its caller something is in `asking`.
"""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from toolgate import Call, ToolError, tool

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
JSON = "application/json"
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}

# So that what a tool tells on its way is told before its result.
STEP_S = 0.01

# What a listing has to show word for word.
SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def resource(uri: str, mime_type: str, text: str) -> dict[str, Any]:
    """A block of content that carries a resource."""
    inner = {"uri": uri, "mimeType": mime_type, "text": text}
    return {"type": "resource", "resource": inner}


@tool(effect="pure")
def test_simple_text() -> str:
    """Answers with a text."""
    return "This is a simple text response for testing."


@tool(effect="pure")
def test_image_content() -> dict[str, Any]:
    """Answers with an image."""
    return {"content": [IMAGE]}


@tool(effect="pure")
def test_audio_content() -> dict[str, Any]:
    """Answers with a sound."""
    return {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}


@tool(effect="pure")
def test_embedded_resource() -> dict[str, Any]:
    """Answers with a resource inside."""
    told = "This is an embedded resource content."
    return {"content": [resource("test://embedded-resource", "text/plain", told)]}


@tool(effect="pure")
def test_multiple_content_types() -> dict[str, Any]:
    """Answers with a text, an image and a resource."""
    said = {"type": "text", "text": "Multiple content types test:"}
    held = '{"test":"data","value":123}'
    last = resource("test://mixed-content-resource", JSON, held)
    return {"content": [said, IMAGE, last]}


@tool(effect="pure")
async def test_tool_with_logging(call: Call) -> str:
    """Tells three messages on its way."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        call.log(message)
        await asyncio.sleep(STEP_S)
    return "Told three messages."


@tool(effect="pure")
async def test_logging_tool(call: Call) -> str:
    """Tells a message, which only who asked for messages may hear."""
    call.log("Nobody has asked for this.")
    await asyncio.sleep(STEP_S)
    return "Told one message."


@tool(effect="pure")
async def test_tool_with_progress(call: Call) -> str:
    """Tells how far it has come, three times."""
    for done in (0, 50, 100):
        call.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP_S)
    return "Told its progress."


@tool(effect="pure")
def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool(effect="pure")
async def test_reconnection() -> str:
    """Takes a moment."""
    await asyncio.sleep(STEP_S)
    return "Reconnection test completed."


@tool(effect="pure", input_schema=SCHEMA_2020_12)
def json_schema_2020_12_tool(**given: Any) -> dict[str, Any]:
    """Answers with what it was given."""
    return given


@tool(effect="pure")
def x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
) -> str:
    """Takes an argument that its request repeats in a header."""
    return f"Region: {region}"


@tool(effect="idempotent")
def test_trigger_tool_change() -> str:
    """Adds a tool: what a person does who puts a file into the folder of tools."""
    folder = Path("tools")
    number = len(list(folder.glob("added-*.yaml")))
    name = f"added_{number}"
    written = (
        f"tools:\n  - name: {name}\n    description: A tool that came later.\n"
        "    provider: python\n    effect: pure\n"
        f"    config: {{module: {__name__}, function: test_simple_text}}\n"
    )
    (folder / f"added-{number}.yaml").write_text(written)
    return f"Added {name}."


@tool(effect="pure", resource={"uri": "test://static-text", "media_type": "text/plain"})
def static_text() -> str:
    """A resource of text."""
    return "This is the content of the static text resource."


@tool(effect="pure", resource={"uri": "test://static-binary", "media_type": "image/png"})
def static_binary() -> dict[str, Any]:
    """A resource of bytes."""
    held = {"uri": "test://static-binary", "mimeType": "image/png", "blob": PNG}
    return {"content": [{"type": "resource", "resource": held}]}


@tool(effect="pure", resource={"uri": "test://template/{id}/data", "media_type": JSON})
def template(id: str) -> dict[str, Any]:  # noqa: A002  the suite's own name
    """A resource with a number in its address."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@tool(effect="pure", resource="test://watched-resource")
def watched() -> str:
    """A resource that can be watched."""
    return "watched"
