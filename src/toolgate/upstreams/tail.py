"""The last words of a program on its standard error, for an operator."""

import asyncio
from collections.abc import Sequence

_MOST = 8_192
_MOST_SHOWN = 500
_HIDDEN = "•••"


class Tail:
    """Reads all of it, so that its program never waits, and keeps the end."""

    def __init__(self, stderr: asyncio.StreamReader, secrets: Sequence[str] = ()) -> None:
        self._stderr = stderr
        self._secrets = tuple(one for one in secrets if one)
        self._kept = b""
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while piece := await self._stderr.read(65_536):
            self._kept = (self._kept + piece)[-_MOST:]

    def said(self) -> str:
        """Its last line, without secrets and without what a terminal would obey."""
        text = self._kept.decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        lines = [line for line in text.splitlines() if line.strip()]
        last = lines[-1].strip() if lines else ""
        return "".join(one if one.isprintable() else " " for one in last)[-_MOST_SHOWN:]
