"""The REST door over a real socket: what it answers, to whom, and in which words."""

import re
from typing import Any

import orjson
import pytest

from tests.server.conftest import CANARY, Served
from tests.server.serving import Answer
from toolgate.server.problems import STATUS, WIRE

HELLO = {"text": "hello"}
# The last one says what layers, personas and Rego say.
PHASES = ["registry", "capsule", "relations", "policy", "policy", "policy"]


def is_problem(answer: Answer, status: int, code: str) -> Any:
    assert (answer.status, answer.body["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.body["status"] == status
    assert answer.body["type"] == f"urn:toolgate:error:{code}"
    assert answer.body["detail"]
    assert answer.body["title"] == code.replace("_", " ")
    assert answer.body["retryable"] is False
    # No stack, no path, no statement, nothing of the environment (case 149).
    leaks = r"Traceback|File \"|\.py\b|/(?:home|usr|tmp|work|etc)/|SELECT |INSERT |sqlite|canary"
    assert not re.search(leaks, answer.text), answer.text
    return answer.body


def test_health_and_readiness_need_no_key(served: Served) -> None:
    assert served.server.get("/healthz").body == {"status": "ok"}
    assert served.server.get("/readyz").body == {
        "status": "ready",
        "unhealthy_sources": 0,
        "unhealthy_engines": [],
        "parts": {"store": "ok", "rego": "ok"},
    }


@pytest.mark.req("V2", "C3")
@pytest.mark.parametrize("format_", ["toolgate", "openai", "anthropic", "mcp", "prompt"])
def test_tools_are_listed_in_every_format_without_what_only_a_provider_needs(
    served: Served, format_: str
) -> None:
    answer = served.server.get(f"/v1/tools?format={format_}", served.keys.agent)
    assert answer.status == 200
    assert answer.body["total"] == 8
    shown = str(answer.body["tools"])
    for name in ("echo", "timestamp", "secretive"):
        assert name in shown
    assert "CANARY_TOKEN" not in answer.text
    assert "served_tools" not in answer.text
    assert "cannot_run" not in shown, "what cannot run is not listed"


@pytest.mark.req("V2")
def test_a_list_can_be_searched_and_cut(served: Served) -> None:
    key = served.keys.agent
    found = served.server.get("/v1/tools?q=ECHO+text", key).body
    assert [tool["name"] for tool in found["tools"]] == ["echo"]
    cut = served.server.get("/v1/tools?limit=2", key).body
    assert (len(cut["tools"]), cut["total"]) == (2, 8)
    for limit in ("0", "-1", "1e3", "100001", "x", "", "٣", "000000001000000"):
        answer = served.server.ask(
            "GET", "/v1/tools?limit=" + "".join(f"%{byte:02x}" for byte in limit.encode()), key=key
        )
        is_problem(answer, 400, "invalid_request")
    is_problem(served.server.get("/v1/tools?format=xml", key), 400, "invalid_request")


@pytest.mark.req("V2")
def test_a_search_has_so_many_words_and_no_more(served: Served) -> None:
    key = served.keys.agent
    fine = "+".join(["echo", *"abcdefghijklmno"])
    assert served.server.get(f"/v1/tools?q={fine}", key).status == 200
    assert served.server.get("/v1/tools?q=" + "echo+" * 500, key).body["total"] == 1
    answer = served.server.get(f"/v1/tools?q={fine}+p", key)
    assert "up to 16 words" in is_problem(answer, 400, "invalid_request")["detail"]


@pytest.mark.req("V2", "G1")
def test_what_is_listed_can_be_shown_and_nothing_else(served: Served) -> None:
    key = served.keys.agent
    for tool in served.server.get("/v1/tools", key).body["tools"]:
        assert served.server.get(f"/v1/tools/{tool['name']}", key).body == tool
    missing = served.server.get("/v1/tools/no_such_tool", key)
    body = is_problem(missing, 404, "tool_not_found")
    for hidden in ("reserved", "cannot_run"):
        other = is_problem(served.server.get(f"/v1/tools/{hidden}", key), 404, "tool_not_found")
        assert other["detail"].replace(hidden, "no_such_tool") == body["detail"]
        assert other.keys() == body.keys()


@pytest.mark.req("X1", "V2")
def test_a_call_answers_with_an_output(served: Served) -> None:
    answer = served.server.ask(
        "POST",
        "/v1/call",
        key=served.keys.agent,
        body={"tool": "echo", "args": HELLO, "turn": {"group": "t-1", "id": "a"}},
    )
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers
    shown = answer.body
    assert (shown["ok"], shown["status"], shown["data"]) == (True, "success", HELLO)
    assert shown["call_id"].startswith("call_")


@pytest.mark.req("X5", "V2")
def test_a_tools_own_failure_is_an_answer(served: Served) -> None:
    answer = served.server.call("fails_on_purpose", key=served.keys.agent)
    assert (answer.status, answer.body["ok"], answer.body["status"]) == (200, False, "error")
    assert answer.body["error"] == {
        "code": "tool_error",
        "message": "There are only three left.",
        "retryable": False,
        "details": {"left": 3},
    }
    odd = served.server.call("odd", key=served.keys.agent)
    assert (odd.status, odd.body["error"]["code"]) == (200, "invalid_output")


@pytest.mark.req("X5")
def test_what_a_broken_tool_says_stays_inside(served: Served) -> None:
    answer = served.server.call("breaks", key=served.keys.agent)
    assert (answer.status, answer.body["error"]["code"]) == (200, "execution_failed")
    assert answer.body["error"]["details"] == {"outcome": "unknown"}
    for leak in (CANARY, "SELECT", "/etc/passwd", "Traceback"):
        assert leak not in answer.text
        assert leak not in served.server.log
    assert "tool breaks failed with ValueError" in served.server.log


@pytest.mark.req("X2", "X5")
def test_problems_have_their_status(served: Served) -> None:
    key = served.keys.agent
    wrong = is_problem(served.server.call("echo", {"text": 3}, key=key), 422, "invalid_arguments")
    assert [one["pointer"] for one in wrong["problems"]] == ["/text"]
    is_problem(served.server.call("no_such_tool", key=key), 404, "tool_not_found")
    is_problem(served.server.call("reserved", key=key), 404, "tool_not_found")
    is_problem(served.server.get("/v1/nothing", key), 404, "not_found")
    is_problem(served.server.get("/", key), 404, "not_found")
    is_problem(served.server.get("/v1/tools/", key), 404, "not_found")


@pytest.mark.req("X5")
def test_a_problem_of_the_wire_has_the_status_and_sentence_of_the_table(served: Served) -> None:
    key = served.keys.agent
    told = {
        "not_found": served.server.get("/v1/nothing", key),
        "method_not_allowed": served.server.ask("PUT", "/v1/tools", key=key),
        "misdirected_request": served.server.ask("GET", "/", headers={"Host": "evil.example"}),
        "forbidden_origin": served.server.ask("GET", "/", headers={"Origin": "http://evil.test"}),
    }
    # What ends before there is a request: tests/server/test_limits.py, test_framing.py.
    early = {"malformed_request", "request_timeout", "headers_too_large"}
    assert told.keys() | early == WIRE.keys()
    for code, answer in told.items():
        status, sentence = WIRE[code]
        # Behind it stands what only this address knows, such as its methods.
        assert is_problem(answer, status, code)["detail"].startswith(sentence)
    assert not WIRE.keys() & {kind.code for kind in STATUS}


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/call", "POST"),
        ("PUT", "/v1/call", "POST"),
        ("POST", "/v1/tools", "GET, HEAD"),
        ("DELETE", "/v1/tools/echo", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_one(
    served: Served, method: str, path: str, allow: str
) -> None:
    answer = served.server.ask(method, path, key=served.keys.agent)
    is_problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allow
    assert f"Here: {allow}." in answer.body["detail"]


@pytest.mark.req("V3")
def test_a_missing_a_wrong_and_a_revoked_key_look_alike(served: Served) -> None:
    keys = served.keys
    odd = [
        None,
        "",
        "wrong",
        keys.revoked,
        keys.agent[:-1],
        keys.agent + "x",
        keys.agent.upper(),
        "tg_admin_" + keys.agent.removeprefix("tg_agent_"),
        "é" * 40,
        "x" * 30_000,
    ]
    for path in ("/v1/tools", "/v1/tools/echo", "/v1/call", "/v1/tools/echo/explain", "/nothing"):
        answers: set[tuple[Any, ...]] = set()
        for key in odd:
            answer = served.server.ask(
                "GET", path, headers={} if key is None else {"Authorization": f"Bearer {key}"}
            )
            is_problem(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"
            answers.add((answer.text, tuple(sorted(answer.headers.keys() - {"date"}))))
        assert len(answers) == 1
    assert served.server.get("/v1/tools", keys.agent).status == 200


@pytest.mark.req("V3")
@pytest.mark.parametrize("scheme", ["Basic ", "", "Token ", "Bearer", "Bearer\t"])
def test_only_a_bearer_key_counts(served: Served, scheme: str) -> None:
    sent = {"Authorization": scheme + served.keys.agent}
    assert served.server.ask("GET", "/v1/tools", headers=sent).status == 401
    sent = {"Authorization": "bearer  " + served.keys.agent + " "}
    assert served.server.ask("GET", "/v1/tools", headers=sent).status == 200


@pytest.mark.req("V3")
def test_what_a_client_claims_beside_its_key_is_not_read(served: Served) -> None:
    claims = {"X-Tenant": "umbrella", "X-Agent": "admin", "X-Role": "admin", "X-User": "root"}
    answer = served.server.ask("GET", "/v1/tools/echo", key=served.keys.other, headers=claims)
    is_problem(answer, 404, "tool_not_found")
    answer = served.server.ask(
        "GET", "/v1/tools/echo/explain?tenant=acme", key=served.keys.other, headers=claims
    )
    is_problem(answer, 404, "tool_not_found")


@pytest.mark.req("V3", "C4")
def test_one_tenant_never_sees_anothers_tools_or_flags(served: Served) -> None:
    ours, theirs = served.keys.agent, served.keys.other

    def names(key: str, query: str = "") -> set[str]:
        tools = served.server.get(f"/v1/tools{query}", key).body["tools"]
        return {tool["name"] for tool in tools}

    assert "secretive" in names(ours)
    assert "echo" in names(ours)
    for query in ("", "?tenant=acme", "?agent=billing&tenant=acme"):
        assert not {"secretive", "echo"} & names(theirs, query)
    assert served.server.call("secretive", HELLO, key=ours).body["data"] == "hello"
    missing = served.server.call("no_such_tool", HELLO, key=theirs)
    for tool in ("secretive", "echo"):
        answer = served.server.call(tool, HELLO, key=theirs)
        is_problem(answer, 404, "tool_not_found")
        assert answer.text.replace(tool, "no_such_tool") == missing.text
        assert served.server.get(f"/v1/tools/{tool}", theirs).status == 404
    # The capsule of the same tenant's other agent is not shared either.
    assert names(served.keys.intern) == set()


@pytest.mark.req("G6")
def test_explain_is_for_an_admin_and_for_any_agent_of_any_tenant(served: Served) -> None:
    admin, path = served.keys.admin, "/v1/tools/echo/explain"
    mine = served.server.get(path + "?agent=billing", admin).body
    assert (mine["allowed"], [one["phase"] for one in mine["verdicts"]]) == (True, PHASES)
    intern = served.server.get(path + "?agent=intern", admin).body
    [no] = [one for one in intern["verdicts"] if not one["allowed"]]
    assert (no["phase"], no["rule"]) == ("capsule", "not_listed")
    assert no["remedy"] == "toolgate tools enable echo --tenant acme --agent intern"
    own = served.server.get(path + "?tenant=acme&agent=billing", admin).body
    assert own["allowed"] is True
    theirs = served.server.get(path + "?tenant=umbrella&agent=billing", admin).body
    assert (theirs["allowed"], theirs["verdicts"][0]["phase"]) == (False, "registry")
    assert theirs["remedies"] == ["toolgate tools enable echo --tenant umbrella"]
    bad = served.server.get(path + "?tenant=No%20Body", admin)
    assert "cannot name a tenant" in is_problem(bad, 400, "invalid_request")["detail"]
    missing = served.server.get("/v1/tools/no_such_tool/explain", admin).body
    assert [one["rule"] for one in missing["verdicts"]] == ["missing"]


@pytest.mark.req("G6", "V3")
def test_an_agent_may_ask_why_about_itself_and_what_it_may_see(served: Served) -> None:
    key, path = served.keys.agent, "/v1/tools/echo/explain"
    for query in ("", "?agent=billing", "?tenant=acme&agent=billing"):
        own = served.server.get(path + query, key).body
        assert (own["tool"], own["allowed"]) == ("echo", True)
        assert [one["phase"] for one in own["verdicts"]] == PHASES
    others = ("?agent=intern", "?tenant=umbrella", "?tenant=umbrella&agent=billing")
    for query in (*others, "?user=ann", "?persona=boss", "?role=admin"):
        is_problem(served.server.get(path + query, key), 400, "invalid_request")
    missing = served.server.get("/v1/tools/no_such_tool/explain?tenant=umbrella", key)
    for tool in ("reserved", "cannot_run"):
        answer = served.server.get(f"/v1/tools/{tool}/explain?tenant=umbrella", key)
        body = is_problem(answer, 404, "tool_not_found")
        assert not {"phase", "reason", "rule", "verdicts"} & body.keys()
        assert answer.text.replace(tool, "no_such_tool") == missing.text
    is_problem(served.server.get(path, served.keys.intern), 404, "tool_not_found")
    is_problem(served.server.get(path, served.keys.other), 404, "tool_not_found")


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "not json": b"{",
    "text": b'"echo"',
    "list": b'[{"tool": "echo"}]',
    "null": b"null",
    "nan": b'{"tool": "echo", "args": {"text": NaN}}',
    "infinity": b'{"tool": "echo", "args": {"text": 1e999}}',
    "surrogate": b'{"tool": "echo", "args": {"text": "\\ud800"}}',
    "not utf-8": b'{"tool": "echo", "args": {"text": "\xff"}}',
    "same name twice": b'{"tool": "echo", "tool": "timestamp", "args": {}}',
    "same name twice inside": b'{"tool": "echo", "args": {"text": "a", "text": "b"}}',
    "beyond 64 bits": b'{"tool": "echo", "args": {"text": 18446744073709551617}}',
    "deep": b'{"tool": "echo", "args": ' + b'{"a":' * 1_000 + b"1" + b"}" * 1_001,
    "very deep": b'{"tool": "echo", "args": {"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "a little too deep": b'{"tool": "echo", "args": {"text": ' + b"[" * 64 + b"]" * 64 + b"}}",
    "large": orjson.dumps({"tool": "echo", "args": {"text": "x" * (1024 * 1024)}}),
    "very large": b" " * (8 * 1024 * 1024),
    "many names": orjson.dumps({"tool": "echo", "args": {str(n): 0 for n in range(100_001)}}),
    "no tool": b'{"args": {}}',
    "tool is empty": b'{"tool": ""}',
    "tool is a number": b'{"tool": 3}',
    "args are a list": b'{"tool": "echo", "args": []}',
    "args are a text": b'{"tool": "echo", "args": "{}"}',
    "unknown field": b'{"tool": "echo", "args": {}, "tenant": "umbrella"}',
    "unknown long field": b'{"tool": "echo", "%s": 1}' % (b"x" * 5_000),
    "key is a number": b'{"tool": "echo", "args": {"text": "x"}, "idempotency_key": 7}',
    "key is empty": b'{"tool": "echo", "args": {"text": "x"}, "idempotency_key": ""}',
    "wait_s is a text": b'{"tool": "echo", "args": {"text": "x"}, "wait_s": "3"}',
    "wait_s is too long": b'{"tool": "echo", "args": {"text": "x"}, "wait_s": 601}',
    "context is a text": b'{"tool": "echo", "args": {"text": "x"}, "context": "read_only"}',
    "context has more": b'{"tool": "echo", "args": {"text": "x"}, "context": {"readonly": true}}',
    "context claims a role": b'{"tool": "echo", "args": {}, "context": {"roles": ["admin"]}}',
    "read_only is a text": b'{"tool": "echo", "args": {}, "context": {"read_only": "no"}}',
    "deny is a text": b'{"tool": "echo", "args": {}, "context": {"deny": "echo"}}',
    "deny has no group": b'{"tool": "echo", "args": {}, "context": {"deny": ["group:reed"]}}',
    "a fact is a list": b'{"tool": "echo", "args": {}, "context": {"facts": {"a": [1]}}}',
    "many selectors": orjson.dumps({"tool": "echo", "context": {"deny": ["echo"] * 257}}),
    "many facts": orjson.dumps(
        {"tool": "echo", "context": {"facts": {str(n): "x" * 64 for n in range(64)}}}
    ),
    "a long unknown part": b'{"tool": "echo", "context": {"%s": 1}}' % (b"x" * 5_000),
    "a user": b'{"tool": "echo", "args": {"text": "x"}, "user": "boss"}',
    "roles": b'{"tool": "echo", "args": {"text": "x"}, "roles": ["admin"]}',
    "turn is a text": b'{"tool": "echo", "args": {"text": "x"}, "turn": "t-1"}',
    "turn has no group": b'{"tool": "echo", "args": {"text": "x"}, "turn": {"id": "1"}}',
    "turn has an empty group": b'{"tool": "echo", "args": {"text": "x"}, "turn": {"group": ""}}',
    "turn has more": b'{"tool": "echo", "args": {"text": "x"}, "turn": {"group": "g", "x": 1}}',
}


@pytest.mark.req("X5", "V2")
@pytest.mark.parametrize("raw", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_is_not_a_call_is_told_what_is_wrong(served: Served, raw: bytes) -> None:
    answer = served.server.ask("POST", "/v1/call", key=served.keys.agent, raw=raw)
    body = is_problem(answer, 400, "invalid_request")
    assert len(body["detail"]) < 300


@pytest.mark.req("V2")
def test_a_body_at_the_edge_of_every_limit_is_taken(served: Served) -> None:
    text = "x" * (1024 * 1024 - 100)
    answer = served.server.call("echo", {"text": text}, key=served.keys.agent)
    assert answer.body["data"]["size"] == len(text) + len('{"text":""}')
    edge = b'{"tool": "echo", "args": {"text": %d}}' % (2**64 - 1)
    answer = served.server.ask("POST", "/v1/call", key=served.keys.agent, raw=edge)
    is_problem(answer, 422, "invalid_arguments")


@pytest.mark.req("S6")
def test_what_needs_a_person_is_an_output_that_waits(served: Served) -> None:
    output = served.server.call("careful", key=served.keys.agent)
    assert output.status == 200
    assert (output.body["ok"], output.body["status"]) == (False, "pending_approval")
    assert output.body["error"]["code"] == "approval_pending"
