"""What an address of the world answers: through the guarded client, hop by hop, within bounds."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.net.client import HttpClient, Streaming
from toolgate.net.credential import Credential
from toolgate.net.errors import Gone, Late, Lost, NotSent
from toolgate.net.redirect import Request, onward
from toolgate.net.unpacking import CODINGS, Unpacking

# What comes beyond is not fetched.
MOST = 1_000_000
REDIRECTS = 5
SECONDS = 20.0
# So much of a call's time is left to tell that it was too slow.
_MARGIN = 0.2
_LEAST = 0.05
_HOST = re.compile(r"([A-Za-z]++://[^/?#]*+)(.*+)", re.DOTALL)
# Nothing to read in these: their size is told, and they are not fetched.
_PICTURES = re.compile(r"(?:image/(?!svg)|audio/|video/|font/)", re.IGNORECASE)
_ASCII = "".join(map(chr, range(0x21, 0x7F)))


class Fetched(NamedTuple):
    """An answer. `url` is where it came from in the end; `size` what it has in all, if known."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool
    size: int | None
    fetched_at: str

    @property
    def content_type(self) -> str:
        """As the server says it."""
        return self.headers.get("Content-Type", "")

    @property
    def media_type(self) -> str:
        """Without its parameters."""
        return self.content_type.partition(";")[0].strip().lower()[:100]


def written(url: str) -> str:
    """An address with letters beyond ASCII as they are sent; its host is left to the guard."""
    found = _HOST.match(url.strip())
    return found[1] + quote(found[2], safe=_ASCII + " \\\t\r\n\0") if found else url


def seconds_left(call: Call, most: float) -> float:
    """So long something may take."""
    left = (call.until_ns - clock.monotonic_ns()) / 1e9 - _MARGIN
    return max(min(most, left), _LEAST)


async def fetched(
    client: HttpClient,
    request: Request,
    *,
    seconds: float,
    redirects: int = REDIRECTS,
    most: int = MOST,
) -> Fetched:
    """The answer, also one that says no. `NotSent` and `Lost` where there is none."""
    until_ns = clock.monotonic_ns() + int(seconds * 1e9)
    hops = 0
    while True:
        left = max((until_ns - clock.monotonic_ns()) / 1e9, _LEAST)
        try:
            async with client.stream(
                request.method,
                request.url,
                headers=request.headers,
                body=request.body,
                seconds=left,
                repeatable=request.method == "GET",
                credentials=request.credentials,
                packed=True,
            ) as answer:
                further = None
                if redirects:
                    further = onward(request, answer.status, _leading(answer.headers))
                if further is None:
                    return await _read(request.url, answer, most)
        except NotSent as refused:
            if not hops:
                raise
            raise Lost(f"The address leads elsewhere. {refused.message}") from None
        except Late:
            raise Late(f"It did not answer within {seconds:g} s.") from None
        hops += 1
        if hops > redirects:
            raise Lost(
                f"After {redirects} redirects there is still no answer. Give the last address."
            )
        request = further


async def gotten(
    client: HttpClient,
    url: str,
    *,
    headers: Mapping[str, str],
    seconds: float,
    redirects: int = REDIRECTS,
    credentials: tuple[Credential, ...] = (),
) -> Fetched:
    """What a GET brings; where there is no answer, an error for whoever asked."""
    request = Request("GET", written(url), headers, None, credentials)
    try:
        return await fetched(client, request, seconds=seconds, redirects=redirects)
    except (NotSent, Lost) as error:
        raise unanswered(error) from None


def unanswered(error: NotSent | Lost) -> ToolError:
    """Why there is no answer, where asking has changed nothing."""
    again = error.retryable if isinstance(error, NotSent) else isinstance(error, (Late, Gone))
    advice = " Try again later, or another address." if again else ""
    return ToolError(error.message + advice, retryable=again)


async def _read(url: str, answer: Streaming, most: int) -> Fetched:
    said = answer.headers.get("Content-Length", "")
    coding = answer.headers.get("Content-Encoding", "").lower().encode()
    unpacking = Unpacking(coding) if coding in CODINGS else None
    is_told = unpacking is None and said.isascii() and said.isdecimal()
    size = int(said) if is_told else None
    body = bytearray()
    is_cut = False
    if size is None or not _PICTURES.match(answer.headers.get("Content-Type", "")):
        came = 0
        async for piece in answer:
            came += len(piece)
            body += unpacking.more(piece, most + 1 - len(body)) if unpacking else piece
            # What comes compressed and is longer than what it holds has no end.
            if len(body) > most or came > 2 * most:
                is_cut = True
                break
        if not is_cut:
            size = len(body)
            if unpacking is not None and came and not unpacking.is_whole:
                raise Lost("The answer is compressed, and ends before its end.")
    now = clock.utc_now().isoformat(timespec="seconds").replace("+00:00", "Z")
    return Fetched(url, answer.status, answer.headers, bytes(body[:most]), is_cut, size, now)


def _leading(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Servers write addresses in UTF-8, which a header is read without."""
    where = headers.get("Location", "")
    if where.isascii():
        return headers
    return {"Location": quote(where.encode("latin-1"), safe=_ASCII + " \\")}
