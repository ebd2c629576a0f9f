"""A secret goes to its own hosts, where it belongs in a request, and into no message."""

import copy
import pickle

import pytest

from tests.house import HERE
from tests.net.far import OK, far
from toolgate.net.client import HttpClient
from toolgate.net.credential import Attached, Credential, Where
from toolgate.net.errors import NotAllowed, NotSent
from toolgate.net.location import read

pytestmark = pytest.mark.req("P2")
VALUE = "s3cret+/&="


@pytest.mark.parametrize(
    ("where", "key", "path", "headers"),
    [
        ("header", "X-Key", "/a?b=c", {"Accept": "*/*", "X-Key": VALUE}),
        ("query", "key", "/a?b=c&key=s3cret%2B%2F%26%3D", {"Accept": "*/*"}),
        ("cookie", "sid", "/a?b=c", {"Accept": "*/*", "Cookie": "sid=s3cret%2B%2F%26%3D"}),
    ],
)
def test_it_stands_where_it_belongs(
    where: Where, key: str, path: str, headers: dict[str, str]
) -> None:
    one = Credential("mine", VALUE, ["api.example.com"], where=where, key=key)
    location = read("https://api.example.com/a?b=c")
    assert one.attach(location, Attached(location.path, {"Accept": "*/*"})) == (path, headers)


def test_a_caller_cannot_put_another_in_its_place() -> None:
    one = Credential("mine", VALUE, ["api.example.com"], key="Authorization")
    given = {"authorization": "theirs", "AUTHORIZATION": "theirs too"}
    attached = one.attach(read("https://api.example.com/"), Attached("/", given))
    assert attached.headers == {"Authorization": VALUE}
    cookie = Credential("mine", "1", ["api.example.com"], where="cookie", key="sid")
    both = cookie.attach(read("https://api.example.com/"), Attached("/", {"Cookie": "a=b"}))
    assert both.headers == {"Cookie": "a=b; sid=1"}


@pytest.mark.parametrize(
    ("host", "yes", "no"),
    [
        ("api.example.com", "https://api.example.com/", "https://x.api.example.com/"),
        ("api.example.com", "https://API.example.com:8443/", "https://api.example.com.evil.org/"),
        ("*.example.com", "https://a.b.example.com/", "https://example.com/"),
        ("*.example.com", "https://a.example.com/", "https://aexample.com/"),
        ("api.example.com:8443", "https://api.example.com:8443/", "https://api.example.com/"),
        ("127.0.0.1", "http://127.0.0.1:8080/", "http://127.0.0.2:8080/"),
    ],
)
def test_it_goes_to_its_own_hosts_and_to_no_other(host: str, yes: str, no: str) -> None:
    one = Credential("mine", VALUE, [host], key="X-Key")
    assert one.attach(read(yes), Attached("/", {})).headers == {"X-Key": VALUE}
    with pytest.raises(NotAllowed, match="The secret mine may not be sent") as refused:
        one.attach(read(no), Attached("/", {}))
    assert VALUE not in refused.value.message


async def test_the_client_puts_it_in_and_tells_nobody() -> None:
    client = HttpClient(HERE)
    async with far(lambda _got, _writer: OK) as there:
        one = Credential("mine", VALUE, ["127.0.0.1"], where="query", key="key")
        other = Credential("other", "s3cret", ["elsewhere.example"], key="X-Key")
        await client.get(there.url("/a"), headers={}, most=9, credentials=[one])
        assert there.got[0].line.split()[1] == "/a?key=s3cret%2B%2F%26%3D"
        with pytest.raises(NotAllowed) as refused:
            await client.get(there.url("/a"), headers={}, most=9, credentials=[one, other])
        assert len(there.got) == 1
        assert "s3cret" not in refused.value.message
    with pytest.raises(NotSent) as away:
        await client.get(there.url("/a"), headers={}, most=9, credentials=[one])
    assert "s3cret" not in away.value.message
    broken = Credential("broken", "s3cret\r\nX: y", ["127.0.0.1"], key="X-Key")
    with pytest.raises(NotSent) as unsent:
        await client.get(there.url("/a"), headers={}, most=9, credentials=[broken])
    assert "s3cret" not in unsent.value.message
    await client.close()


def test_it_is_not_shown_and_not_carried_out() -> None:
    one = Credential("mine", VALUE, ["api.example.com"], key="X-Key")
    assert VALUE not in repr(one)
    for carry in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            carry(one)
