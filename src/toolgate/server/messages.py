"""`POST /v1/messages`: a model's message in, the messages that answer its calls out."""

from typing import Any

from toolgate.errors import InvalidRequest
from toolgate.server.calls import no_key
from toolgate.server.envelope import read_envelope
from toolgate.server.request import Request


async def run_message(request: Request) -> dict[str, Any]:
    """`{message, turn, session, context}`; the answer is `{messages: […]}`."""
    body = await request.body()
    no_key(request.headers)
    caller, turn = read_envelope(request, body, ("message",))
    if "message" not in body:
        raise InvalidRequest("Send the model's message: {'message': {…}, 'turn': {'group': …}}.")
    box = request.gate.toolbox(caller, turn)
    return {"messages": await box.run(body["message"])}
