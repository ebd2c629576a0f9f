"""What a request is made of: every argument where it belongs, and nothing where it does not."""

import re
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.http_tools import open_schema, spec
from tests.thorough import some
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.providers.http.address import Unfit
from toolgate.providers.http.config import plan
from toolgate.providers.http.oauth import Tokens
from toolgate.providers.http.plan import Plan, Request
from toolgate.providers.http.secret import Secrets

HOST = "https://api.example.com"
LIST = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200}


def planned(config: dict[str, Any], **fields: Any) -> Plan:
    client = HttpClient(Guard())
    return plan(spec(config, **fields), Secrets({}, {}), Tokens(client, seconds=1), most=1_000)


def sent(config: dict[str, Any], args: dict[str, Any], key: str = "", **fields: Any) -> Request:
    return planned({"url": HOST, **config}, **fields).request(args, key)


def parameter(place: str, style: str, value: Any, *, explode: bool) -> Request:
    one = {"name": "color", "in": place, "argument": "id", "style": style, "explode": explode}
    path = "/x/{color}" if place == "path" else "/x"
    return sent({"path": path, "method": "GET", "parameters": [one]}, {"id": value})


# As the tables of OpenAPI 3.1 have them.
PATHS: list[tuple[str, bool, Any, str]] = [
    ("simple", False, "blue", "blue"), ("simple", False, LIST, "blue,black,brown"),
    ("simple", True, LIST, "blue,black,brown"), ("simple", False, OBJECT, "R,100,G,200"),
    ("simple", True, OBJECT, "R=100,G=200"), ("label", False, "blue", ".blue"),
    ("label", False, LIST, ".blue,black,brown"), ("label", True, LIST, ".blue.black.brown"),
    ("label", False, OBJECT, ".R,100,G,200"), ("label", True, OBJECT, ".R=100.G=200"),
    ("matrix", False, "blue", ";color=blue"), ("matrix", False, LIST, ";color=blue,black,brown"),
    ("matrix", True, LIST, ";color=blue;color=black;color=brown"),
    ("matrix", False, OBJECT, ";color=R,100,G,200"), ("matrix", True, OBJECT, ";R=100;G=200"),
    ("simple", False, "a,b", "a%2Cb"), ("simple", False, ["a,b", "c"], "a%2Cb,c"),
    ("json", False, OBJECT, "%7B%22R%22%3A100%2C%22G%22%3A200%7D"),
]  # fmt: skip
QUERIES: list[tuple[str, bool, Any, str]] = [
    ("form", True, "blue", "color=blue"), ("form", True, "", "color="),
    ("form", True, LIST, "color=blue&color=black&color=brown"),
    ("form", False, LIST, "color=blue,black,brown"), ("form", True, OBJECT, "R=100&G=200"),
    ("form", False, OBJECT, "color=R,100,G,200"),
    ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
    ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200"),
    ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
    ("tabDelimited", False, LIST, "color=blue%09black%09brown"),
    ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200"),
    ("deepObject", True, {"a": {"b": [1]}}, "color%5Ba%5D%5Bb%5D%5B0%5D=1"),
    ("json", False, LIST, "color=%5B%22blue%22%2C%22black%22%2C%22brown%22%5D"),
    ("form", True, True, "color=true"), ("form", True, 1.5, "color=1.5"),
    ("form", True, [], ""), ("form", False, [], ""), ("form", True, None, ""),
    ("form", True, "a&b=c#d?e+f/g\nh", "color=a%26b%3Dc%23d%3Fe%2Bf%2Fg%0Ah"),
    ("form", False, ["a,b", "c&d"], "color=a%2Cb,c%26d"),
]  # fmt: skip


@pytest.mark.req("P2")
@pytest.mark.parametrize(("style", "explode", "value", "told"), PATHS)
def test_a_value_in_a_path_is_written_in_its_style(
    style: str, *, explode: bool, value: Any, told: str
) -> None:
    assert parameter("path", style, value, explode=explode).url == f"{HOST}/x/{told}"


@pytest.mark.req("P2")
@pytest.mark.parametrize(("style", "explode", "value", "told"), QUERIES)
def test_a_value_in_a_query_is_written_in_its_style(
    style: str, *, explode: bool, value: Any, told: str
) -> None:
    assert parameter("query", style, value, explode=explode).url == f"{HOST}/x" + (
        f"?{told}" if told else ""
    )


