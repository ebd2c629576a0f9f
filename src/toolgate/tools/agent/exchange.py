"""A message to another agent over HTTP, and what its answer, or the lack of one, means."""

from collections.abc import Sequence
from typing import Any

import orjson

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ExecutionFailed, ProviderUnavailable, TimedOut, ToolError
from toolgate.net.client import HttpClient, Response
from toolgate.net.credential import Credential
from toolgate.net.errors import Late, Lost, NotSent
from toolgate.net.location import read
from toolgate.tools.means import Means

MOST_BYTES = 4_000_000
_LATER = frozenset({429, 503})
CHECK = "It may have taken effect: check before you ask it again."


def seconds_left(means: Means, call: Call) -> float:
    """How long the other agent has."""
    left = (call.until_ns - clock.monotonic_ns()) / 1e9
    return max(0.001, min(means.settings.agent.seconds, left))


def credential(means: Means, name: str, url: str, key_env: str) -> tuple[Credential, ...]:
    """The key that goes to that host, and to no other."""
    if not key_env:
        return ()
    secret = means.environment.get(key_env, "")
    if not secret:
        raise ProviderUnavailable(
            f"The variable {key_env} is empty: the operator sets it to the key of the agent "
            f"{name!r}. Nothing was sent."
        )
    place = read(url).place
    return (Credential(f"tools.agent.{name}", f"Bearer {secret}", (place,), key="Authorization"),)


async def posted(
    client: HttpClient,
    url: str,
    body: Any,
    *,
    who: str,
    seconds: float,
    headers: dict[str, str] | None = None,
    credentials: Sequence[Credential] = (),
) -> Response:
    """Send it, and take an answer that is one."""
    asked = {"Content-Type": "application/json", "Accept": "application/json, text/plain"}
    try:
        answer = await client.send(
            "POST",
            url,
            headers=asked | (headers or {}),
            body=orjson.dumps(body),
            most=MOST_BYTES,
            seconds=seconds,
            credentials=credentials,
        )
    except NotSent as error:
        raise not_reached(who, error) from None
    except Late:
        raise TimedOut(f"{who} did not answer within {seconds:.0f} s. {CHECK}") from None
    except Lost:
        raise ExecutionFailed(f"The answer of {who} was lost. {CHECK}") from None
    if answer.status in _LATER:
        raise ToolError(f"{who} is busy ({answer.status}). Try again later.", retryable=True)
    if 400 <= answer.status < 500:
        raise ToolError(
            f"{who} refuses the request ({answer.status}). Nothing was done: change the message, "
            "or ask the operator to look at its address and key."
        )
    if not 200 <= answer.status < 300:
        raise ExecutionFailed(f"{who} answers with the status {answer.status}. {CHECK}")
    return answer


def not_reached(who: str, error: NotSent) -> Exception:
    """Nothing left this machine. Why not is the operator's to know, unless it may not."""
    if not error.retryable:
        return ToolError(f"{who} cannot be asked: {error.message}")
    return ProviderUnavailable(f"{who} cannot be reached. Nothing was sent: try again later.")
