"""`POST /v1/batch` and `POST /v1/chain`: several calls in one request."""

from typing import Any

from toolgate.server.calls import no_key
from toolgate.server.envelope import flag, read_envelope
from toolgate.server.request import Request


async def run_batch(request: Request) -> dict[str, Any]:
    """`{calls: [{tool, args, critical, …}], turn, session, context}`."""
    body = await request.body()
    no_key(request.headers)
    caller, turn = read_envelope(request, body, ("calls",))
    done = await request.gate.batch(body.get("calls", ()), caller=caller, turn=turn)
    return done.to_machine()


async def run_chain(request: Request) -> dict[str, Any]:
    """`{steps: [{tool, args, name}], mode, parallel_mutations, undo_on_failure, turn, …}`."""
    body = await request.body()
    no_key(request.headers)
    fields = ("steps", "mode", "parallel_mutations", "undo_on_failure")
    caller, turn = read_envelope(request, body, fields)
    done = await request.gate.chain(
        body.get("steps", ()),
        caller=caller,
        turn=turn,
        mode=body.get("mode", "parallel"),
        parallel_mutations=flag(body, "parallel_mutations"),
        undo_on_failure=flag(body, "undo_on_failure"),
    )
    return done.to_machine()
