"""The other server's tools that ask: by a request on the older revision, else by a result."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

from tests.conformance import asking
from toolgate.asked import Question

Asked = str | InputRequiredResult
TOOLS: list[Any] = []


def tool(function: Any) -> Any:
    """One of them."""
    TOOLS.append(function)
    return function


def form(question: Question) -> ElicitRequest:
    """What the user is asked to fill in."""
    given = question.params
    return ElicitRequest(
        params=ElicitRequestFormParams(
            message=given["message"], requested_schema=given["requestedSchema"]
        )
    )


def sample(text: str, most: int) -> CreateMessageRequest:
    """What the client's model is asked."""
    said = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=most))


NAME, CONFIRM = form(asking.NAME), form(asking.CONFIRM)


def needs(state: str | None = None, **asked: InputRequest) -> InputRequiredResult:
    """Nothing yet: this has to be answered first."""
    return InputRequiredResult(input_requests=asked, request_state=state)


def said(ctx: Context, name: str, field: str) -> Any:
    """What a form was filled in with."""
    answer: Any = (ctx.input_responses or {}).get(name)
    content: dict[str, Any] = getattr(answer, "content", None) or {}
    return content.get(field)


async def elicited(ctx: Context, question: Question) -> str:
    """By a request, on the way."""
    answer = await ctx.session.elicit_form(
        question.params["message"],
        question.params["requestedSchema"],
        related_request_id=ctx.request_id,
    )
    return f"action={answer.action}, content={answer.content}"


@tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    answer: Any = await ctx.session.create_message(  # pyright: ignore[reportDeprecated]
        messages=[message], max_tokens=100, related_request_id=ctx.request_id
    )
    return f"LLM response: {answer.content.text}"


@tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user for a name and an address."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return f"User response: {await elicited(ctx, asking.form(message, fields, *fields))}"


@tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks the user, with a default for every kind of field."""
    return f"Elicitation completed: {await elicited(ctx, asking.DEFAULTS)}"


@tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks the user to choose, in every way that there is."""
    return f"Elicitation completed: {await elicited(ctx, asking.ENUMS)}"


@tool
async def test_streaming_elicitation(ctx: Context) -> Asked:
    """Tells how far it has come, and asks the user."""
    await ctx.report_progress(0, 1)
    if "confirm" in (ctx.input_responses or {}):
        return "Confirmed."
    return needs(confirm=CONFIRM)


@tool
async def test_input_required_result_elicitation(ctx: Context) -> Asked:
    """Asks for a name."""
    name = said(ctx, "user_name", "name")
    return f"Hello, {name}!" if name else needs(user_name=NAME)


@tool
async def test_input_required_result_sampling(ctx: Context) -> Asked:
    """Asks the client's model."""
    answer: Any = (ctx.input_responses or {}).get("capital_question")
    if answer is None:
        return needs(capital_question=sample("What is the capital of France?", 100))
    return f"Model said {answer.content.text}"


@tool
async def test_input_required_result_list_roots(ctx: Context) -> Asked:
    """Asks for the client's folders."""
    answer: Any = (ctx.input_responses or {}).get("client_roots")
    if answer is None:
        return needs(client_roots=ListRootsRequest())
    return "Roots: " + ", ".join(str(one.uri) for one in answer.roots)


@tool
async def test_input_required_result_request_state(ctx: Context) -> Asked:
    """Asks for a yes, and wants its own state back."""
    if ctx.request_state == "s1" and ctx.input_responses:
        return "state-ok"
    return needs("s1", confirm=CONFIRM)


@tool
async def test_input_required_result_tampered_state(ctx: Context) -> Asked:
    """Asks for a yes that somebody will meddle with."""
    return "state-ok" if ctx.request_state else needs("t1", confirm=CONFIRM)


@tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> Asked:
    """Asks three things at once."""
    if {"user_name", "greeting", "client_roots"} <= set(ctx.input_responses or {}):
        return "All inputs received."
    greeting = sample("Generate a greeting", 50)
    return needs("m1", user_name=NAME, greeting=greeting, client_roots=ListRootsRequest())


@tool
async def test_input_required_result_multi_round(ctx: Context) -> Asked:
    """Asks twice: the second time with the first answer at hand."""
    answers = ctx.input_responses or {}
    if ctx.request_state == "r2" and "step2" in answers:
        return f"It is {said(ctx, 'step2', 'color')}."
    if ctx.request_state == "r1" and "step1" in answers:
        color = asking.form("Step 2: What is your favorite color?", {"color": asking.TEXT}, "color")
        return needs("r2", step2=form(color))
    name = asking.form("Step 1: What is your name?", {"name": asking.TEXT}, "name")
    return needs("r1", step1=form(name))


@tool
async def test_input_required_result_capabilities(ctx: Context) -> Asked:
    """Asks only what the client can answer."""
    can = ctx.client_capabilities
    asked: dict[str, InputRequest] = {}
    if can is not None and can.sampling is not None:
        asked["sample"] = sample("Say hello", 50)
    if can is not None and can.elicitation is not None:
        asked["name"] = NAME
    return needs("c1", **asked)


@tool
async def test_missing_capability(ctx: Context) -> str:
    """Needs what the client has not said that it has."""
    can = ctx.session.client_capabilities
    if can is None or can.sampling is None:
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="It needs the client's model.",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return "It has it."


def put_into(server: MCPServer) -> None:
    """All of them."""
    for one in TOOLS:
        server.add_tool(one)
