"""Composio's own SDK, in threads: without telemetry, redirects, proxies, and files of ours."""

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from toolgate import clock
from toolgate.providers.threads import Threads

T = TypeVar("T")
_URL = "https://backend.composio.dev"
# So many requests run at a time; one that nobody waits for any more ends with its own timeout.
_AT_ONCE = 32
_CONNECT_SECONDS = 10.0
_PAGE = 100
_MOST_PAGES = 50
_MOST_BYTES = 16 * 1024 * 1024


class NoAnswer(Exception):
    """What came back is no answer to what was asked."""


class Executed(msgspec.Struct, frozen=True, kw_only=True):
    """What an action answered."""

    successful: bool
    data: Any
    error: str = ""


class Client:
    """One client for all calls, made when the first needs it: the SDK takes a while to load."""

    def __init__(self, key: str, url: str = "") -> None:
        self._key = key
        self._url = url
        self._threads = Threads(most=_AT_ONCE, each=_AT_ONCE)
        self._making = threading.Lock()
        self._warming = False
        self._sdk: Any = None
        self._http: Any = None

    async def execute(
        self, action: str, arguments: Mapping[str, Any], *, entity: str, version: str, until_ns: int
    ) -> Executed:
        """Run an action once, for one account. It is not tried again here."""

        def work(sdk: Any) -> Executed:
            left = max((until_ns - clock.monotonic_ns()) / 1e9, 0.001)
            named: dict[str, Any] = {"version": version} if version else {}
            found = sdk.client.without_retries.tools.execute(
                tool_slug=action,
                arguments=dict(arguments),
                user_id=entity,
                timeout=left,
                request_options={"follow_redirects": False},
                **named,
            )
            # The SDK takes any JSON for an answer.
            if not hasattr(found, "model_dump"):
                raise NoAnswer
            plain = found.model_dump(mode="json")
            return Executed(
                successful=bool(plain.get("successful")),
                data=plain.get("data"),
                error=str(plain.get("error") or ""),
            )

        return await self._in_thread(work)

    async def actions(self, toolkit: str) -> list[Mapping[str, Any]]:
        """Every action of a toolkit, as far as so many pages go."""

        def work(sdk: Any) -> list[Mapping[str, Any]]:
            found: list[Mapping[str, Any]] = []
            more: dict[str, Any] = {}
            for _ in range(_MOST_PAGES):
                page = sdk.client.tools.list(
                    toolkit_slug=toolkit,
                    limit=_PAGE,
                    timeout=30.0,
                    request_options={"follow_redirects": False},
                    **more,
                )
                found += [item.model_dump(mode="json") for item in page.items]
                if not page.next_cursor:
                    break
                more = {"cursor": page.next_cursor}
            return found

        return await self._in_thread(work)

    def warm(self) -> None:
        """Begin to load the SDK, which takes seconds: the first call finds it there, or waits."""
        if not self._warming:
            self._warming = True
            threading.Thread(target=self._warm, name="toolgate-composio", daemon=True).start()

    def close(self) -> None:
        """No more calls."""
        self._threads.close()
        if self._http is not None:
            self._http.close()

    async def _in_thread(self, work: Callable[[Any], T]) -> T:
        def quietly() -> T:
            # A variable of the context: it holds for the thread that it is set in, and no other.
            tracking = importlib.import_module("composio.core.models.base").allow_tracking
            tracking.set(False)
            return work(self._made())

        return await self._threads.run(quietly, of="composio")

    def _warm(self) -> None:
        # Whoever calls is told what is wrong with it.
        with contextlib.suppress(Exception):
            self._made()

    def _made(self) -> Any:
        with self._making:
            return self._sdk or self._make()

    def _make(self) -> Any:
        import composio  # noqa: PLC0415  an extra, which takes a second to load
        import httpx  # noqa: PLC0415  as above

        # Nothing of the environment: neither a proxy nor a key of somebody else's.
        self._http = httpx.Client(
            trust_env=False,
            timeout=httpx.Timeout(60, connect=_CONNECT_SECONDS),
            event_hooks={"request": [_ask_plainly], "response": [_bound]},
        )
        self._sdk = composio.Composio(
            api_key=self._key,
            allow_tracking=False,
            max_retries=0,
            http_client=self._http,
            base_url=self._url or _URL,
        )
        return self._sdk


def _ask_plainly(request: Any) -> None:
    """What is packed can be any size when it is unpacked."""
    request.headers["accept-encoding"] = "identity"


def _bound(response: Any) -> None:
    """Before any of it is read."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise NoAnswer
    response.stream = _bounded(response.stream)


def _bounded(stream: Any) -> Any:
    import httpx  # noqa: PLC0415  an extra, which is loaded by now

    class Bounded(httpx.SyncByteStream):
        """As much of an answer as anybody keeps."""

        def __iter__(self) -> Iterator[bytes]:
            left = _MOST_BYTES
            for piece in stream:
                left -= len(piece)
                if left < 0:
                    raise NoAnswer
                yield piece

        def close(self) -> None:
            stream.close()

    return Bounded()
