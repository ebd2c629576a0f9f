"""Memories in a service that speaks SomaBrain's API: `/remember`, `/recall` and `/delete`.

It keeps them by tenant and universe, each at a place in a space of three dimensions. The universe
is the owner, and the place follows from owner and id: nobody else's can be named.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from toolgate.caller import Caller
from toolgate.errors import ExecutionFailed, ProviderUnavailable, ToolError, ToolgateError
from toolgate.net.credential import Credential
from toolgate.net.errors import Lost, NotSent
from toolgate.tools.meaning.embedding import refuse_web
from toolgate.tools.meaning.owner import owner_of
from toolgate.tools.means import Means
from toolgate.tools.memory.condition import Conditions
from toolgate.tools.memory.memories import Recalled
from toolgate.tools.memory.remembered import Remembered

_MOST_RECALLED = 100
_MOST_BYTES = 16 * 1024 * 1024
_SECONDS = 20.0
_OK = range(200, 300)
_BROKEN = 500
_UNKEPT = frozenset({"user", "session"})
_NS = 10**9
# The last second that has a date.
_LAST = 253_402_300_800
# Where a memory lies: three numbers below 1, of so many steps each.
_STEPS = 10**6


class SomaBrain:
    """The port over the service."""

    def __init__(self, means: Means, caller: Caller) -> None:
        refuse_web(caller, "Memories are kept by a service")
        self._means = means
        self._tenant = caller.tenant
        self._universe = owner_of(caller)

    async def save(self, memory: Remembered) -> None:
        """Keep it."""
        payload = {
            "content": memory.text,
            "memory_type": "episodic",
            "importance": 1.0,
            "timestamp": memory.saved_ns / _NS,
            "universe": self._universe,
            "who": memory.agent,
            "where": memory.id,
        }
        coord = ",".join(str(one) for one in self._coordinate(memory.id))
        told = await self._sent("/remember", {"coord": coord, "payload": payload})
        if told.get("ok") is not True and told.get("success") is not True:
            raise _odd()

    async def recall(self, query: str, fits: Conditions) -> Sequence[Recalled]:
        """Those that fit, best first; what comes from another universe is not told."""
        if fits.keys & _UNKEPT:
            raise ToolError(
                "The service that keeps memories does not know users and sessions. Filter by tag, "
                "date, agent or text."
            )
        asked = {"query": query, "top_k": _MOST_RECALLED, "universe": self._universe}
        told = await self._sent("/recall", asked)
        found: dict[str, Recalled] = {}
        for hit in _hits(told):
            one = self._recalled(hit)
            if one is None or not fits(one.memory):
                continue
            before = found.get(one.memory.id)
            if before is None or before.score < one.score:
                found[one.memory.id] = one
        return sorted(found.values(), key=lambda one: (-one.score, -one.memory.saved_ns))

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        """Take them away. The service does not say whether they were there."""
        done: list[str] = []
        for one in ids:
            try:
                await self._sent("/delete", {"coordinate": self._coordinate(one)})
            except ToolgateError as error:
                if not done:
                    raise
                raise ExecutionFailed(
                    f"{len(done)} of {len(ids)} memories are deleted, the others not. "
                    f"{error.message}"
                ) from None
            done.append(one)
        return done

    async def note(self) -> str:
        """Nothing."""
        return ""

    def _coordinate(self, memory: str) -> list[float]:
        digest = hashlib.sha256(f"{self._universe}\n{memory}".encode("utf-8", "replace")).digest()
        parts = [int.from_bytes(digest[at : at + 8], "big") for at in (0, 8, 16)]
        return [part % _STEPS / _STEPS for part in parts]

    def _recalled(self, hit: dict[str, Any]) -> Recalled | None:
        payload = hit["payload"] if isinstance(hit.get("payload"), dict) else hit
        score = hit.get("score", payload.get("score"))
        text, key = payload.get("content"), payload.get("where")
        if payload.get("universe") != self._universe or not isinstance(text, str):
            return None
        if not isinstance(key, str) or not isinstance(score, (int, float)):
            return None
        memory = Remembered(
            id=key,
            text=text,
            saved_ns=_moment(payload.get("timestamp")),
            agent=str(payload.get("who") or ""),
        )
        return Recalled(memory, round(min(max(float(score), 0.0), 1.0), 4))

    async def _sent(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        url = self._means.settings.memory.url
        try:
            answer = await self._means.client.named(url).send(
                "POST",
                url + path,
                headers={"Content-Type": "application/json", "X-Tenant-ID": self._tenant},
                body=orjson.dumps(body),
                most=_MOST_BYTES,
                seconds=_SECONDS,
                credentials=self._credentials(url),
            )
        except NotSent:
            raise ProviderUnavailable(
                "The service that keeps memories cannot be reached. Nothing was sent: try again "
                "later, or ask the operator to look at [tools.memory] url."
            ) from None
        except Lost:
            # Whether it remembers or has forgotten it is not known.
            raise ExecutionFailed(
                "The service that keeps memories did not answer. Look with memory_load what it "
                "holds before you call again."
            ) from None
        if answer.status not in _OK:
            # What broke over a request may have done it before.
            kind = ExecutionFailed if answer.status >= _BROKEN else ToolError
            raise kind(
                f"The service that keeps memories refused ({answer.status}). Try again later, or "
                "ask the operator to look at [tools.memory]."
            )
        try:
            told = orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            raise _odd() from None
        if not isinstance(told, dict):
            raise _odd()
        return cast("dict[str, Any]", told)

    def _credentials(self, url: str) -> tuple[Credential, ...]:
        name = self._means.settings.memory.key_env
        if not name:
            return ()
        secret = self._means.environment.get(name, "")
        if not secret:
            raise ProviderUnavailable(
                f"The variable {name} is empty: the operator sets it to the key of the service "
                "that keeps memories. Nothing was sent."
            )
        host = urlsplit(url).hostname or ""
        return (Credential("tools.memory", f"Bearer {secret}", (host,), key="Authorization"),)


def _hits(told: dict[str, Any]) -> list[dict[str, Any]]:
    """What its working memory and its long-term memory hold."""
    found: list[dict[str, Any]] = []
    for part in ("wm", "memory", "results"):
        listed = told.get(part)
        if isinstance(listed, list):
            found += [one for one in cast("list[Any]", listed) if isinstance(one, dict)]
    return found


def _moment(when: Any) -> int:
    is_one = isinstance(when, (int, float)) and math.isfinite(when) and 0 <= when < _LAST
    return int(when * _NS) if is_one else 0


def _odd() -> ExecutionFailed:
    return ExecutionFailed(
        "The service that keeps memories answered with something that cannot be read. Ask the "
        "operator to look at [tools.memory] url."
    )
