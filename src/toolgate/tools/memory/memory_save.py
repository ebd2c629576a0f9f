"""`memory_save`: keeps a fact for later."""

from typing import Any

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.memory.keeping import memories_of
from toolgate.tools.memory.remembered import Remembered

_LONGEST = 10_000


async def memory_save(means: Means, call: Call, *, text: str) -> dict[str, Any]:
    """Save a text. Its id follows from the call, so that the same call saves it once."""
    if not text.strip():
        raise ToolError("The text is empty. Write the fact that is to be remembered.")
    if len(text) > _LONGEST:
        raise ToolError(
            f"A memory has at most {_LONGEST:,} characters. Save single facts; document_ingest is "
            "for whole documents."
        )
    caller = call.caller
    memory = Remembered(
        id=f"mem_{call.id.removeprefix('call_')}",
        text=text.encode("utf-8", "replace").decode(),
        saved_ns=clock.unix_ns(),
        agent=caller.agent,
        user=caller.user,
        session=caller.session,
    )
    await memories_of(means, caller).save(memory)
    return {"id": memory.id, "saved": memory.saved, "tags": memory.tags}
