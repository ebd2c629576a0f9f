"""An agent's card: where it can be spoken to, and in which version of A2A."""

from typing import Any, cast

import msgspec
import orjson

from toolgate.errors import ToolError
from toolgate.net.client import HttpClient, Response
from toolgate.net.errors import Lost, NotSent
from toolgate.net.location import read
from toolgate.tools.agent.exchange import not_reached

_MOST_BYTES = 500_000
_SECONDS = 15.0
_REDIRECTS = 3
_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_JSON_RPC = "JSONRPC"
_OK, _NOT_FOUND = 200, 404


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed of it."""

    name: str
    url: str
    # Version 1 names its methods otherwise than those before it.
    is_first: bool
    tenant: str = ""


async def fetched(client: HttpClient, url: str, *, who: str) -> Card:
    """The card of an agent at this address, or at the well-known one below it."""
    try:
        path = read(url).path.partition("?")[0]
    except NotSent as error:
        raise not_reached(who, error) from None
    below = [url.rstrip("/") + path for path in _PATHS]
    addresses = [url] if path.endswith(".json") else below
    answer: Response | None = None
    for address in addresses:
        answer = await _got(client, address, who)
        if answer.status != _NOT_FOUND:
            break
    if answer is None or answer.status != _OK:
        status = 0 if answer is None else answer.status
        raise ToolError(
            f"{who} shows no agent card ({status}). Nothing was said: check the agent's address."
        )
    return _read(answer.body, url, who)


async def _got(client: HttpClient, address: str, who: str) -> Response:
    try:
        return await client.get(
            address,
            headers={"Accept": "application/json", "A2A-Version": "1.0"},
            most=_MOST_BYTES,
            seconds=_SECONDS,
            redirects=_REDIRECTS,
        )
    except NotSent as error:
        raise not_reached(who, error) from None
    except Lost:
        raise ToolError(
            f"The agent card of {who} could not be read. Nothing was said: try again later.",
            retryable=True,
        ) from None


def _read(body: bytes, url: str, who: str) -> Card:
    try:
        card = orjson.loads(body)
        found = _interfaces(card)
        name = str(card.get("name") or "")[:200]
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        raise ToolError(
            f"{who} shows something else than an agent card. Check its address."
        ) from None
    for interface in found:
        if url.lower().startswith("https:") and not interface.url.lower().startswith("https:"):
            continue
        return msgspec.structs.replace(interface, name=name)
    raise ToolError(f"{who} does not speak A2A by JSON-RPC, which is what is spoken here.")


def _interfaces(card: dict[str, Any]) -> list[Card]:
    """Those that can be used, as the card prefers them; version 1 has a list of its own."""
    found: list[Card] = []
    for one in cast("list[dict[str, Any]]", card.get("supportedInterfaces") or []):
        version = str(one.get("protocolVersion") or "1.0")
        if one.get("protocolBinding") == _JSON_RPC and isinstance(one.get("url"), str):
            tenant = str(one.get("tenant") or "")
            is_first = not version.startswith("0.")
            found.append(Card(name="", url=one["url"], is_first=is_first, tenant=tenant))
    older = [{"url": card.get("url"), "transport": card.get("preferredTransport") or _JSON_RPC}]
    older += cast("list[dict[str, Any]]", card.get("additionalInterfaces") or [])
    found += [
        Card(name="", url=str(one["url"]), is_first=False)
        for one in older
        if one.get("transport") == _JSON_RPC and isinstance(one.get("url"), str)
    ]
    return found
