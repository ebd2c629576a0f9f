"""The last words of a program on its standard error, for an operator."""

import asyncio
from collections.abc import Sequence

_MOST = 16_384
_MOST_LINES = 20
_MOST_SHOWN = 500
_HIDDEN = "•••"


class Tail:
    """Reads all of it, so that its program never waits, and keeps the end."""

    def __init__(self, stderr: asyncio.StreamReader, secrets: Sequence[str] = ()) -> None:
        self._stderr = stderr
        # Whole and by its lines, the longest first: one may begin with another.
        parts = {part for one in secrets for part in (one, *one.splitlines()) if part.strip()}
        self._secrets = sorted(parts, key=len, reverse=True)
        self._kept = b""
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while piece := await self._stderr.read(65_536):
            self._kept = (self._kept + piece)[-_MOST:]

    def lines(self) -> tuple[str, ...]:
        """Its last lines, without secrets and without what a terminal would obey."""
        text = self._kept.decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        found = text.splitlines()
        if len(self._kept) == _MOST and len(found) > 1:
            # Where it was cut there may be half a secret, which nobody knows again.
            del found[0]
        told = [line.strip() for line in found if line.strip()]
        return tuple(map(_shown, told[-_MOST_LINES:]))


def _shown(line: str) -> str:
    return "".join(one if one.isprintable() else " " for one in line)[-_MOST_SHOWN:]
