"""What can be ingested: a file in the roots, or an output that toolgate has kept."""

from typing import Any, cast

import msgspec
import orjson

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.executor.read_output import PREFIX, read_output
from toolgate.tools.means import Means
from toolgate.tools.system.roots import Roots
from toolgate.tools.system.threaded import threaded

MOST_BYTES = 8 * 1024 * 1024
_PIECE = 100_000
_LONGEST = 4_096
# Where tools put what they read, most telling first.
_TEXTS = ("markdown", "html", "text", "content", "body", "result")


class Attachment(msgspec.Struct, frozen=True):
    """Its name tells which kind of text it is, its content what it is."""

    name: str
    content: bytes


async def attached(means: Means, call: Call, attachment: str) -> Attachment:
    """The one of that id, or a `ToolError` that says what an id is."""
    attachment = attachment.strip()
    if not attachment or len(attachment) > _LONGEST:
        raise ToolError(
            "Give the path of a file in the folders that are open to tools, or the reference of an "
            "output (out_…)."
        )
    if attachment.startswith(PREFIX):
        return Attachment(attachment, _text_in(await _output(means, call, attachment)))
    roots = Roots.of(means)
    content = await threaded(roots.read, attachment, most=MOST_BYTES)
    return Attachment(attachment, content)


async def _output(means: Means, call: Call, reference: str) -> str:
    """As `read_output` gives it, to those that it gives it to."""
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        found = await read_output(means, call, reference=reference, offset=offset, length=_PIECE)
        if found["size"] > MOST_BYTES:
            raise ToolError(f"The output has more than {MOST_BYTES // 2**20} MB and is not read.")
        pieces.append(found["text"])
        offset = found["next"]
    return "".join(pieces)


def _text_in(output: str) -> bytes:
    """The text of a result, where it has one; else the result as it stands."""
    try:
        data: Any = orjson.loads(output)
    except orjson.JSONDecodeError:
        return output.encode()
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        texts = [fields[name] for name in _TEXTS if isinstance(fields.get(name), str)]
        data = texts[0] if texts else fields
    return data.encode() if isinstance(data, str) else output.encode()