@pytest.mark.parametrize(
    ("place", "explode", "value", "told"),
    [
        ("header", False, LIST, "blue,black,brown"),
        ("header", True, OBJECT, "R=100,G=200"),
        ("header", False, OBJECT, "R,100,G,200"),
        ("cookie", True, "blue", "color=blue"),
        ("cookie", True, LIST, "color=blue; color=black; color=brown"),
        ("cookie", False, LIST, "color=blue,black,brown"),
        ("cookie", True, 'a;b=c, "d"', "color=a%3Bb=c%2C%20%22d%22"),
    ],
)
def test_a_value_in_a_header_or_cookie_is_written_in_its_style(
    place: str, *, explode: bool, value: Any, told: str
) -> None:
    style = "simple" if place == "header" else "form"
    found = parameter(place, style, value, explode=explode).headers
    assert found["color" if place == "header" else "Cookie"] == told


LEADS = re.compile(r"(?:^|[/\\])\.{1,2}(?:;|[/\\]|$)")
TRAVERSALS = [
    "../../admin", "..%2f..%2fadmin", "%2e%2e%2f", "%2E%2E/", "..;/admin", ";x=1", "a;b", "?x=1",
    "#x", "a?b#c", "/", "//", "//evil.com", "\\", "..\\..\\admin", "%5c", "a/../../b", "./a",
    "a/.", "a/..", "%252e%252e%252f", "%00", "a%00b", "a b", "a\tb", "a\nb", "a\r\nHost: evil",
    "@evil.com", ":80", "http://evil.com", "https:evil", "*", "~", "ü", "\uff0e\uff0e/", "\u2025/",
    "%c0%ae%c0%ae/", "%u002e", "..%00/", "..%01", "...", "....//", "'", '"', "<script>", "{id}",
    "}{", "&a=b", "+", "=", "a" * 3_000,
]  # fmt: skip


@pytest.mark.req("P2")
@pytest.mark.parametrize("value", TRAVERSALS, ids=lambda one: repr(one)[:30])
def test_no_argument_leads_out_of_its_place_in_the_path(value: str) -> None:
    config = {"path": "/v1/users/{id}/files", "method": "GET"}
    if LEADS.search(unquote(unquote(value))) or set("/\\") & set(value):
        with pytest.raises(Unfit):
            sent(config, {"id": value})
        return
    url = sent(config, {"id": value}).url
    before, behind = f"{HOST}/v1/users/", "/files"
    assert url.startswith(before)
    assert url.endswith(behind)
    inside = url.removeprefix(before).removesuffix(behind)
    assert not set("/?#;\\@&= \r\n\t") & set(inside)
    assert inside.isascii()


@pytest.mark.req("P2")
def test_joined_without_care_some_of_them_would() -> None:
    """The guard-off control: what a client makes of an address that arguments are put into."""
    out = [
        urljoin(f"{HOST}/v1/users/{value}/files", "")
        if value.startswith(("?", "#"))
        else urljoin(f"{HOST}/v1/users/", f"{value}/files")
        for value in TRAVERSALS
    ]
    assert f"{HOST}/admin/files" in out
    assert "http://evil.com/files" in out
    assert any(urlsplit(one).path == "/v1/users/" for one in out), "the rest is a query"


@pytest.mark.req("P2")
@pytest.mark.parametrize("value", [".", "..", "", None, [], [""]])
def test_what_would_be_no_segment_of_its_own_is_refused(value: Any) -> None:
    with pytest.raises(Unfit) as refused:
        sent({"path": "/v1/users/{id}/files", "method": "GET"}, {"id": value})
    assert refused.value.argument == "id"


DEEP = {"path": "/v1/files/{id*}", "method": "GET"}


@pytest.mark.req("P2")
def test_slashes_stand_where_the_template_says_so() -> None:
    assert sent(DEEP, {"id": "a b/c?/d%2F"}).url == f"{HOST}/v1/files/a%20b/c%3F/d%252F"


@pytest.mark.req("P2")
@pytest.mark.parametrize(
    "value", ["a/../b", "../a", "a/..", "a//b", "/a", "a/", "a\\b", "a/%2e%2e/b", "a%2f..%2fb"]
)
def test_no_argument_with_slashes_leads_up(value: str) -> None:
    with pytest.raises(Unfit):
        sent(DEEP, {"id": value})


def test_two_arguments_make_no_dots_together() -> None:
    with pytest.raises(Unfit):
        sent({"path": "/a/{id}{text}/b", "method": "GET"}, {"id": ".", "text": "."})
    with pytest.raises(Unfit):
        sent({"path": "/a/.{id}/b", "method": "GET"}, {"id": "."})


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
@settings(max_examples=some(50, 150), deadline=None)
def test_any_text_is_one_segment(value: str) -> None:
    try:
        url = PREFIXED.request({"id": value}, "").url
    except Unfit:
        assert value.partition(";")[0] in {".", ".."} or set("/\\%") & set(value)
        return
    assert url.startswith(PREFIXED.address.prefix)
    assert url.count("/") == 6


