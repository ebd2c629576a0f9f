"""`a2a_chat`: speaks with an agent elsewhere by A2A, and waits until its task is done."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ExecutionFailed, ToolError, ToolgateError
from toolgate.net.address import shown
from toolgate.net.client import HttpClient
from toolgate.net.credential import Credential
from toolgate.settings.builtin import Peer
from toolgate.tools.agent.card import Card, fetched
from toolgate.tools.agent.conversation import Conversation, Point
from toolgate.tools.agent.exchange import CHECK, credential, posted, seconds_left
from toolgate.tools.agent.wording import DONE, Answer, Said, answer, looking, sending
from toolgate.tools.means import Means

_LONGEST = 100_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_NO_SUCH_TASK = -32001
_INTERNAL = -32603
# What is left for the answer to be written down.
_SPARE = 1.0


class _Refused(ToolError):
    """The agent's own error, by its number."""

    def __init__(self, who: str, number: int, why: str) -> None:
        super().__init__(f"{who} refuses it: {why} ({number}). Change the message.")
        self.number = number


class _Line(msgspec.Struct, frozen=True):
    """The way to one agent."""

    client: HttpClient
    card: Card
    credentials: Sequence[Credential]
    who: str
    until_ns: int

    @property
    def left(self) -> float:
        return max(0.001, (self.until_ns - clock.monotonic_ns()) / 1e9)

    async def ask(self, request: dict[str, Any]) -> Answer:
        """One request, one answer."""
        given = await posted(
            self.client,
            self.card.url,
            request,
            who=self.who,
            seconds=self.left,
            headers={"A2A-Version": "1.0" if self.card.is_first else "0.3"},
            credentials=self.credentials,
        )
        try:
            told = orjson.loads(given.body)
            if isinstance(told.get("error"), dict):
                error = cast("dict[str, Any]", told["error"])
                why = str(error.get("message", "no reason"))[:300]
                number = int(error.get("code", 0))
                if number == _INTERNAL:
                    raise ExecutionFailed(f"{self.who} failed: {why}. {CHECK}")
                raise _Refused(self.who, number, why)
            return answer(told["result"])
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
            raise ExecutionFailed(
                f"{self.who} answers in words that are not A2A. {CHECK}"
            ) from None


async def a2a_chat(means: Means, call: Call, *, agent_url: str, message: str) -> dict[str, Any]:
    """Say it in the conversation of this session. Without a message: see how far it is."""
    if len(message) > _LONGEST:
        raise ToolError(f"A message has at most {_LONGEST:,} characters. Shorten it.")
    conversation = Conversation(means.shelf, call.caller, agent_url)
    point = await conversation.point()
    if not message.strip() and not point.task:
        raise ToolError("The message is empty, and no task is open there. Write what to say.")
    line = await _reached(means, call, agent_url)
    if message.strip():
        told = await _said(line, call, point, message)
    else:
        told = await _looked(line, call, point.task, 0)
    told = await _waited(line, call, told)
    is_open = bool(told.task) and told.state not in DONE
    context = told.context or point.context
    await conversation.keep(Point(context=context, task=told.task if is_open else ""))
    return {
        "agent": line.card.name,
        "reply": told.text,
        "state": told.state,
        "done": told.state == "message" or told.state in DONE,
        "task": told.task,
        "context": context,
        "note": _note(told),
    }


async def _reached(means: Means, call: Call, url: str) -> _Line:
    until_ns = clock.monotonic_ns() + int((seconds_left(means, call) - _SPARE) * 1e9)
    name, peer = _peer(means, url)
    client = means.client if peer is None else means.client.named(peer.url)
    who = f"The agent at {shown(url)[:200]}"
    card = await fetched(client, url, who=who)
    proof = () if peer is None else credential(means, name, peer.url, peer.key_env)
    return _Line(client, card, proof, who, until_ns)


def _peer(means: Means, url: str) -> tuple[str, Peer | None]:
    for name, peer in means.settings.agent.peers.items():
        if url == peer.url or url.startswith(f"{peer.url}/"):
            return name, peer
    return "", None


async def _said(line: _Line, call: Call, point: Point, message: str) -> Answer:
    text = message.encode("utf-8", "replace").decode()
    said = Said(
        id=call.downstream_key or call.id, text=text, context=point.context, task=point.task
    )
    card = line.card
    try:
        return await line.ask(sending(said, is_first=card.is_first, tenant=card.tenant))
    except _Refused as refused:
        if not point.task or refused.number != _NO_SUCH_TASK:
            raise
    # It has forgotten the task that the last message was about: this one begins anew.
    anew = Said(id=f"{said.id}-2", text=text)
    return await line.ask(sending(anew, is_first=card.is_first, tenant=card.tenant))


async def _looked(line: _Line, call: Call, task: str, number: int) -> Answer:
    card = line.card
    request = looking(task, f"{call.id}-{number}", is_first=card.is_first, tenant=card.tenant)
    return await line.ask(request)


async def _waited(line: _Line, call: Call, told: Answer) -> Answer:
    """Until it is over, or the time is."""
    pause, number = _FIRST_PAUSE, 0
    while not told.is_over and told.task and line.left > pause:
        await asyncio.sleep(pause)
        number += 1
        try:
            told = await _looked(line, call, told.task, number)
        except ToolgateError:
            # The message has arrived: how far it is can be asked for later.
            break
        pause = min(_LONGEST_PAUSE, pause * 1.5)
    return told


def _note(told: Answer) -> str:
    if told.state == "input_required":
        return "The agent asks for more. Answer with another message to the same agent."
    if told.state == "auth_required":
        return "The agent wants to be given access first. Ask the operator."
    if not told.is_over:
        return "The agent is still at it. Ask again later, with an empty message, how far it is."
    return ""
