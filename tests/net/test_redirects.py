"""Redirects: only when asked for, every hop checked anew, and nothing secret goes along."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.net.far import OK, Far, Got, answer, far
from tests.net.tripwire import tripwire
from toolgate.net import guard as guarding
from toolgate.net.addresses import Address
from toolgate.net.client import HttpClient, Response
from toolgate.net.credential import Credential
from toolgate.net.errors import Lost
from toolgate.net.guard import Guard

pytestmark = pytest.mark.req("P2")
SECRETS = {"Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "X-Api-Key": "s3cret"}


def nothing_wrong(_address: Address) -> str:
    return ""


class Leading:
    """Answers the first request of a path with where to go, and any other with ok."""

    def __init__(self) -> None:
        self.to: dict[str, tuple[int, str]] = {}

    def __call__(self, got: Got, _writer: asyncio.StreamWriter) -> bytes:
        status, where = self.to.get(got.line.split()[1], (0, ""))
        return answer(b"", f"Location: {where}", status=f"{status} Moved") if status else OK


@pytest.fixture
async def leading() -> AsyncGenerator[tuple[Leading, Far, HttpClient]]:
    script = Leading()
    async with far(script) as there:
        client = HttpClient(Guard().named(there.url()))
        yield script, there, client
        await client.close()


async def follow(client: HttpClient, url: str, redirects: int = 5) -> Response:
    return await client.get(url, headers=SECRETS, most=100, redirects=redirects)


Led = tuple[Leading, Far, HttpClient]


async def test_without_being_asked_it_is_not_followed(leading: Led) -> None:
    script, there, client = leading
    script.to["/"] = (302, "/next")
    got = await client.get(there.url(), headers={}, most=100)
    assert (got.status, got.headers["location"], len(there.got)) == (302, "/next", 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_on_the_same_host_it_is_followed_with_all_of_it(leading: Led, status: int) -> None:
    script, there, client = leading
    script.to = {"/": (status, "/a"), "/a": (status, there.url("/b"))}
    assert (await follow(client, there.url())).body == b"ok"
    assert [got.line.split()[1] for got in there.got] == ["/", "/a", "/b"]
    assert there.got[2].headers["authorization"] == SECRETS["Authorization"]


@pytest.mark.parametrize("where", ["http://[::1", "http://[x]/", "//[", "http://a b/"])
async def test_half_an_address_leads_nowhere(leading: Led, where: str) -> None:
    script, there, client = leading
    script.to["/"] = (302, where)
    with pytest.raises(Lost, match="leads"):
        await follow(client, there.url())
    assert len(there.got) == 1


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (303, "GET"), (307, "POST")])
async def test_a_body_goes_along_only_where_the_method_stays(
    leading: Led, status: int, method: str
) -> None:
    script, there, client = leading
    script.to["/"] = (status, "/next")
    given = {"Content-Type": "text/plain"}
    await client.send("POST", there.url(), headers=given, body=b"x", most=9, redirects=1)
    last = there.got[1]
    assert last.line.split()[0] == method
    assert (last.body, "content-type" in last.headers) == (
        (b"x", True) if method == "POST" else (b"", False)
    )


ELSEWHERE = (
    *("http://169.254.169.254/latest/meta-data", "http://[::1]:7/", "http://10.0.0.7/"),
    *("file:///etc/passwd", "gopher://127.0.0.1/", "//169.254.169.254/", "http://127.1/"),
    *("http://user:pass@127.0.0.1/", "http:\\\\169.254.169.254", "http://localhost:22/"),
)


@pytest.mark.parametrize("where", ELSEWHERE)
async def test_a_hop_to_a_forbidden_place_is_not_made(leading: Led, where: str) -> None:
    script, there, client = leading
    script.to["/"] = (302, where)
    with tripwire() as seen, pytest.raises(Lost, match="leads elsewhere"):
        await follow(client, there.url())
    assert set(seen) <= {("127.0.0.1", there.port)}


async def test_without_the_check_it_would_be_made(
    leading: Led, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    script, there, client = leading
    async with far(lambda _got, _writer: OK) as inner:
        script.to["/"] = (302, inner.url())
        with pytest.raises(Lost):
            await follow(client, there.url())
        assert inner.connections == 0
        monkeypatch.setattr(guarding, "not_public", nothing_wrong)
        assert (await follow(client, there.url())).body == b"ok"


async def test_another_host_gets_no_secret(leading: Led) -> None:
    script, there, client = leading
    async with far(lambda _got, _writer: OK) as other:
        client = client.named(other.url())
        script.to["/"] = (307, other.url("/there"))
        key = Credential("key", "s3cret", ["127.0.0.1"], key="X-Key")
        headers = {**SECRETS, "Accept": "text/plain"}
        await client.get(there.url(), headers=headers, most=9, redirects=1, credentials=[key])
        assert there.got[0].headers["x-key"] == "s3cret", "the positive control"
        assert other.got[0].headers["accept"] == "text/plain"
        assert "s3cret" not in str(other.got[0])


async def test_a_body_is_not_sent_to_another_host(leading: Led) -> None:
    script, there, client = leading
    async with far(lambda _got, _writer: OK) as other:
        script.to["/"] = (307, other.url())
        with pytest.raises(Lost, match="another host"):
            await client.named(other.url()).send(
                "POST", there.url(), headers={}, body=b"x", most=9, redirects=3
            )
        assert other.connections == 0


async def test_a_way_without_end_has_one(leading: Led) -> None:
    script, there, client = leading
    script.to = {f"/{at}": (302, f"/{at + 1}") for at in range(30)}
    with pytest.raises(Lost, match="leads from one address to the next"):
        await follow(client, there.url("/0"))
    assert len(there.got) == 6
    script.to["/"] = (302, "/")
    with pytest.raises(Lost):
        await follow(client, there.url())
