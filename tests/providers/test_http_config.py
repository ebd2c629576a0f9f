"""A config that cannot work is told when it is loaded: which field, and what to write."""

from typing import Any

import pytest

from tests.providers.http_tools import VALUE, open_schema, provider, reason, secrets
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import NOWHERE

URL = "https://api.example.com/v1/users/{id}"
BEARER = {"kind": "bearer", "secret": "key"}

FINE: list[dict[str, Any]] = [
    {
        "url": "https://api.example.com/v1/things",
        "method": "POST",
        "headers": {"X-Team": "a"},
        "timeout": 30,
    },
    {"url": URL},
    {"url": URL, "method": "get"},
    {"url": "https://api.example.com", "path": "/v1/users/{id}", "method": "DELETE"},
    {"url": "https://api.example.com/find?q={text}&fixed=1", "method": "GET"},
    {
        "url": URL,
        "query": {"q": "{text}", "limit": "{limit}", "v": 2, "all": True, "in": ["a", "b"]},
    },
    {"url": URL, "headers": {"X-Name": "user {user.name}"}, "cookies": {"session": "{text}"}},
    {
        "url": URL,
        "parameters": [{"name": "id", "in": "path", "argument": "user", "style": "label"}],
    },
    {
        "url": "https://api.example.com/x",
        "method": "GET",
        "parameters": [{"name": "filter", "in": "query", "style": "deepObject"}],
    },
    {"url": "https://api.example.com/x", "method": "POST", "body": {"kind": "form"}},
    {
        "url": URL,
        "method": "GET",
        "redirects": 3,
        "response": {"path": "data.items", "headers": ["Link"]},
    },
    {"url": "https://[2001:db8::1]:8443/x"},
]

WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "config.url is missing; write url: https://HOST/PATH"),
    ({"url": 7}, "config.url is a number, not a text"),
    ({"url": "ftp://h/x"}, "does not begin with http:// or https://"),
    ({"url": "https://{text}.example.com/"}, "names no host that can be read"),
    ({"url": "https://example.com:{limit}/"}, "names no host that can be read"),
    ({"url": "{text}"}, "does not begin with http:// or https://"),
    ({"url": "https://ann:pw@example.com/"}, "has a user or a password in it"),
    ({"url": "https://example.com\\@evil.com/"}, "backslash"),
    ({"url": "https://example.com/a b"}, "has a space"),
    ({"url": "https://example.com/#x"}, "has a # or a second ?"),
    ({"url": "https://example.com/../x"}, "has . or .. in its path"),
    ({"url": "https://example.com/%2e%2E/x"}, "has . or .. in its path"),
    ({"url": "https://example.com/{id"}, "arguments as {NAME}"),
    ({"url": "https://example.com/{}"}, "has {} without a name"),
    ({"url": "https://example.com/{nobody}"}, "'nobody', which input_schema lacks"),
    ({"url": "https://example.com:22/x"}, "port 22 is none of the web"),
    ({"url": URL, "methd": "GET"}, "config.methd is no key of an HTTP tool"),
    ({"url": URL, "method": "TRACE"}, "config.method is 'TRACE', not one of GET"),
    ({"url": URL, "method": ["GET"]}, "config.method is a list, not one of GET"),
    ({"url": URL, "query": ["a"]}, "config.query is a list, not an object"),
    ({"url": URL, "query": {"a": {"b": 1}}}, "config.query.a holds what is no text"),
    ({"url": URL, "query": {"a": "{text"}}, "config.query.a has a single '{'"),
    ({"url": URL, "headers": {"Host": "x"}}, "config.headers.Host is Host, which the client sets"),
    ({"url": URL, "headers": {"Content-Length": "1"}}, "which the client sets"),
    ({"url": URL, "headers": {"Authorization": "Bearer {text}"}}, "write auth: {kind: bearer"),
    ({"url": URL, "headers": {"Cookie": "a=b"}}, "write cookies:"),
    ({"url": URL, "headers": {"X A": "b"}}, "which is no name"),
    ({"url": URL, "headers": {"X-A": "a\r\nX-B: c"}}, "config.headers"),
    ({"url": URL, "cookies": {"a;b": "c"}}, "which is no name"),
    (
        {
            "url": URL,
            "query": {"a": "1"},
            "parameters": [{"name": "A", "in": "query", "argument": "text"}],
        },
        "sets the query 'A' twice",
    ),
    ({"url": URL, "parameters": [{"name": "x", "in": "path", "argument": "text"}]}, "has no {x}"),
    ({"url": URL, "parameters": [{"in": "query"}]}, "config.parameters[0] needs name and in"),
    (
        {"url": URL, "parameters": [{"name": "q", "in": "body"}]},
        "config.parameters[0].in is 'body'",
    ),
    (
        {"url": URL, "parameters": [{"name": "text", "in": "header", "style": "form"}]},
        "config.parameters[0].style is 'form', not one of simple",
    ),
    ({"url": URL, "method": "POST", "body": {"kind": "soap"}}, "config.body.kind is 'soap'"),
    (
        {"url": URL, "body": {"argument": "text", "template": {}}},
        "has argument and template; keep one",
    ),
    ({"url": URL, "body": {"kind": "binary"}}, "write argument: NAME"),
    (
        {"url": URL, "body": {"argument": "nobody"}},
        "config.body.argument names the argument 'nobody'",
    ),
    ({"url": URL, "body": {"argument": "text"}}, "config sends the argument 'file' nowhere"),
    ({"url": URL, "body": {"media_type": "a\nb"}}, "config.body.media_type"),
    (
        {"url": URL, "body": {"kind": "multipart"}, "headers": {"Content-Type": "a/b"}},
        "a multipart has its own",
    ),
    ({"url": URL, "response": {"kind": "xml"}}, "config.response.kind is 'xml'"),
    ({"url": URL, "response": {"kind": "text", "path": "a"}}, "leave one out"),
    ({"url": URL, "timeout": 0}, "config.timeout is 0; it goes from 0.001"),
    ({"url": URL, "redirects": 3}, "config.redirects are not followed for POST"),
    ({"url": URL, "idempotency_header": "Host"}, "config.idempotency_header is Host"),
    (
        {"url": URL, "auth": {"kind": "magic"}},
        "config.auth.kind is no kind of it; write one of bearer",
    ),
    ({"url": URL, "auth": {"kind": "bearer"}}, "config.auth.secret is missing; bearer needs it"),
    (
        {"url": URL, "auth": {"kind": "bearer", "secret": "other"}},
        "names the secret 'other', which the settings lack (key)",
    ),
    (
        {"url": URL, "auth": {"kind": "bearer", "secret": "key", "token": "x"}},
        "has the unknown key 'token'",
    ),
    (
        {"url": URL, "auth": {"kind": "basic", "secret": "key", "user": "a:b"}},
        "config.auth.user has a colon",
    ),
    (
        {"url": URL, "auth": {"kind": "api_key", "in": "header", "name": "Host", "secret": "key"}},
        "which the client sets",
    ),
    ({"url": URL, "auth": [BEARER, BEARER]}, "sends two credentials in one place"),
    (
        {
            "url": URL,
            "query": {"token": "{text}"},
            "auth": {"kind": "api_key", "in": "query", "name": "Token", "secret": "key"},
        },
        "sets the query 'token' twice",
    ),
]


@pytest.mark.req("P2")
@pytest.mark.parametrize("config", FINE, ids=lambda one: str(one)[:60])
def test_a_config_that_holds_is_taken(config: dict[str, Any]) -> None:
    assert reason(config) == ""


@pytest.mark.req("P2")
@pytest.mark.parametrize(("config", "told"), WRONG, ids=lambda one: str(one)[:60])
def test_a_config_that_cannot_work_is_told_with_its_field(
    config: dict[str, Any], told: str
) -> None:
    found = reason(config, secrets("api.example.com"))
    assert told in found
    assert VALUE not in found


def test_all_that_is_wrong_is_told_at_once() -> None:
    found = reason({"url": URL, "method": "TRACE", "timeout": -1, "querry": {}})
    assert found.count(";") >= 2
    assert all(part in found for part in ("method", "timeout", "querry"))


