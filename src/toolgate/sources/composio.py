"""Composio's actions as tools, with their own schemas; the toolkits are the operator's choice."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from toolgate import clock
from toolgate.errors import InvalidSpecs, SourceUnavailable
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec

PROVIDER = "composio"
# A catalog is asked again every few seconds; what others offer changes with their releases.
_KEEP_NS = 3_600 * 10**9
_MOST = 2_000
_MOST_TAGS = 20
# As MCP's annotations, which Composio hands on as tags.
_READS = "readOnlyHint"
_DESTROYS = "destructiveHint"


class Actions(Protocol):
    """Where they are asked for."""

    async def actions(self, toolkit: str) -> list[Mapping[str, Any]]: ...


class ComposioSource:
    """The actions of some toolkits, kept for an hour."""

    name = "composio"
    required = False

    def __init__(
        self, client: Actions | None, toolkits: Sequence[str], *, variable: str = ""
    ) -> None:
        """Without a client there is no key in `variable`: that is told, and there are no tools."""
        self._client = client
        self._variable = variable
        self._toolkits = tuple(toolkits)
        self._last: list[ToolSpec] = []
        self._until_ns = 0
        self.problem = ""

    async def load(self) -> Sequence[ToolSpec]:
        """All of them, or `SourceUnavailable`. What cannot be a tool is left out, and counted."""
        if self._client is None:
            raise SourceUnavailable(
                f"No key of Composio: the variable {self._variable} is empty or not set."
            )
        if self._until_ns > clock.monotonic_ns():
            return self._last
        found: list[Mapping[str, Any]] = []
        for toolkit in self._toolkits:
            try:
                found += await self._client.actions(toolkit)
            except Exception as error:  # noqa: BLE001  the SDK's own, and httpx's
                # The SDK's own words can hold the key.
                raise SourceUnavailable(
                    f"Composio did not tell the actions of {toolkit!r} ({type(error).__name__})."
                ) from None
        self._last, self.problem = await asyncio.to_thread(_read, found)
        self._until_ns = clock.monotonic_ns() + _KEEP_NS
        return self._last


def _read(found: Sequence[Mapping[str, Any]]) -> tuple[list[ToolSpec], str]:
    specs: dict[str, ToolSpec] = {}
    odd = 0
    for item in found[:_MOST]:
        if item.get("is_deprecated"):
            continue
        try:
            spec = read_tool(_definition(item), origin=Origin(PROVIDER, _toolkit(item)))
        except InvalidSpecs:
            odd += 1
            continue
        specs[spec.name] = spec
    told = [f"{odd} actions cannot be tools"] if odd else []
    told += [f"only the first {_MOST:,} actions are taken"] if len(found) > _MOST else []
    return list(specs.values()), "; ".join(told)


def _definition(item: Mapping[str, Any]) -> dict[str, Any]:
    slug = str(item.get("slug", ""))
    tags = [str(tag)[:64] for tag in cast("list[Any]", item.get("tags") or [])]
    reads = _READS in tags and _DESTROYS not in tags
    schema = dict(cast("dict[str, Any]", item.get("input_parameters") or {}))
    return {
        "name": f"composio:{slug.lower()}",
        "description": str(item.get("description", ""))[:20_000],
        "display_name": str(item.get("name", ""))[:200],
        "category": _toolkit(item)[:64],
        "tags": list(dict.fromkeys(tags))[:_MOST_TAGS],
        "provider": PROVIDER,
        # The version that was read is the one that runs.
        "config": {"composio_action": slug, "version": str(item.get("version", ""))},
        "input_schema": {"type": "object", **schema},
        "side_effects": ["network_access"],
        "effect": "pure" if reads else "irreversible",
        "destructive": _DESTROYS in tags,
        "requires_confirmation": not reads,
    }


def _toolkit(item: Mapping[str, Any]) -> str:
    toolkit = item.get("toolkit")
    slug = cast("dict[str, Any]", toolkit).get("slug", "") if isinstance(toolkit, dict) else ""
    return str(slug)
