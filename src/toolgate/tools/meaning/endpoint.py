"""An embedding that a service computes, in the format that OpenAI's has."""

import math
import struct
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from toolgate.errors import ProviderUnavailable, ToolError
from toolgate.net.client import Response
from toolgate.net.credential import Credential
from toolgate.net.errors import Lost, NotSent
from toolgate.settings.builtin import Llm
from toolgate.tools.means import Means

_BATCH = 64
_SECONDS = 30.0
_MOST_BYTES = 16 * 1024 * 1024
_LONGEST = 8_192
_OK = 200
_BUSY = 429
_BROKEN = 500


async def asked(means: Means, texts: Sequence[str]) -> list[bytes]:
    """A vector of length 1 for each text, as little-endian floats of 4 bytes."""
    vectors: list[bytes] = []
    for start in range(0, len(texts), _BATCH):
        vectors += await _batch(means, texts[start : start + _BATCH])
    if len({len(one) for one in vectors}) > 1:
        raise _odd()
    return vectors


async def _batch(means: Means, texts: Sequence[str]) -> list[bytes]:
    settings = means.settings.llm
    body = {"model": settings.model, "input": list(texts), "encoding_format": "float"}
    try:
        answer = await means.client.named(settings.url).send(
            "POST",
            f"{settings.url}/embeddings",
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            body=orjson.dumps(body),
            most=_MOST_BYTES,
            seconds=_SECONDS,
            repeatable=True,
            credentials=_credentials(settings, means),
        )
    except (NotSent, Lost):
        # The address is the operator's, and nothing for a model to read.
        raise ProviderUnavailable(
            "The service that makes embeddings cannot be reached. Nothing was kept: try again "
            "later, or ask the operator to look at [tools.llm] url."
        ) from None
    return _read(answer, len(texts))


def _credentials(settings: Llm, means: Means) -> tuple[Credential, ...]:
    if not settings.key_env:
        return ()
    secret = means.environment.get(settings.key_env, "")
    if not secret:
        raise ProviderUnavailable(
            f"The variable {settings.key_env} is empty: the operator sets it to the key of the "
            "service that makes embeddings. Nothing was sent."
        )
    host = urlsplit(settings.url).hostname or ""
    return (Credential("tools.llm", f"Bearer {secret}", (host,), key="Authorization"),)


def _read(answer: Response, count: int) -> list[bytes]:
    if answer.status != _OK:
        if answer.status == _BUSY or answer.status >= _BROKEN:
            raise ToolError(
                f"The service that makes embeddings is busy or broken ({answer.status}). Try "
                "again later.",
                retryable=True,
            )
        raise ToolError(
            f"The service that makes embeddings refuses the request ({answer.status}). Shorten "
            "the text; if that does not help, ask the operator to look at [tools.llm]."
        )
    try:
        data = orjson.loads(answer.body)["data"]
        rows = sorted(data, key=lambda one: one["index"])
        numbers = [one["index"] for one in rows]
        vectors = [_unit(one["embedding"]) for one in rows]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, struct.error):
        raise _odd() from None
    if numbers != list(range(count)):
        raise _odd()
    return vectors


def _unit(row: Any) -> bytes:
    if not isinstance(row, list) or not 1 <= len(cast("list[Any]", row)) <= _LONGEST:
        raise ValueError
    floats = [float(one) for one in cast("list[Any]", row)]
    length = math.sqrt(math.fsum(one * one for one in floats))
    if not math.isfinite(length) or not length:
        raise ValueError
    return struct.pack(f"<{len(floats)}f", *[one / length for one in floats])


def _odd() -> ToolError:
    return ToolError(
        "The service that makes embeddings answered with something else than one vector a text. "
        "Ask the operator to look at [tools.llm] url and model."
    )
