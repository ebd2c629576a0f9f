"""One kept connection to SpiceDB. Whatever goes wrong on it is a `RelationsUnavailable`."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar, cast

import grpc
import grpc.aio
from authzed.api.v1.permission_service_pb2_grpc import PermissionsServiceStub
from authzed.api.v1.schema_service_pb2_grpc import SchemaServiceStub

from toolgate.errors import RelationsUnavailable, SettingsInvalid

if TYPE_CHECKING:
    # Only types: at run time one stub serves both worlds.
    from authzed.api.v1.permission_service_pb2_grpc import PermissionsServiceAsyncStub
    from authzed.api.v1.schema_service_pb2_grpc import SchemaServiceAsyncStub

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_URL = re.compile(r"(grpcs?)://([^/?#\s]+)\Z")
_PORT = re.compile(r":\d+\Z")
_TOKEN = re.compile(r"[\x21-\x7e]+\Z")
_OPTIONS = (
    # A list of 10,000 tools is answered in a megabyte.
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.max_send_message_length", 64 << 20),
    # A server that is back is found soon.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # The key goes to the server that the settings name, and through nobody else.
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
_HELP: Mapping[grpc.StatusCode, str] = {
    grpc.StatusCode.UNAVAILABLE: "Nothing answers at [relations] url; start it.",
    grpc.StatusCode.UNAUTHENTICATED: "It refuses the key that [relations] token_env names.",
    grpc.StatusCode.PERMISSION_DENIED: "It refuses the key that [relations] token_env names.",
    grpc.StatusCode.DEADLINE_EXCEEDED: "It took longer than [relations] timeout.",
    grpc.StatusCode.FAILED_PRECONDITION: "Look at its schema and its log.",
}


class Channel:
    """Asks SpiceDB, with the key and a deadline on every question."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        found = _URL.match(url)
        if found is None:
            raise SettingsInvalid(["relations.url: write grpc://HOST:PORT, or grpcs:// with TLS"])
        if not _TOKEN.match(token):
            raise SettingsInvalid(
                ["relations.token_env: the variable holds no key, or one with spaces in it"]
            )
        scheme, host = found.groups()
        target = host if _PORT.search(host) else f"{host}:50051"
        if scheme == "grpcs":
            channel = grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(), _OPTIONS)
        else:
            channel = grpc.aio.insecure_channel(target, _OPTIONS)
        self._channel = channel
        self._closed = False
        self._key = (("authorization", f"Bearer {token}"),)
        self.timeout = timeout
        permissions: object = PermissionsServiceStub(channel)
        schema: object = SchemaServiceStub(channel)
        self.permissions = cast("PermissionsServiceAsyncStub", permissions)
        self.schema = cast("SchemaServiceAsyncStub", schema)

    async def ask(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Question, Answer]",
        question: Question,
        *,
        but: grpc.StatusCode | None = None,
    ) -> Answer:
        """One answer. `but` names a status that is an answer too: a `LookupError`."""
        async with self._guarded(but):
            return await method(question, metadata=self._key, timeout=self.timeout)

    async def stream(
        self, method: "grpc.aio.UnaryStreamMultiCallable[Question, Answer]", question: Question
    ) -> list[Answer]:
        """All answers of a stream that is known to be short."""
        async with self._guarded():
            call = method(question, metadata=self._key, timeout=self.timeout)
            return [answer async for answer in call]

    async def close(self) -> None:
        """What is under way is answered with `RelationsUnavailable`."""
        self._closed = True
        await self._channel.close()

    @asynccontextmanager
    async def _guarded(self, but: grpc.StatusCode | None = None) -> AsyncGenerator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            code = error.code()
            if code is but:
                raise LookupError from None
            help_ = _HELP.get(code, "Look at its log.")
            # Its own words stay away: they can hold names of others.
            raise unavailable(f"SpiceDB did not say yes or no ({code.name}). {help_}") from None
        except (grpc.aio.UsageError, grpc.aio.InternalError, grpc.RpcError):
            raise _gone() from None
        except asyncio.CancelledError:
            # A channel that closes cancels what waits on it; nobody cancelled us.
            task = asyncio.current_task()
            if task is None or task.cancelling() or not self._closed:
                raise
            raise _gone() from None


def unavailable(why: str) -> RelationsUnavailable:
    """Nobody can tell, so nothing is allowed."""
    return RelationsUnavailable(f"Nobody can tell who may execute what: {why}")


def _gone() -> RelationsUnavailable:
    return unavailable("the connection to SpiceDB was closed. Open toolgate again.")
