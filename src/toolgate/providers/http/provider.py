"""Requests to services: each tool is one, made from its config, through the guarded client."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import (
    ExecutionFailed,
    InvalidArguments,
    InvalidOutput,
    ProviderUnavailable,
    TimedOut,
    UnsupportedProvider,
)
from toolgate.net.client import HttpClient
from toolgate.net.errors import Late, Lost, NotAllowed, NotSent
from toolgate.net.headers import Fixed
from toolgate.net.hidden import without
from toolgate.net.location import read
from toolgate.net.redirect import Request as Asked
from toolgate.net.redirect import onward
from toolgate.providers.http.address import Unfit
from toolgate.providers.http.auth import Proof
from toolgate.providers.http.config import Unusable, plan
from toolgate.providers.http.oauth import Tokens
from toolgate.providers.http.plan import Plan, Request
from toolgate.providers.http.reading import result
from toolgate.providers.http.refusal import refusal
from toolgate.providers.http.secret import Secrets
from toolgate.settings.outward import HttpTools
from toolgate.spec.tool import ToolSpec

# An answer may be larger than what is answered at once: the rest is kept aside, or not looked at.
_TIMES = 64
_MOST = 64 * 1024 * 1024
_UNAUTHORISED = 401
# In the place of the one that a call gets when it is claimed.
_ANY_KEY = "00000000000000000000000000"


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpProvider:
    """Runs tools whose `config` names an address. It tries once: another link tries again."""

    def __init__(
        self,
        settings: HttpTools,
        client: HttpClient,
        *,
        output_limit: int = 100_000,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._timeout = settings.default_timeout
        self._secrets = Secrets(settings.secrets, os.environ if environ is None else environ)
        self._tokens = Tokens(client, seconds=settings.default_timeout)
        self._limit = output_limit
        self._plans: dict[str, tuple[ToolSpec, Plan]] = {}

    def unusable(self, spec: ToolSpec) -> str | None:
        """Read the config of a spec, and keep what comes of it."""
        kept = self._plans.get(spec.name)
        if kept is not None and kept[0] is spec:
            return None
        try:
            self._plans[spec.name] = spec, self._read(spec)
        except Unusable as problems:
            return str(problems)
        return None

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """Every request holds it: one that has no place for it is not made."""

    def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """What no request can be made from: the one that would be sent is, and is not."""
        kept = self._plans.get(spec.name)
        if kept is None or kept[0] is not spec:
            return ()
        try:
            request = kept[1].request(args, _ANY_KEY if spec.downstream_key else "")
            read(request.url)
            Fixed(request.headers)
        except (Unfit, UnicodeEncodeError, NotSent) as error:
            return [_unfit(error)]
        return ()

    async def run(self, call: Call) -> Any:
        """Send the request that the arguments make, and read what comes back."""
        spec = call.grant.spec
        kept = self._plans.get(spec.name)
        plan = kept[1] if kept is not None and kept[0] is spec else self._granted(spec)
        try:
            request = plan.request(call.args, call.downstream_key)
        except (Unfit, UnicodeEncodeError) as error:
            raise InvalidArguments(spec.name, [_unfit(error)]) from None
        proof = await plan.auth.proof()
        answer = await self._answered(call, plan, request, proof)
        if answer.status == _UNAUTHORISED and plan.auth.outdated(proof):
            # It said that it did nothing; a token can end earlier than it was said to.
            proof = await plan.auth.proof()
            answer = await self._answered(call, plan, request, proof)
        status, headers, body = answer
        if 200 <= status < 300:
            return result(call, plan.reading, status, headers, body, proof.hidden)
        raise refusal(call, status, headers, without(body, proof.hidden))

    async def close(self) -> None:
        """No more calls."""
        await self._tokens.close()

    def _read(self, spec: ToolSpec) -> Plan:
        most = min((spec.output_limit or self._limit) * _TIMES, _MOST)
        found = plan(spec, self._secrets, self._tokens, most=most)
        try:
            self._client.guard.read(found.address.prefix)
        except NotAllowed as error:
            raise Unusable(f"config.url: {error.message}") from None
        return found

    def _granted(self, spec: ToolSpec) -> Plan:
        """A call runs what it was granted, also when a reload has put another in its place."""
        try:
            return self._read(spec)
        except Unusable as problems:
            raise UnsupportedProvider(f"{spec.name!r} cannot run any more: {problems}.") from None

    async def _answered(self, call: Call, plan: Plan, request: Request, proof: Proof) -> _Answer:
        answer = await self._sent(call, plan, request.url, request, proof)
        url = request.url
        for _ in range(plan.redirects):
            asked = Asked(plan.method, url, request.headers, None, ())
            try:
                further = onward(asked, answer.status, answer.headers)
            except Lost:
                break
            if further is None or not _is_same_host(url, further.url):
                break
            url = further.url
            answer = await self._sent(call, plan, url, request, proof)
        return answer

    async def _sent(
        self, call: Call, plan: Plan, url: str, request: Request, proof: Proof
    ) -> _Answer:
        spec, status = call.grant.spec, 0
        left = (call.until_ns - clock.monotonic_ns()) / 1e9
        seconds = min(plan.timeout or spec.timeout or self._timeout, max(left, 0.001))
        try:
            async with self._client.stream(
                plan.method,
                url,
                headers=request.headers,
                body=request.body,
                seconds=seconds,
                repeatable=spec.effect.repeatable or spec.downstream_key is not None,
                credentials=proof.credentials,
            ) as answer:
                status = answer.status
                return _Answer(status, answer.headers, await answer.read(plan.reading.most))
        except NotSent as error:
            told = ProviderUnavailable(
                f"The service behind {spec.name!r} was not asked. {error.message}"
            )
            told.retryable = error.retryable
            raise told from None
        except Lost as error:
            raise _lost(call, status, error) from None


def _unfit(error: Unfit | UnicodeEncodeError | NotSent) -> tuple[str, str]:
    if isinstance(error, Unfit):
        return (f"/{error.argument}" if error.argument else ""), str(error)
    if isinstance(error, NotSent):
        said = error.message.removesuffix("Nothing was sent.").strip().rstrip(".")
        return "", f"make a request that cannot be sent: {said[:1].lower()}{said[1:]}"
    return "", "hold half a character"


def _lost(call: Call, status: int, error: Lost) -> Exception:
    """What is known of a request whose answer did not come whole."""
    spec = call.spec
    if 200 <= status < 300 and not spec.effect.repeatable:
        return InvalidOutput(
            f"{spec.name!r} did its work (the service said {status}), but its answer could not be "
            f"read: {error.message} Do not call it again for that."
        )
    advice = (
        ""
        if spec.effect.repeatable
        else " It may have taken effect: check before you call it again."
    )
    if isinstance(error, Late):
        return TimedOut(f"The service behind {spec.name!r} was too slow: {error.message}{advice}")
    return ExecutionFailed(f"The answer to {spec.name!r} was lost: {error.message}{advice}")


def _is_same_host(one: str, other: str) -> bool:
    here, there = read(one), read(other)
    return (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port)
