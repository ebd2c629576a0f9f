"""What is published of whoever gives tokens is looked at before anything is opened or sent."""

import pytest

from tests.upstreams.guarded import Guarded
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.settings.outward import McpServer
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.consent import Consented
from toolgate.upstreams.dialing import AddressDial
from toolgate.upstreams.exchange import Registered
from toolgate.upstreams.oauth import OAuth

pytestmark = pytest.mark.req("P3")
REDIRECT = "http://localhost:3000/callback"
# Each was, or could be, handed to what opens a page: a shell, a file manager, a browser.
HOSTILE = (
    "",
    "file:///etc/passwd",
    "file://evil.example/share",
    "javascript:alert(1)",
    "data:text/html,<script>1</script>",
    "vbscript:x",
    "ftp://evil.example/x",
    "smb://evil.example/x",
    "ssh://evil.example/x",
    "ms-msdt:/id x",
    "search-ms:query=x",
    "vscode://evil/x",
    "about:blank",
    "blob:https://evil.example/x",
    "view-source:https://evil.example",
    "a:$(id)",
    "$(id)",
    "`id`",
    "; id",
    "| id",
    "&& id",
    "-oProxyCommand=id",
    "--version",
    "/etc/passwd",
    "//evil.example/x",
    "\\\\evil.example\\share",
    "http:/evil.example",
    "https:/evil.example",
    "https://",
    "https:///x",
    "https://evil.example\r\nHost: other/",
    "https://evil.example/\n--x",
    "https://evil.example/a b",
    "https://evil.example/$(id)`id`\tx",
    "https://user:word@evil.example/x",
    "https://login.example@evil.example/x",
    "https://evil.example\\@login.example/",
    "https://\u3002evil.example/",
    "https://ev\u0131l.example/",
    "http://evil.example/authorize",
    "HTTP://evil.example/authorize",
    "http://169.254.169.254/latest",
    "http://10.0.0.1/authorize",
    "calc.exe",
)


class Opener:
    """Who would open a page."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    async def __call__(self, where: str) -> str:
        self.opened.append(where)
        return REDIRECT


async def problem(far: Guarded, opener: Opener, me: Registered | None) -> str:
    """What is wrong with the server, where its tokens need consent."""
    client = HttpClient(Guard(["127.0.0.0/8"]))
    grant = Consented(far.url, client, opener, redirect=REDIRECT, registered=me)
    dial = AddressDial("far", McpServer(url=far.url), client, {}, OAuth(grant))
    upstream = Connected("far", dial, timeout=5)
    await upstream.open(5)
    found = upstream.problem
    await upstream.close()
    await client.close()
    return found


@pytest.mark.parametrize("url", HOSTILE)
async def test_no_hostile_address_is_opened_or_asked(far: Guarded, url: str) -> None:
    opener, us = Opener(), Registered(id="us")
    for field in ("authorization_endpoint", "token_endpoint"):
        far.published = {field: url}
        assert "whoever gives tokens for it" in await problem(far, opener, us), field
    far.published = {"registration_endpoint": url}
    assert "whoever gives tokens for it" in await problem(far, opener, None)
    assert (opener.opened, far.given) == ([], [])


async def test_a_page_of_the_web_is_opened(far: Guarded) -> None:
    """The control: the same way, with an address that is right."""
    opener = Opener()
    far.published = {"authorization_endpoint": "https://login.example/authorize"}
    assert "is not ours" in await problem(far, opener, Registered(id="us"))
    [opened] = opener.opened
    assert opened.startswith("https://login.example/authorize?response_type=code&client_id=us&")


@pytest.mark.parametrize("proofs", [None, [], ["plain"], "S256"])
async def test_nobody_is_asked_for_a_code_that_anyone_could_use(
    far: Guarded, proofs: object
) -> None:
    """The control is above: with S256 the page is opened."""
    opener = Opener()
    far.published = {"code_challenge_methods_supported": proofs}
    assert "takes a code from anyone" in await problem(far, opener, Registered(id="us"))
    assert opener.opened == []


def test_there_are_enough() -> None:
    assert len(set(HOSTILE)) >= 40
