"""Texts as vectors: by the embedding that comes with this house, or by an operator's service."""

import base64
import struct
from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.tools.meaning import endpoint
from toolgate.tools.means import Means
from toolgate.tools.system.threaded import threaded

# Longer ones take more than a few milliseconds, and are counted elsewhere.
_SHORT = 2_000
_SECONDS = 60.0
_STATIC = "wordllama-l2-supercat-256"


class Embedded(msgspec.Struct, frozen=True):
    """Vectors of length 1, and what made them: those of two models are never compared."""

    model: str
    vectors: list[bytes]


def model_of(means: Means) -> str:
    """What makes vectors here."""
    return means.settings.llm.model if means.settings.llm.url else _STATIC


def is_measured(model: str) -> bool:
    """Whether it is the one that scores were calibrated with."""
    return model == _STATIC


async def embedded(means: Means, caller: Caller, texts: Sequence[str]) -> Embedded:
    """One vector a text."""
    model = model_of(means)
    if not texts:
        return Embedded(model, [])
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    if means.settings.llm.url:
        refuse_web(caller, "Texts are compared by a service")
        return Embedded(model, await endpoint.asked(means, clean))
    if sum(len(text.encode()) for text in clean) <= _SHORT:
        if not _static.cache_info().currsize:
            # It takes a while to read.
            await threaded(_static)
        return Embedded(model, _static()(clean))
    told = await means.workers.run(
        "toolgate.tools.meaning.static:embedded", {"texts": clean}, seconds=_SECONDS
    )
    return Embedded(model, [base64.b64decode(one) for one in told])


@cache
def _static() -> Callable[[Sequence[str]], list[bytes]]:
    from toolgate.tools.meaning.static import static  # noqa: PLC0415  numpy, when it is needed

    return static().vectors


def refuse_web(caller: Caller, what: str) -> None:
    """A task that may not use the web sends nothing to a service either."""
    if caller.context.no_web:
        raise ToolError(
            f"{what} that the operator has set, and this task may not use the web. Nothing was "
            "sent: do without this tool."
        )


def kept(vector: bytes) -> str:
    """A vector as it is put on the shelf: at half the precision, which changes no order."""
    floats = struct.unpack(f"<{len(vector) // 4}f", vector)
    return base64.b64encode(struct.pack(f"<{len(floats)}e", *floats)).decode()


def floats(vector: bytes) -> list[float]:
    """A vector as numbers."""
    return list(struct.unpack(f"<{len(vector) // 4}f", vector))
