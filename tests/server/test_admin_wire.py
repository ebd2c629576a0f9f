"""`/v1/admin/`: bodies, names, methods and policies, as the wire has them."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.server.admins import CHANGES, ROUTES, RULE, Asked, House, prepare
from tests.server.serving import Serving
from tests.server.test_routes import is_problem


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    root = tmp_path_factory.mktemp("admin")
    keys = prepare(root, calls=True)
    with Serving(root) as server:
        yield House(server, keys)


@pytest.mark.req("X5")
@pytest.mark.parametrize("asked", CHANGES, ids=str)
def test_a_field_that_nobody_knows_changes_nothing(house: House, asked: Asked) -> None:
    before = house.ask("admin", Asked("GET", "audit?limit=1")).text
    answer = house.ask("admin", asked, nonsense=1)
    assert "`nonsense`" in is_problem(answer, 400, "invalid_request")["detail"]
    more = "&" if "?" in asked.path else "?"
    answer = house.ask("admin", Asked(asked.method, f"{asked.path}{more}tennant=acme", asked.body))
    assert "`tennant`" in is_problem(answer, 400, "invalid_request")["detail"]
    answer = house.ask("admin", asked, why=3)
    assert "$.why" in is_problem(answer, 400, "invalid_request")["detail"]
    for why in ("x" * 501, "two\nlines"):
        is_problem(house.ask("admin", asked, why=why), 400, "invalid_request")
    assert house.ask("admin", Asked("GET", "audit?limit=1")).text == before


@pytest.mark.parametrize("asked", [one for one in ROUTES if not one.changes], ids=str)
def test_a_question_that_nobody_knows_is_not_half_answered(house: House, asked: Asked) -> None:
    more = "&" if "?" in asked.path else "?"
    answer = house.ask("admin", Asked(asked.method, f"{asked.path}{more}tennant=acme"))
    assert "`tennant`" in is_problem(answer, 400, "invalid_request")["detail"]


BODIES: dict[str, tuple[str, str, Any, str]] = {
    "no tool": ("PUT", "flags", {"enabled": True}, "`tool`"),
    "enabled is a text": ("PUT", "flags", {"tool": "echo", "enabled": "yes"}, "$.enabled"),
    "tenant is null": ("PUT", "agents/a", {"tenant": None}, "$.tenant"),
    "no tenant": ("PUT", "agents/a", {}, "'tenant'"),
    "nothing at all": ("PUT", "agents/a", None, "'tenant'"),
    "another mode": ("PUT", "agents/a", {"tenant": "acme", "mode": "some"}, "$.mode"),
    "two tenants": ("PUT", "agents/a?tenant=acme", {"tenant": "umbrella"}, "'tenant'"),
    "another role": ("POST", "keys", {"tenant": "acme", "role": "owner"}, "$.role"),
    "roles is a text": (
        "POST",
        "keys",
        {"tenant": "acme", "role": "agent", "agent": "billing", "roles": "clerk"},
        "$.roles",
    ),
    "a weaker override": (
        "PUT",
        "activations",
        {"tenant": "acme", "agent": "a", "tool": "echo", "overrides": {"requires_approval": False}},
        "requires_approval",
    ),
    "a group that is none": ("PUT", "layers/x", {"deny": ["group:reed"]}, "group"),
    "allow is a text": ("PUT", "layers/x", {"allow": "echo"}, "$.allow"),
    "a field of permissions": ("PUT", "roles/x", {"permissions": {"web": True}}, "`web`"),
    "a tool that is not there": ("PUT", "personas/x/tools/ehco", {}, "'echo'"),
    "no relation": ("POST", "relations", {"tenant": "acme"}, "add"),
    "a relation that is none": ("POST", "relations", {"tenant": "acme", "add": ["x"]}, "'x'"),
    "no text": ("PUT", "policies/mine", {}, "`text`"),
    "a name that is none": ("PUT", "policies/My%20Rule", {"text": RULE}, "'My Rule'"),
    "a NUL in a name": ("PUT", "personas/x/tools/%00", {"allowed": None}, "printable"),
    "a tenant's name": ("PUT", "tenants/Acme%20Corp", None, "'Acme Corp'"),
    "a limit": ("GET", "audit?limit=0", None, "'limit'"),
    "a page": ("GET", "audit?before=x", None, "'before'"),
    "another limit": ("GET", "relations?tenant=acme&limit=100000", None, "'limit'"),
}


@pytest.mark.req("X5")
@pytest.mark.parametrize(("method", "path", "body", "says"), BODIES.values(), ids=BODIES.keys())
def test_a_bad_request_is_told_which_field_is_wrong(
    house: House, method: str, path: str, body: Any, says: str
) -> None:
    answer = house.ask("admin", Asked(method, path, body))
    detail = is_problem(answer, 400, "invalid_request")["detail"]
    assert says in detail
    assert len(detail) < 400


def test_what_is_no_json_object_is_refused(house: House) -> None:
    key = house.keys["admin"].secret
    for raw in (b"{", b"[]", b'"x"', b'{"why": "a", "why": "b"}', b"\xff", b" " * 2_000_000):
        answer = house.server.ask("PUT", "/v1/admin/tenants/acme", key=key, raw=raw)
        is_problem(answer, 400, "invalid_request")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "tenants", "GET, HEAD"),
        ("GET", "tenants/acme", "PUT"),
        ("PATCH", "agents/billing", "PUT, DELETE"),
        ("DELETE", "flags", "GET, HEAD, PUT"),
        ("GET", "activations", "PUT"),
        ("PUT", "keys", "GET, HEAD, POST"),
        ("GET", "keys/key_1", "DELETE"),
        ("GET", "personas/boss/tools/a/b", "PUT"),
        ("DELETE", "audit", "GET, HEAD"),
        ("HEAD", "tenants/acme", "PUT"),
        ("OPTIONS", "policies/mine", "PUT, DELETE"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    house: House, method: str, path: str, allow: str
) -> None:
    answer = house.ask("admin", Asked(method, path))
    assert (answer.status, answer.headers["allow"]) == (405, allow)


@pytest.mark.parametrize(
    "path",
    ["", "nothing", "tenants/a/b", "personas/a/b", "personas/a/b/c", "audit/1", "personas%2Fa"],
)
def test_there_is_nothing_elsewhere(house: House, path: str) -> None:
    is_problem(house.ask("admin", Asked("GET", path)), 404, "not_found")


@pytest.mark.req("G5")
@pytest.mark.parametrize("path", ["ns:pay", "ns%3Apay", "a/b", "a%2Fb"])
def test_a_tools_name_in_a_path_may_hold_anything(house: House, path: str) -> None:
    put = Asked("PUT", f"personas/guest/tools/{path}", {"reason": "guests do not"})
    answer = house.ask("admin", put)
    assert answer.status == 200
    tool = answer.body["tool"]
    assert tool in {"ns:pay", "a/b"}
    question = f"/v1/tools/{path}/explain?agent=billing&persona=guest"
    told = house.server.get(question, house.keys["admin"].secret).body
    assert (told["tool"], told["allowed"]) == (tool, False)
    [no] = [one for one in told["verdicts"] if not one["allowed"]]
    assert "guests do not" in no["reason"]
    assert house.ask("admin", put, allowed=None).status == 200
    assert house.server.get(question, house.keys["admin"].secret).body["allowed"] is True


@pytest.mark.req("G3")
def test_a_policy_that_cannot_be_used_leaves_the_last_good_one(house: House) -> None:
    agent = house.keys["agent"].secret
    good = 'package toolgate\n\nbanned["echo"] contains "no echo today" if true\n'
    assert house.server.call("echo", {"text": "x"}, key=agent).status == 200
    assert house.ask("admin", Asked("PUT", "policies/mine", {"text": good})).status == 200
    assert house.server.call("echo", {"text": "x"}, key=agent).status == 404
    bad = house.ask("admin", Asked("PUT", "policies/mine", {"text": "package toolgate\n\ndeny["}))
    body = is_problem(bad, 422, "invalid_policy")
    assert all(line.startswith("stored:mine:3") for line in body["problems"])
    assert "stored:mine:3" in body["detail"]
    assert house.server.call("echo", {"text": "x"}, key=agent).status == 404
    kept = house.ask("admin", Asked("GET", "policies")).body
    assert kept["modules"] == {"mine": good}
    [engine] = kept["engines"]
    assert (engine["engine"], engine["ok"], bool(engine["revision"])) == ("rego", True, True)
    assert house.ask("admin", Asked("DELETE", "policies/mine")).status == 200
    assert house.server.call("echo", {"text": "x"}, key=agent).status == 200