PREFIXED = planned({"url": f"{HOST}/v1/users/{{id}}/files", "method": "GET"})
BREAKS = ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\x7fb", "é", "a\u2028b", "\x0b"]


@pytest.mark.req("P2")
@pytest.mark.parametrize("value", BREAKS, ids=repr)
@pytest.mark.parametrize("config", [
    {"headers": {"X-Name": "{id}"}},
    {"headers": {"X-Name": "before {id} behind"}},
    {"cookies": {"name": "{id}"}},
    {"parameters": [{"name": "X-Name", "in": "header", "argument": "id"}]},
    {"parameters": [{"name": "name", "in": "cookie", "argument": "id"}]},
], ids=str)  # fmt: skip
def test_no_argument_ends_a_line_of_the_head(config: dict[str, Any], value: str) -> None:
    for given_so in (value, [value]):
        with pytest.raises(Unfit) as refused:
            sent({"method": "GET", **config}, {"id": given_so})
        assert refused.value.argument == "id"
    # The same place takes what is plain.
    assert sent({"method": "GET", **config}, {"id": "plain"}).headers


def test_what_is_not_given_is_left_out() -> None:
    config = {
        "method": "GET",
        "query": {"q": "{text}", "n": "at most {limit}", "v": "2"},
        "headers": {"X-A": "{name}"},
        "cookies": {"c": "{user}"},
    }
    found = sent(config, {"text": "x", "name": None})
    assert found.url == f"{HOST}/?v=2&q=x"
    assert "X-A" not in found.headers
    assert "Cookie" not in found.headers


def test_arguments_that_nothing_names_go_where_the_method_has_them() -> None:
    args = {"id": 1, "tags": ["a", "b"], "filter": {"a": 1}}
    for method in ("GET", "DELETE", "HEAD"):
        found = sent({"path": "/x/{id}", "method": method}, args)
        assert found == (f"{HOST}/x/1?tags=a&tags=b&filter%5Ba%5D=1", found.headers, None)
    for method in ("POST", "PUT", "PATCH"):
        found = sent({"path": "/x/{id}", "method": method}, args)
        assert (found.url, orjson.loads(found.body or b"")) == (
            f"{HOST}/x/1",
            {"tags": ["a", "b"], "filter": {"a": 1}},
        )
        assert found.headers["Content-Type"] == "application/json"


def test_without_a_method_everything_is_posted_as_json() -> None:
    found = sent({"path": "/run", "headers": {"X-Team": "a"}, "timeout": 5}, {"id": 1, "text": "x"})
    assert orjson.loads(found.body or b"") == {"id": 1, "text": "x"}
    assert found.headers["X-Team"] == "a"
    assert sent({}, {}).body == b"{}"
    assert sent({"path": "/{id}"}, {"id": 1}, input_schema=open_schema("id")).body is None


def test_a_header_of_its_own_says_what_the_body_is() -> None:
    config = {"headers": {"content-type": "application/vnd.api+json"}}
    found = sent(config, {"id": 1})
    assert found.headers["content-type"] == "application/vnd.api+json"
    assert "Content-Type" not in found.headers


BODIES: list[tuple[dict[str, Any], dict[str, Any], bytes | None, str]] = [
    ({"argument": "filter"}, {"filter": {"a": [1]}}, b'{"a":[1]}', "application/json"),
    ({"argument": "filter"}, {}, None, ""),
    ({"argument": "filter"}, {"filter": None}, b"null", "application/json"),
    ({"arguments": ["id", "text"]}, {"text": "x"}, b'{"text":"x"}', "application/json"),
    (
        {
            "template": {
                "q": "{text}",
                "n": "{limit}",
                "s": "as {text}",
                "k": [1, "{id}"],
                "b": "{{}}",
            }
        },
        {"text": "x", "limit": 3},
        b'{"q":"x","n":3,"s":"as x","k":[1],"b":"{}"}',
        "application/json",
    ),
    (
        {"media_type": "application/merge-patch+json"},
        {"id": 1},
        b'{"id":1}',
        "application/merge-patch+json",
    ),
    (
        {"kind": "form"},
        {"text": "a b&c", "tags": ["x", "y"], "filter": {"a": {"b": 1}}},
        b"text=a%20b%26c&tags=x&tags=y&filter%5Ba%5D%5Bb%5D=1",
        "application/x-www-form-urlencoded",
    ),
    (
        {"kind": "form", "encoding": {"tags": {"style": "form", "explode": False}}},
        {"tags": ["x", "y"]},
        b"tags=x,y",
        "application/x-www-form-urlencoded",
    ),
    (
        {"kind": "text", "argument": "text"},
        {"text": "é"},
        "é".encode(),
        "text/plain; charset=utf-8",
    ),
    (
        {"kind": "text", "argument": "text", "media_type": "application/xml"},
        {"text": "<a/>"},
        b"<a/>",
        "application/xml",
    ),
    (
        {"kind": "binary", "argument": "file"},
        {"file": "AAH/"},
        b"\x00\x01\xff",
        "application/octet-stream",
    ),
]


