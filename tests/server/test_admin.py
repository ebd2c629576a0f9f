"""`/v1/admin/`: who may ask what, that it stays in its tenant, and that it is on record."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.server.admins import ACME, CHANGES, EXECUTOR, ROUTES, Asked, House, prepare
from tests.server.serving import Serving
from tests.server.test_routes import is_problem
from toolgate.errors import InvalidRequest
from toolgate.server.admin.routes import ROUTES as TABLE
from toolgate.tenancy.keys import Role, digest, make, need_another_admin


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    root = tmp_path_factory.mktemp("admin")
    keys = prepare(root, calls=True)
    with Serving(root) as server:
        yield House(server, keys)


def test_every_route_is_asked_here() -> None:
    asked = {(one.method, _head(one.path.split("?")[0])) for one in ROUTES}
    every = [(method, head) for (head, _), methods in TABLE.items() for method in methods]
    there = set(every)
    # Revoking a key has a test of its own, changing its secret a file (tests/auth), and agreeing to
    # a tool or a plugin needs one, as does a call that is dead: tests/served, plugins, queue.
    alone = {
        ("DELETE", "keys"),
        ("POST", "keys/rotate"),
        ("POST", "servers/approve"),
        ("POST", "plugins/approve"),
        ("POST", "queue/retry"),
        ("POST", "queue/discard"),
        # What is asked of a server instead of its store: tests/cli, test_proof_there and the like.
        ("DELETE", "imports"),
        ("GET", "audit/anchors"),
        ("GET", "audit/export"),
        ("GET", "imports"),
        ("POST", "audit/verify"),
        ("POST", "replay"),
        ("PUT", "imports"),
    }
    assert asked | alone == there
    # One more makes an admin's key; imports are listed and shown by one name.
    assert len(ROUTES) - 1 == len(every) - len(alone) - 1


def _head(path: str) -> str:
    """What is done about a call, or a server, stands behind its name."""
    if path in {"queue/dead", "queue/discard"}:
        return path
    head, *names = path.split("/")
    is_verb = head in {"calls", "servers", "plugins"} and len(names) == 2
    return f"{head}/{names[1]}" if is_verb else head


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("asked", ROUTES, ids=str)
def test_who_may_ask_what(house: House, asked: Asked) -> None:
    expected = {
        "admin": 200,
        "own": 403 if asked.house else 200,
        "other": 403 if asked.house or asked.of_tenant else 200,
        "agent": 403,
        "nobody": 401,
    }
    told = dict.fromkeys(expected, 0)
    for who in expected:
        house.prepare(asked)
        told[who] = house.ask(who, asked).status
    assert told == expected


# By who is kept back: the code without the guard, which then lets them do what an admin does.
GUARDS_OFF = {
    "own": (
        "from toolgate.server.admin import desk\n"
        "from toolgate.server.route import Route\n"
        "desk.reaches_all = lambda request: True\n"
        "Route.lets_in = lambda route, key: True\n"
    ),
    "other": (
        "from toolgate.server.admin.desk import Desk\n"
        "Desk.tenant = property(lambda desk: desk.asked or desk.request.key.tenant)\n"
    ),
    "agent": ("from toolgate.server.route import Route\nRoute.lets_in = lambda route, key: True\n"),
    "nobody": (
        "from toolgate.server.auth import Door\n"
        "Door.known = lambda door, header: next(\n"
        "    key for key in door._world().keys.values() if key.role == 'admin')\n"
    ),
}


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("who", GUARDS_OFF)
def test_each_guard_is_what_keeps_them_back(tmp_path: Path, who: str) -> None:
    """The guard-off control: each of them, gone, lets through whom it kept back."""
    keys = prepare(tmp_path, calls=True)
    opened = {
        "own": [one for one in ROUTES if one.house],
        "other": [one for one in ROUTES if one.of_tenant and not one.house],
        "agent": [one for one in ROUTES if not one.house],
        "nobody": ROUTES,
    }[who]
    with Serving(tmp_path, before=GUARDS_OFF[who]) as server:
        house = House(server, keys)
        told: dict[str, int] = {}
        for asked in opened:
            house.prepare(asked)
            told[str(asked)] = house.ask(who, asked).status
        assert told == dict.fromkeys(told, 200)
        if who != "nobody":
            assert house.ask("nobody", ROUTES[0]).status == 401, "the other guards stand"


@pytest.mark.req("V3")
@pytest.mark.parametrize("asked", [one for one in ROUTES if one.of_tenant], ids=str)
def test_a_tenant_of_others_looks_as_if_it_were_not_there(house: House, asked: Asked) -> None:
    house.prepare(asked)
    theirs = house.ask("other", asked)
    body = None if asked.body is None else {**asked.body, "tenant": "nobody"}
    missing = house.ask(
        "other", Asked(asked.method, asked.path.replace("tenant=acme", "tenant=nobody"), body)
    )
    assert theirs.text == missing.text
    is_problem(theirs, 403, "permission_denied")


@pytest.mark.req("V3")
def test_no_list_holds_anything_of_another_tenant(house: House) -> None:
    for asked in CHANGES:
        if asked.of_tenant and asked.method != "DELETE":
            assert house.ask("admin", asked).status == 200
    secret = house.ask("admin", Asked("POST", "keys", {**ACME, "role": "tenant_admin"})).body
    hidden = (secret["id"], "acme", "helper", "narrow", EXECUTOR, "listed")
    seen = ""
    for path in ("tenants", "agents", "flags", "keys", "layers", "roles", "relations", "audit"):
        theirs = house.ask("other", Asked("GET", path))
        assert theirs.status == 200, path
        assert not [part for part in hidden if part in theirs.text], path
        own = house.ask("own", Asked("GET", path))
        assert own.status == 200
        assert "umbrella" not in own.text
        seen += own.text
    assert all(part in seen for part in hidden), "they are there to be seen by who may"


@pytest.mark.req("V3")
def test_who_runs_a_tenant_cannot_touch_the_keys_of_the_house(house: House) -> None:
    fresh = house.ask("admin", Asked("POST", "keys", {**ACME, "role": "admin"})).body
    assert fresh["id"] not in house.ask("own", Asked("GET", "keys")).text
    missing = house.ask("own", Asked("DELETE", "keys/key_none"))
    is_problem(missing, 400, "invalid_request")
    for who in ("own", "other"):
        answer = house.ask(who, Asked("DELETE", f"keys/{fresh['id']}"))
        assert answer.text.replace(fresh["id"], "key_none") == missing.text
    assert house.server.get("/v1/tools", fresh["secret"]).status == 200
    house.ask("admin", Asked("PUT", "agents/keeper", ACME))
    bound = {**ACME, "role": "admin", "agent": "keeper"}
    key = house.ask("admin", Asked("POST", "keys", bound)).body["id"]
    gone = Asked("DELETE", "agents/keeper")
    is_problem(house.ask("own", gone), 403, "permission_denied")
    assert house.ask("admin", Asked("DELETE", f"keys/{key}")).status == 200
    assert house.ask("own", gone).status == 200
    assert house.ask("admin", Asked("DELETE", f"keys/{fresh['id']}")).body["revoked"] is True
    assert house.server.get("/v1/tools", fresh["secret"]).status == 401


@pytest.mark.req("V3")
def test_a_key_is_shown_once_and_its_digest_never(house: House) -> None:
    asked = Asked("POST", "keys", {"role": "agent", "agent": "billing", "user": "ann"})
    made = house.ask("own", asked).body
    assert (made["tenant"], made["user"]) == ("acme", "ann"), "a key's own tenant goes unsaid"
    assert house.server.get("/v1/tools", made["secret"]).status == 200
    listed = house.ask("admin", Asked("GET", "keys")).text
    assert made["id"] in listed
    assert made["secret"] not in listed
    assert digest(made["secret"]) not in listed
    audit = house.ask("admin", Asked("GET", "audit")).text
    assert made["secret"] not in audit
    assert digest(made["secret"]) not in audit
    assert house.ask("other", Asked("DELETE", f"keys/{made['id']}")).status == 400
    assert house.ask("own", Asked("DELETE", f"keys/{made['id']}")).status == 200
    assert house.server.get("/v1/tools", made["secret"]).status == 401


@pytest.mark.req("O2")
@pytest.mark.parametrize("asked", CHANGES, ids=str)
def test_every_change_is_on_record_with_who_and_why(house: House, asked: Asked) -> None:
    house.prepare(asked)
    why = f"because of {asked}"
    assert house.ask("admin", asked, why=why).status == 200
    [told, *_] = _told(house, "admin", why)
    assert told["tenant"] == ("acme" if asked.of_tenant else told["tenant"])
    if not asked.house:
        house.prepare(asked)
        why = f"mine, {asked}"
        assert house.ask("own", asked, why=why).status == 200
        assert _told(house, "own", why)


def _told(house: House, who: str, why: str) -> list[dict[str, Any]]:
    """What the audit says of a change; a call that is taken back has more records behind it."""
    records = house.ask(who, Asked("GET", "audit?limit=10")).body["records"]
    return [one for one in records if (one["who"], one["why"]) == (house.keys[who].key.id, why)]


def test_the_audit_is_read_page_by_page(house: House) -> None:
    for number in range(3):
        house.ask("admin", Asked("PUT", f"tenants/page-{number}", {"why": str(number)}))
    first = house.ask("admin", Asked("GET", "audit?limit=2")).body["records"]
    assert [one["why"] for one in first] == ["2", "1"]
    before = first[-1]["id"]
    [third] = house.ask("admin", Asked("GET", f"audit?limit=1&before={before}")).body["records"]
    assert third["why"] == "0"


@pytest.mark.req("G1")
def test_a_change_counts_from_the_next_request_on(house: House) -> None:
    key = house.keys["agent"].secret
    off = Asked("PUT", "flags", {"tool": "echo", "enabled": False})
    assert house.ask("own", off).body["tenant"] == "acme", "not for everyone"
    assert house.server.call("echo", {"text": "x"}, key=key).status == 404
    flags = house.ask("admin", Asked("GET", "flags")).body
    assert (flags["tenants"]["acme"]["echo"], "echo" in flags["everyone"]) == (False, False)
    for back in (None, True):
        assert house.ask("own", off, enabled=back).status == 403, "not what an admin may have shut"
    assert house.server.call("echo", {"text": "x"}, key=key).status == 404
    assert house.ask("admin", off, tenant="acme", enabled=None).status == 200
    assert house.server.call("echo", {"text": "x"}, key=key).status == 200
    asks = {"agent": "billing", "tool": "echo", "overrides": {"requires_approval": True}}
    assert house.ask("own", Asked("PUT", "activations", asks)).status == 200
    assert house.server.call("echo", {"text": "x"}, key=key).body["status"] == "pending_approval"
    [agent] = [
        one
        for one in house.ask("own", Asked("GET", "agents")).body["agents"]
        if one["id"] == "billing"
    ]
    assert agent["tools"]["echo"]["overrides"] == {"requires_approval": True}
    assert house.ask("own", Asked("PUT", "activations", asks | {"overrides": {}})).status == 200
    assert house.server.call("echo", {"text": "x"}, key=key).body["ok"] is True


@pytest.mark.req("V3")
def test_the_last_key_of_an_admin_is_revoked_on_purpose_only(tmp_path: Path) -> None:
    keys = prepare(tmp_path)
    with Serving(tmp_path) as server:
        house = House(server, keys)
        listed = house.ask("admin", Asked("GET", "keys")).body["keys"]
        others = [one["id"] for one in listed if one["role"] == "admin"]
        others.remove(keys["admin"].key.id)
        for other in others:
            assert house.ask("admin", Asked("DELETE", f"keys/{other}")).status == 200
        last = f"keys/{keys['admin'].key.id}"
        for path in (last, f"{last}?force=false"):
            told = is_problem(house.ask("admin", Asked("DELETE", path)), 400, "invalid_request")
            assert "the last key of an admin" in told["detail"]
        no = house.ask("admin", Asked("DELETE", last, {"force": False}))
        is_problem(no, 400, "invalid_request")
        assert house.ask("admin", Asked("GET", "keys")).status == 200, "it opens as before"
        assert house.ask("admin", Asked("DELETE", last, {"force": True})).body["revoked"] is True
        assert house.ask("admin", Asked("GET", "keys")).status == 401


def test_a_key_that_has_ended_is_no_other_one() -> None:
    last, over = make(Role.ADMIN).key, make(Role.ADMIN, expires_ns=1).key
    with pytest.raises(InvalidRequest):
        need_another_admin(last.id, [last, over, make(Role.AGENT).key])
    need_another_admin(last.id, [last, make(Role.ADMIN).key])
    need_another_admin(over.id, [last, over])
