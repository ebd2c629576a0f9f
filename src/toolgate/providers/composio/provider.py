"""Actions of Composio: each call in the account of its tenant and user."""

import asyncio
import importlib.util
import re
from typing import Any

from toolgate.call import Call
from toolgate.errors import ExecutionFailed, Overloaded, ToolgateError, UnsupportedProvider
from toolgate.executor.resilience.deadline import is_overdue, out_of_time
from toolgate.providers.composio.client import Client
from toolgate.providers.composio.entity import Nobody, entity
from toolgate.providers.threads import NotBegun
from toolgate.spec import fields
from toolgate.spec.tool import ToolSpec

_ACTION = re.compile(r"[A-Za-z0-9_]{1,200}\Z")


def _action(value: Any) -> str:
    found = fields.text(200)(value)
    if not _ACTION.match(found):
        raise ValueError("is no action; write one such as GITHUB_CREATE_AN_ISSUE")
    return found


_KEYS = {"composio_action": _action, "entity_id": fields.text(256), "version": fields.text(64)}


class ComposioProvider:
    """Runs actions by the SDK. `pattern` says whose account a call uses."""

    def __init__(
        self, client: Client | None, *, key: str, pattern: str, variable: str = ""
    ) -> None:
        """Without a client there is no key in `variable`: then nothing can run."""
        self._client = client
        self._key = key
        self._pattern = pattern
        self._variable = variable

    def unusable(self, spec: ToolSpec) -> str | None:
        """Whether its action is named, and its account not by somebody else."""
        if self._client is None:
            if self._variable:
                return f"the variable {self._variable} is not set: it should hold Composio's key"
            return "no key of Composio is set; write [providers.composio] api_key_env"
        if importlib.util.find_spec("composio") is None:
            return "Composio's SDK is not installed: make install EXTRAS=composio"
        try:
            config = fields.only(spec.config.value(), _KEYS)
        except ValueError as error:
            reason = str(error)
            return f"config{reason}" if reason.startswith(".") else f"config {reason}"
        if not config.get("composio_action") and not _ACTION.match(spec.name):
            return "config names no action; write composio_action: GITHUB_CREATE_AN_ISSUE"
        # A fixed account is that of everybody who may call the tool: only the operator says so.
        if "entity_id" in config and (not config["entity_id"] or spec.origin.kind != "file"):
            return "config.entity_id is set by a tool file on this machine only; leave it out"
        self._client.warm()
        return None

    async def run(self, call: Call) -> Any:
        """One request, in a thread; when the call's time is over, it is not waited for."""
        client, config = self._client, call.spec.config.value()
        if client is None:
            raise UnsupportedProvider(f"{call.spec.name!r} cannot run: no key of Composio is set.")
        try:
            done = await client.execute(
                config.get("composio_action") or call.spec.name,
                call.args,
                entity=config.get("entity_id") or self._entity(call),
                version=config.get("version", ""),
                until_ns=call.until_ns,
            )
        except NotBegun as never:
            raise self._never(call, never) from None
        except (ToolgateError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001  the SDK's own, and httpx's
            from toolgate.providers.composio.failures import failure  # noqa: PLC0415  as the SDK

            raise failure(call, error, key=self._key) from None
        if not done.successful:
            from toolgate.providers.composio.failures import advice, said  # noqa: PLC0415  as above

            raise ExecutionFailed(
                f"{call.spec.name!r} failed at Composio. {advice(call)} It said: "
                f"{said(done.error, self._key) or 'nothing'}",
                composio_error="not_successful",
            )
        return done.data

    def close(self) -> None:
        """No more calls."""
        if self._client is not None:
            self._client.close()

    def _entity(self, call: Call) -> str:
        try:
            return entity(self._pattern, call.caller)
        except Nobody as nobody:
            raise UnsupportedProvider(
                f"{call.spec.name!r} uses the account of its {nobody.lacking}, and this call has "
                "none. Nothing ran."
            ) from None

    @staticmethod
    def _never(call: Call, never: NotBegun) -> BaseException:
        if never.error is None:
            return Overloaded(
                f"Too many calls to Composio run already; {call.spec.name!r} did not. Try again.",
                retry_after=1,
            )
        return out_of_time(call) if is_overdue(never.error) else never.error