@pytest.mark.req("P2")
@pytest.mark.parametrize(("body", "args", "raw", "kind"), BODIES, ids=lambda one: str(one)[:40])
def test_a_body_is_made_as_its_kind_says(
    body: dict[str, Any], args: dict[str, Any], raw: bytes | None, kind: str
) -> None:
    made = planned_loosely({"method": "PUT", "body": body})
    found = made.request(args, "")
    assert (found.body, found.headers.get("Content-Type", "")) == (raw, kind)


def planned_loosely(config: dict[str, Any]) -> Plan:
    """Names are left to the config, so that none of them is sent nowhere."""
    return planned({"url": HOST, **config}, input_schema={"type": "object"})


def test_parts_keep_to_themselves() -> None:
    body = {"kind": "multipart", "files": ["file"]}
    args = {
        "text": "a\r\n--x",
        "tags": [1, 2],
        "filter": {"a": 1},
        "file": {"base64": "AAE=", "filename": 'a".txt\r\nX: y', "media_type": "text/plain"},
    }
    found = sent({"body": body}, args)
    kind, _, boundary = found.headers["Content-Type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = (found.body or b"").split(f"--{boundary}".encode())
    assert parts[1] == b'\r\nContent-Disposition: form-data; name="text"\r\n\r\na\r\n--x\r\n'
    assert [part.split(b"\r\n\r\n")[1] for part in parts[2:4]] == [b"1\r\n", b"2\r\n"]
    assert b"Content-Type: application/json\r\n\r\n" in parts[4]
    assert parts[5] == (
        b'\r\nContent-Disposition: form-data; name="file"; filename="a%22.txt%0D%0AX: y"\r\n'
        b"Content-Type: text/plain\r\n\r\n\x00\x01\r\n"
    )
    assert parts[6] == b"--\r\n"


@pytest.mark.parametrize(
    ("body", "args"),
    [
        ({"kind": "binary", "argument": "file"}, {"file": "no base64!"}),
        ({"kind": "form", "argument": "filter"}, {"filter": [1]}),
        (
            {"kind": "multipart", "files": ["file"]},
            {"file": {"base64": "AA==", "media_type": "a/b;\r\nx=y"}},
        ),
        ({"argument": "text"}, {"text": "x", "more": 1}),
    ],
)
def test_what_no_body_can_hold_is_refused(body: dict[str, Any], args: dict[str, Any]) -> None:
    with pytest.raises(Unfit):
        planned_loosely({"method": "POST", "body": body}).request(args, "")


@pytest.mark.req("P2")
def test_no_argument_brings_what_the_tool_sets_itself() -> None:
    config = {
        "method": "GET",
        "query": {"account": "ours"},
        "parameters": [{"name": "filter", "in": "query", "argument": "filter"}],
    }
    made = planned_loosely(config)
    assert made.request({"filter": {"a": 1}, "b": 2}, "").url == f"{HOST}/?account=ours&a=1&b=2"
    for args in ({"filter": {"account": "theirs"}}, {"Account": "theirs"}):
        with pytest.raises(Unfit, match="set"):
            made.request(args, "")


def test_the_far_side_is_told_which_call_it_is() -> None:
    keyed = {"effect": "irreversible", "downstream_key": {"header": "Idempotency-Key"}}
    assert sent({}, {"id": 1}, "k1", **keyed).headers["Idempotency-Key"] == "k1"
    alone = sent({"idempotency_header": "X-Once"}, {"id": 1}, "k1", effect="irreversible")
    assert alone.headers["X-Once"] == "k1"
    inside = {"effect": "irreversible", "downstream_key": "reference"}
    found = sent({}, {"id": 1, "reference": "the caller's"}, "k1", **inside)
    assert orjson.loads(found.body or b"") == {"id": 1, "reference": "k1"}
    assert "Idempotency-Key" not in sent({}, {"id": 1}, "k1", effect="irreversible").headers
