"""A file that code has made, as its caller is told of it: whole where it is small, else by name."""

import base64
import hashlib
import mimetypes
from typing import Any

from toolgate.call import Call
from toolgate.ledger.history import owner_of
from toolgate.ledger.outputs import Blob, Outputs
from toolgate.tools.executor.read_output import PREFIX

_WHOLE = 40_000
_ALL = 120_000


class Artifacts:
    """Those of one call. What is too large to be told at once is kept for `read_output`."""

    def __init__(self, outputs: Outputs, call: Call) -> None:
        self._outputs = outputs
        self._call = call
        self._room = _ALL

    async def told(self, path: str, content: bytes, *, is_new: bool) -> dict[str, Any]:
        """One file."""
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        told: dict[str, Any] = {
            "path": path,
            "change": "new" if is_new else "changed",
            "size": len(content),
            "media_type": kind,
        }
        text = _text(content)
        shown = base64.b64encode(content).decode() if text is None else text
        told["encoding"] = "base64" if text is None else "utf-8"
        if len(shown) <= min(_WHOLE, self._room):
            self._room -= len(shown)
            return told | {"content": shown}
        return told | {"reference": await self._kept(shown.encode(), kind)}

    async def _kept(self, content: bytes, kind: str) -> str:
        digest = hashlib.sha256(content).hexdigest()
        caller = self._call.caller
        await self._outputs.keep(
            Blob(
                tenant=caller.tenant,
                scope=owner_of(caller),
                digest=f"sha256:{digest}",
                tool=self._call.spec.name,
                media_type=kind,
                content=content,
            )
        )
        return PREFIX + digest


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
