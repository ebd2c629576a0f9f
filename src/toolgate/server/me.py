"""`GET /v1/me`: whom a key speaks for, and what a client has to know before it calls."""

from typing import Any

from toolgate.server.answers import Shape
from toolgate.server.request import Request
from toolgate.tenancy.keys import Role


class Me(Shape):
    """The caller that calls with this key are made by, and how they are answered."""

    tenant: str
    agent: str
    user: str
    persona: str
    roles: list[str]
    role: Role
    most_calls: int
    structured_tool_output: bool


async def show_me(request: Request) -> dict[str, Any]:
    """Nothing but what the key says of its holder."""
    own = request.caller
    return {
        "tenant": own.tenant,
        "agent": own.agent,
        "user": own.user,
        "persona": own.persona,
        "roles": list(own.roles),
        "role": str(request.key.role),
        "most_calls": request.gate.most_calls,
        "structured_tool_output": request.gate.features.structured_tool_output,
    }
