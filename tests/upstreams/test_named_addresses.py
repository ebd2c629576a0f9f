"""Addresses that a server names, or who gives tokens for it: none leads out, none is opened."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.net.tripwire import hosts, tripwire
from tests.upstreams.guarded import Guarded, upstream
from toolgate.net import guard as guarding
from toolgate.net.addresses import Address
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard

pytestmark = pytest.mark.req("P3", "P2")
# What others were led to: a program instead of an address, a file, a place inside.
HOSTILE = (
    *("file:///etc/passwd", "file://localhost/etc/passwd", "javascript:alert(1)", "data:,x"),
    *("a:$(touch canary)?response_type=code", "x:calc.exe", "ms-msdt:/id PCWDiagnostic"),
    *("http:$(touch canary)", "https:`touch canary`", "https:/$(touch canary)", "https://$(id)/"),
    *("https://x;touch canary/", "https://x|touch canary/", 'https://x"&touch canary"/'),
    *("https://x&touch canary&/", "https://x\ntouch canary/", "https://x\r\nHost: y/"),
    *("https://a b/", "https://x\x00/", "https://x\t/", "https://\u202e/", "https://x\uff0fy/"),
    *("\\\\evil.example\\share", "//evil.example/", "/authorize", "authorize", "", "?", "#"),
    *("http://169.254.169.254/latest", "https://169.254.169.254/", "https://[fd00:ec2::254]/"),
    *("https://10.0.0.7/", "https://192.168.0.1/", "https://[::1]:1/", "https://0x7f.1/"),
    *("https://2130706433/", "https://127.1/", "https://localhost.:1/", "https://metadata/"),
    *("https://user:pass@10.0.0.7/", "https://good.example@10.0.0.7/", "https://10.0.0.7\\@x/"),
    *("ftp://evil.example/", "gopher://evil.example/", "ssh://evil.example/", "ws://evil.example/"),
)
# Those that a header can say.
SAYABLE = tuple(one for one in HOSTILE if one.isascii() and one.isprintable())
# Where one can stand in what is published.
PUBLISHED = (
    *("authorization_endpoint", "token_endpoint", "registration_endpoint", "jwks_uri", "issuer"),
    *("userinfo_endpoint", "revocation_endpoint", "service_documentation"),
)
_STARTS = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"})
_watching: list[list[str]] = []


def _hook(event: str, _args: tuple[Any, ...]) -> None:
    if _watching and (event in _STARTS or event == "webbrowser.open"):
        for seen in _watching:
            seen.append(event)


sys.addaudithook(_hook)


def nothing_wrong(_address: Address) -> str:
    return ""


@contextmanager
def starts() -> Generator[list[str]]:
    """Every program that this process starts meanwhile, and every page that it would open."""
    seen: list[str] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    """This machine alone may be reached beside what is public: the two servers are on it."""
    made = HttpClient(Guard(["127.0.0.1"]))
    yield made
    await made.close()


def test_there_are_enough_of_them() -> None:
    assert len(set(HOSTILE)) >= 40


@pytest.mark.parametrize("where", HOSTILE)
async def test_none_that_a_server_names_for_tokens_is_reached(
    far: Guarded, client: HttpClient, where: str
) -> None:
    far.names = where
    it = upstream(far, client, "*.example", far.server.place, "10.0.0.7", "169.254.169.254")
    with tripwire() as seen, starts() as begun:
        await it.open(5)
        await it.close()
    assert it.problem
    assert far.given == []
    assert (hosts(seen), begun) == ({"127.0.0.1"}, [])


@pytest.mark.parametrize("where", HOSTILE)
async def test_none_that_whoever_gives_tokens_publishes_is_reached(
    far: Guarded, client: HttpClient, where: str
) -> None:
    for field in PUBLISHED:
        far.published = {field: where}
        it = upstream(far, client)
        with tripwire() as seen, starts() as begun:
            await it.open(5)
            await it.close()
        assert hosts(seen) <= {"127.0.0.1"}, field
        assert begun == [], field
        # Those that no token is asked for by say nothing to us.
        assert bool(far.given) is (field not in {"token_endpoint", "issuer"}), field
        far.given.clear()


@pytest.mark.parametrize("where", SAYABLE)
async def test_none_that_a_refusal_names_is_reached(
    far: Guarded, client: HttpClient, where: str
) -> None:
    far.challenge = f' resource_metadata="{where}"'
    it = upstream(far, client)
    with tripwire() as seen, starts() as begun:
        await it.open(5)
        await it.close()
    assert (hosts(seen), begun) == ({"127.0.0.1"}, [])


async def test_one_that_is_right_is_asked(far: Guarded, client: HttpClient) -> None:
    """The control."""
    it = upstream(far, client)
    await it.open(5)
    assert (it.problem, len(far.given)) == ("", 1)
    await it.close()


async def test_without_the_guard_they_would_be_reached(
    far: Guarded, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control; to this machine, where nobody listens."""
    monkeypatch.setattr(guarding, "not_public", nothing_wrong)
    far.names = "http://127.0.0.3:1024"
    it = upstream(far, client, "127.0.0.3:1024")
    with tripwire() as seen:
        await it.open(5)
        await it.close()
    assert ("127.0.0.3", 1024) in seen


async def test_the_hook_sees_a_program_that_is_started() -> None:
    with starts() as begun:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        await child.wait()
    assert begun