HOSTS: list[tuple[str, str, str]] = [
    ("api.example.com", "https://api.example.com/x", ""),
    ("api.example.com", "https://api.example.com:8443/x", ""),
    ("api.example.com:8443", "https://api.example.com:8443/x", ""),
    ("*.example.com", "https://api.example.com/x", ""),
    ("*.example.com", "https://a.b.example.com/x", ""),
    ("API.Example.com", "https://api.example.com/x", ""),
    ("127.0.0.1", "http://127.0.0.1:8080/x", ""),
    ("billing.internal:8080", "http://billing.internal:8080/x", ""),
    ("*.example.com", "https://example.com/x", "may not be sent to example.com:443"),
    ("example.com", "https://api.example.com/x", "may not be sent"),
    ("example.com", "https://notexample.com/x", "may not be sent"),
    ("*.example.com", "https://evilexample.com/x", "may not be sent"),
    ("api.example.com", "https://api.example.com.evil.com/x", "may not be sent"),
    ("api.example.com:8443", "https://api.example.com/x", "may not be sent"),
    ("127.0.0.1", "http://127.0.0.2/x", "may not be sent"),
    ("api.example.com", "http://api.example.com/x", "would be sent in the clear"),
]


@pytest.mark.req("P2")
@pytest.mark.parametrize(("host", "url", "told"), HOSTS)
def test_a_secret_is_bound_to_its_hosts(host: str, url: str, told: str) -> None:
    found = reason({"url": url, "auth": BEARER}, secrets(host))
    assert (told in found) if told else found == ""
    # Without a secret the same address is fine: it is the binding that refuses.
    assert reason({"url": url}) == ""


@pytest.mark.parametrize(
    ("value", "told"),
    [("", "variable KEY is not set"), ("a\nb", "holds what no header can"), ("é" * 9, "ASCII")],
)
def test_a_secret_without_a_value_that_can_be_sent_is_told(value: str, told: str) -> None:
    config = {"url": "https://api.example.com/", "auth": BEARER}
    found = reason(config, secrets("api.example.com"), environ={"KEY": value})
    assert told in found
    assert not value or value not in found


def test_the_token_of_an_oauth_client_goes_no_further_than_its_secret() -> None:
    auth = {
        "kind": "oauth",
        "token_url": "https://login.example.org/token",
        "client_id": "toolgate",
        "secret": "key",
    }
    config = {"url": "https://api.example.com/x", "auth": auth}
    assert "may not be sent to login.example.org" in reason(config, secrets("api.example.com"))
    assert "may not be sent to api.example.com" in reason(config, secrets("login.example.org"))
    assert reason(config, secrets("api.example.com", "login.example.org")) == ""


def test_one_header_is_not_two_keys() -> None:
    config = {"url": "https://api.example.com/x", "idempotency_header": "X-Key"}
    keyed: dict[str, Any] = {
        "effect": "irreversible",
        "downstream_key": {"header": "Idempotency-Key"},
    }
    assert "downstream_key says Idempotency-Key" in reason(config, **keyed)
    assert reason({"url": "https://api.example.com/x"}, **keyed) == ""
    taken = {"url": "https://api.example.com/x", "headers": {"idempotency-key": "{text}"}}
    assert "sets the header Idempotency-Key twice" in reason(taken, **keyed)


def test_an_open_schema_leaves_the_names_to_the_config() -> None:
    config = {"url": "https://api.example.com/{anything}"}
    assert reason(config, input_schema={"type": "object"}) == ""
    closed = open_schema(additionalProperties=False)
    assert "lacks" in reason(config, input_schema=closed)


def test_the_typed_layout_makes_an_http_tool_too() -> None:
    config: dict[str, Any] = {"url": "https://api.example.com/x", "headers": {"X-A": "b"}}
    fields: dict[str, Any] = {"name": "act", "tool_type": "http", "implementation_config": config}
    found = read_tool(fields | {"metadata": {"is_dangerous": True}}, origin=NOWHERE)
    assert (found.provider, found.destructive) == ("http", True)
    assert provider().unusable(found) is None
