"""What is too large to be answered at once is kept aside, and can be read in pieces."""

import asyncio
import logging
from typing import Any, Literal

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import InvalidOutput, StoreUnavailable
from toolgate.executor.aside import Aside
from toolgate.executor.extension import Extension, Handler
from toolgate.ledger.history import owner_of
from toolgate.ledger.outputs import Blob, Outputs
from toolgate.spec.document import sha256
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import Redactor
from toolgate.spec.secret import secret_texts, without_secrets

log = logging.getLogger("toolgate.outputs")
READ_WITH = "read_output"
_REFERENCE = "out_"
_HEAD = 4_096
_MOST = 64 * 1024 * 1024
# A character takes at most six bytes in JSON.
_WIDEST = 6
# How much of the time that a call has left is given to keeping its output.
_SHARE = 0.8


class Bound(Extension):
    """Measures every result. One over `limit`, or over the tool's own, goes to `outputs`."""

    priority = 490

    def __init__(self, outputs: Outputs, *, limit: int, redactor: Redactor) -> None:
        self._outputs = outputs
        self._limit = limit
        self._redactor = redactor

    def link(self, inner: Handler) -> Handler:
        """Writing a small result as JSON is the cheapest way to know that it is one."""
        default, dumps = self._limit, orjson.dumps

        async def run(call: Call) -> Output:
            output = await inner(call)
            data: object = output.data
            kind = type(data)
            limit = call.grant.spec.output_limit or default
            if kind is dict or kind is list:
                try:
                    size = len(dumps(data))
                except TypeError:
                    # Another provider's own types; its door says what becomes of them.
                    return output
            elif isinstance(data, str) and len(data) * _WIDEST > limit:
                size = len(dumps(data))
            else:
                return output
            if size <= limit:
                return output
            return await self._aside(call, output, size, limit)

        return run

    async def _aside(self, call: Call, output: Output, size: int, limit: int) -> Output:
        name = call.spec.name
        if size > _MOST:
            raise InvalidOutput(
                f"{name!r} ran, but its result has {size:,} bytes, and more than {_MOST:,} are "
                "not kept. Ask it for less."
            )
        media_type, content = self._content(call, output.data)
        head = _head(content, min(limit // 2, _HEAD))
        told: dict[str, Any] = {
            "head": head.decode(),
            "size": len(content),
            "media_type": media_type,
        }
        blob = Blob(
            tenant=call.caller.tenant,
            scope=owner_of(call.caller),
            digest=sha256(content),
            tool=name,
            media_type=media_type,
            content=content,
        )
        if await self._kept(call, blob):
            reference = _REFERENCE + blob.digest.removeprefix("sha256:")
            told |= {"reference": reference, "next": len(head), "read_with": READ_WITH}
        elif call.spec.effect is Effect.PURE:
            raise StoreUnavailable(
                f"The result of {name!r} is too large to be answered at once, and the store did "
                "not take it. Ask for less, or try again when the store is back."
            )
        else:
            told |= {
                "reference": None,
                "note": f"{name!r} did its work. The rest of its result could not be kept and is "
                "lost: do not call it again for that.",
            }
        return msgspec.structs.replace(output, data=Aside(told, output.data))

    def _content(
        self, call: Call, data: Any
    ) -> tuple[Literal["text/plain", "application/json"], bytes]:
        """What is kept: without secrets, also for its owner."""
        spec = call.spec
        redactor = self._redactor.knowing(secret_texts(spec.input_schema.raw, call.args))
        if isinstance(data, str):
            return "text/plain", redactor.text(data).encode()
        if spec.output_schema is not None:
            data = without_secrets(spec.output_schema.raw, data)
        return "application/json", redactor.raw(orjson.dumps(data))

    async def _kept(self, call: Call, blob: Blob) -> bool:
        # The effect has happened: a slow store must not make a timeout of it.
        left = (call.until_ns - clock.monotonic_ns()) / 1e9
        try:
            async with asyncio.timeout(max(left * _SHARE, 0)):
                await self._outputs.keep(blob)
        except Exception as error:  # noqa: BLE001  whatever a store raises, the call is over
            log.error(  # noqa: TRY400  a trace could show the output
                "the output of call %s could not be kept (%s)", call.id, type(error).__name__
            )
            return False
        return True


def _head(content: bytes, size: int) -> bytes:
    """The first bytes, without a character that the cut would part."""
    return content[:size].decode("utf-8", "ignore").encode()
