"""A server of the official SDK with what the suite asks for by name, to stand behind a gateway.

`python -m tests.conformance.other PORT` serves it, both revisions. Nothing of toolgate runs here.
"""

import asyncio
import base64
import json
import sys
from typing import Annotated, Any

from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.prompts.base import Prompt, UserMessage
from mcp.types import (
    AudioContent,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import Field

from tests.conformance import asking, other_asking
from tests.conformance.fixtures import JSON, PNG, SCHEMA_2020_12, STEP_S, WAV

KEY = b"what-one-server-of-the-tests-signs-its-state-by"
server = MCPServer(
    name="other", version="1", request_state_security=RequestStateSecurity(keys=[KEY])
)
other_asking.put_into(server)
IMAGE = ImageContent(type="image", data=PNG, mime_type="image/png")


def text(value: str) -> TextContent:
    return TextContent(type="text", text=value)


def embedded(uri: str, mime_type: str, value: str) -> EmbeddedResource:
    held = TextResourceContents(uri=uri, mime_type=mime_type, text=value)
    return EmbeddedResource(type="resource", resource=held)


@server.tool()
def test_simple_text() -> list[TextContent]:
    """Answers with a text."""
    return [text("This is a simple text response for testing.")]


@server.tool()
def test_image_content() -> list[ImageContent]:
    """Answers with an image."""
    return [IMAGE]


@server.tool()
def test_audio_content() -> list[AudioContent]:
    """Answers with a sound."""
    return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


@server.tool()
def test_embedded_resource() -> list[EmbeddedResource]:
    """Answers with a resource inside."""
    told = "This is an embedded resource content."
    return [embedded("test://embedded-resource", "text/plain", told)]


@server.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Answers with a text, an image and a resource."""
    last = embedded("test://mixed-content-resource", JSON, '{"test":"data","value":123}')
    return [text("Multiple content types test:"), IMAGE, last]


@server.tool()
def resource_link() -> list[ResourceLink]:
    """Answers with where something can be read."""
    return [ResourceLink(type="resource_link", uri="test://static-text", name="text")]


@server.tool()
def structured(count: int = 3) -> dict[str, Any]:
    """Answers with an object."""
    return {"z": count, "a": [1, 2.5, None, True], "ä": {"": "€"}}


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Tells three messages on its way."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)  # pyright: ignore[reportDeprecated]
        await asyncio.sleep(STEP_S)
    return "Told three messages."


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Tells a message, which only who asked for messages may hear."""
    await ctx.info("Nobody has asked for this.")  # pyright: ignore[reportDeprecated]
    return "Told one message."


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Tells how far it has come, three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP_S)
    return "Told its progress."


@server.tool()
def test_error_handling() -> str:
    """Always fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool()
async def test_reconnection() -> str:
    """Takes a moment."""
    await asyncio.sleep(STEP_S)
    return "Reconnection test completed."


@server.tool()
async def waiting(ctx: Context) -> str:
    """Waits to be given up, and leaves word that it was."""
    try:
        await ctx.report_progress(1, 2, "waiting")
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        CANCELLED.append(1)
        raise
    return "Nobody gave it up."


CANCELLED: list[int] = []


@server.tool()
def cancelled() -> str:
    """How often somebody was given up."""
    return str(len(CANCELLED))


@server.tool()
def x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
) -> str:
    """Takes an argument that its request repeats in a header."""
    return f"Region: {region}"


@server.tool()
def json_schema_2020_12_tool() -> str:
    """Its schema has to be listed word for word."""
    return "done"


def _added() -> str:
    """What came later."""
    return "later"


ADDED: list[str] = []


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Adds a tool."""
    ADDED.append(f"added_{len(ADDED)}")
    server.add_tool(_added, name=ADDED[-1])
    await ctx.notify_tools_changed()
    return f"Added {ADDED[-1]}."


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Adds a prompt."""
    ADDED.append(f"added_{len(ADDED)}")
    server.add_prompt(Prompt.from_function(_added, name=ADDED[-1], description="Later."))
    await ctx.notify_prompts_changed()
    return f"Added {ADDED[-1]}."


@server.tool()
async def touch(ctx: Context, uri: str) -> str:
    """Says that a resource has changed."""
    await ctx.notify_resource_updated(uri)
    return "Told."


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A resource of text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A resource of bytes."""
    return base64.b64decode(PNG)


@server.resource("test://template/{id}/data", mime_type=JSON)
def template(id: str) -> str:  # noqa: A002  the suite's own name
    """A resource with a number in its address."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource")
def watched() -> str:
    """A resource that can be watched."""
    return "watched"


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(
    resourceUri: str,  # noqa: N803  the suite's own name
) -> list[UserMessage]:
    """A prompt with a resource inside."""
    held = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(content=held), UserMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with an image."""
    return [UserMessage(content=IMAGE), UserMessage("Please analyze the image above.")]


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """A prompt that asks before it is given."""
    context = other_asking.said(ctx, "user_context", "context")
    if context:
        return f"Context: {context}"
    asked = asking.form("What context should the prompt use?", {"context": asking.TEXT}, "context")
    return other_asking.needs(user_context=other_asking.form(asked))


@server.completion()
async def complete(ref: Any, argument: Any, _context: Any) -> Completion:
    """What begins as it was typed."""
    known = [one for one in ("paris", "park", "party") if one.startswith(argument.value)]
    return Completion(values=known, total=len(known), has_more=False)


async def _nothing(_: ServerRequestContext, __: Any) -> EmptyResult:
    return EmptyResult()


inner: Any = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
inner.add_request_handler("logging/setLevel", SetLevelRequestParams, _nothing)
inner.add_request_handler("resources/subscribe", SubscribeRequestParams, _nothing)
inner.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, _nothing)
tools: Any = server._tool_manager._tools  # pyright: ignore[reportPrivateUsage]
tools["json_schema_2020_12_tool"].parameters = SCHEMA_2020_12

if __name__ == "__main__":
    if "prompts" in sys.argv:
        # For a house that has the other tools itself.
        for name in [name for name in tools if name != "test_trigger_prompt_change"]:
            server.remove_tool(name)
    server.run(transport="streamable-http", port=int(sys.argv[1]))
