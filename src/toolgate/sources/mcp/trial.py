"""A server that is asked once, to see how it is: nothing of it is kept or agreed to."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolgate.errors import CatalogError
from toolgate.sources.mcp.judging import Judged
from toolgate.sources.mcp.source import McpSource


class Tried(NamedTuple):
    """How it was: whether it answers, what is wrong, and what it said."""

    answers: bool
    problem: str
    info: Mapping[str, Any]
    judged: Judged
    last_words: tuple[str, ...]


async def tried(source: McpSource, seconds: float) -> Tried:
    """Ask it, for so long at most, and end it."""
    upstream = source.member.upstream
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await source.answered()
        answers, problem = source.has_answered, ""
        try:
            await source.load()
        except CatalogError as error:
            problem = error.message
        return Tried(
            answers,
            problem or source.problem,
            upstream.server_info,
            source.judged,
            tuple(upstream.last_words),
        )
    finally:
        await source.close()
