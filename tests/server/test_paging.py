"""Lists: page by page they are the same as whole; a cursor is not made up; an ETag holds."""

import base64
import hashlib
from collections.abc import Generator
from typing import Any, cast
from urllib.parse import parse_qsl

import orjson
import pytest

from tests.server.busy import Busy, busy
from tests.server.test_routes import is_problem

EXECUTOR = "tool:echo#executor@user:"
# Who asks, where, and under which name the rows are.
LISTS: dict[str, tuple[str, str, str]] = {
    "tools": ("agent", "/v1/tools", "tools"),
    "tools of openai": ("agent", "/v1/tools?format=openai", "tools"),
    "some tools": ("agent", "/v1/tools?q=a", "tools"),
    "unavailable": ("intern", "/v1/unavailable", "unavailable"),
    "ledger": ("agent", "/v1/ledger?tool=act", "calls"),
    "approvals": ("approver", "/v1/approvals?state=all", "approvals"),
    "tenants": ("admin", "/v1/admin/tenants", "tenants"),
    "agents": ("own", "/v1/admin/agents", "agents"),
    "flags": ("admin", "/v1/admin/flags", "tenants"),
    "keys": ("admin", "/v1/admin/keys", "keys"),
    "layers": ("own", "/v1/admin/layers", "layers"),
    "roles": ("own", "/v1/admin/roles", "roles"),
    "personas": ("own", "/v1/admin/personas", "personas"),
    "relations": ("own", "/v1/admin/relations", "relations"),
    "budgets": ("admin", "/v1/admin/budgets", "tenants"),
    "limits": ("admin", "/v1/admin/limits", "limits"),
    "usage": ("admin", "/v1/admin/usage", "usage"),
    "audit": ("own", "/v1/admin/audit", "records"),
    "calls": ("operator", "/v1/admin/calls", "calls"),
}


def fill(house: Busy) -> None:
    """At least three of everything that can be listed."""
    changes: list[tuple[str, str, Any]] = []
    for name in ("one", "two", "three"):
        narrow = {"tenant": "acme", "deny": ["timestamp"]}
        changes += [
            ("PUT", f"tenants/{name}", {}),
            ("PUT", f"agents/{name}", {"tenant": "acme"}),
            ("PUT", "flags", {"tenant": name, "tool": "echo", "enabled": False}),
            ("PUT", f"layers/{name}", narrow),
            ("PUT", f"roles/{name}", {"tenant": "acme", "permissions": {"web_access": True}}),
            ("PUT", f"personas/{name}", {"can_add_tools": True}),
            ("POST", "relations", {"tenant": "acme", "add": [EXECUTOR + name]}),
            ("PUT", "budgets", {"tenant": name, "metric": "money", "most": 5}),
            ("PUT", "limits", {"tenant": name, "limit": "600/minute"}),
        ]
        off = {"tenant": "acme", "agent": "intern", "enabled": False}
        changes += [("PUT", "activations", {**off, "tool": tool}) for tool in ("act", "hold")]
        assert house.call("agent", "act", {"text": name}).body["ok"] is True
        assert house.call("agent", "careful", {"text": name}).body["status"] == "pending_approval"
    changes.append(("PUT", "activations", {**off, "tool": "tell"}))
    for method, path, body in changes:
        answer = house.ask("admin", method, f"/v1/admin/{path}", body)
        assert answer.status == 200, (path, answer.text)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    root = tmp_path_factory.mktemp("paging")
    (root / "tools").mkdir()
    broken = "tools: [{name: broken, provider: nowhere, config: {}, effect: pure}]\n"
    (root / "tools" / "broken.yaml").write_text(broken, "utf-8")
    with busy(root) as served:
        fill(served)
        yield served


def at(path: str, **fields: str) -> str:
    more = "&".join(f"{name}={value}" for name, value in fields.items())
    return f"{path}{'&' if '?' in path else '?'}{more}"


def rows(body: Any, name: str) -> list[Any]:
    found = body[name]
    return [*found.items()] if isinstance(found, dict) else found


@pytest.mark.req("V2")
@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("size", ["1", "2"])
def test_page_by_page_a_list_is_the_same_as_whole(house: Busy, kind: str, size: str) -> None:
    who, path, name = LISTS[kind]
    whole = house.ask(who, "GET", path).body
    assert len(rows(whole, name)) >= 3
    assert whole["next"] is None
    found: list[Any] = []
    page = house.ask(who, "GET", at(path, limit=size)).body
    for _ in range(200):
        assert 1 <= len(rows(page, name)) <= int(size)
        found += rows(page, name)
        if page["next"] is None:
            break
        answer = house.ask(who, "GET", at(path, limit=size, cursor=page["next"]))
        assert answer.status == 200, answer.text
        page = answer.body
        if page["next"] is None and not rows(page, name):
            break
    # Whoever asks has used a key meanwhile.
    for row in (*found, *rows(whole, name)):
        if isinstance(row, dict):
            cast("dict[str, Any]", row).pop("last_used", None)
    assert found == rows(whole, name)


@pytest.mark.req("V2")
@pytest.mark.parametrize("kind", LISTS)
def test_a_cursor_that_was_made_up_is_refused(house: Busy, kind: str) -> None:
    who, path, _ = LISTS[kind]
    good = house.ask(who, "GET", at(path, limit="1")).body["next"]
    flipped = ("B" if good[0] == "A" else "A") + good[1:]
    other = house.ask("admin", "GET", "/v1/admin/agents?tenant=acme&limit=1").body["next"]
    made_up = ["x", "", "null", "%00", "%ff%fe", "A" * 5_000, good + "A", good[:-4], flipped, other]
    for cursor in made_up:
        answer = house.ask(who, "GET", at(path, cursor=cursor))
        assert "cursor" in is_problem(answer, 400, "invalid_request")["detail"], cursor
    assert house.ask(who, "GET", at(path, cursor=good)).status == 200


SHAPES: list[Any] = [5.5, {"a": 1}, [], [1], [[]], ["x", {}], [{}, []], [2**63, "z"], [-1, "z"]]


def forged(path: str, last: Any) -> str:
    """A cursor with a tag that fits: it has no secret."""
    bare, _, query = path.partition("?")
    which = sorted([*pair] for pair in parse_qsl(query) if pair[0] != "format")
    of, raw = orjson.dumps([bare, which]), orjson.dumps(last)
    tag = hashlib.blake2b(b"%d:%b%b" % (len(of), of, raw), digest_size=8).digest()
    return base64.urlsafe_b64encode(tag + raw).rstrip(b"=").decode()


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("kind", LISTS)
def test_a_cursor_of_another_shape_is_refused(house: Busy, kind: str) -> None:
    who, path, _ = LISTS[kind]
    for last in SHAPES:
        answer = house.ask(who, "GET", at(path, cursor=forged(path, last)))
        assert "cursor" in is_problem(answer, 400, "invalid_request")["detail"], last
    assert house.ask("agent", "GET", at("/v1/tools", cursor=forged("/v1/tools", "b"))).status == 200


def elsewhere(last: Any, to: Any) -> Any:
    """The same place with every text, or every number, moved."""
    if isinstance(last, list):
        return [elsewhere(part, to) for part in cast("list[Any]", last)]
    return to if type(last) is type(to) else last


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("kind", LISTS)
def test_a_cursor_that_is_forged_for_any_place_shows_no_row_that_the_list_lacks(
    house: Busy, kind: str
) -> None:
    who, path, name = LISTS[kind]
    whole = rows(house.ask(who, "GET", path).body, name)
    good = house.ask(who, "GET", at(path, limit="1")).body["next"]
    last = orjson.loads(base64.urlsafe_b64decode(good + "=" * (-len(good) % 4))[8:])
    assert forged(path, last) == good, "the control: whoever likes can make one"
    shown = 0
    for to in ("", "a", "globex", "umbrella", "zzzz", "\uffff", 0, 1, 2**62):
        answer = house.ask(who, "GET", at(path, cursor=forged(path, elsewhere(last, to))))
        assert answer.status in {200, 400}, answer.text
        if answer.status == 200:
            found = rows(answer.body, name)
            assert [one for one in found if one not in whole] == []
            shown += len(found)
    assert shown or kind in {"ledger", "calls"}, "a call is a place only where it is one's own"


@pytest.mark.req("V2", "V3")
def test_another_ones_call_is_no_place_to_go_on_from(house: Busy) -> None:
    [call, *_] = house.ask("agent", "GET", "/v1/ledger").body["calls"]
    assert house.ask("agent", "GET", f"/v1/ledger?before={call['call_id']}").status == 200
    answers = [
        house.ask("intern", "GET", f"/v1/ledger?before={one}")
        for one in (call["call_id"], "call_0")
    ]
    told = [is_problem(answer, 400, "invalid_request")["detail"] for answer in answers]
    assert told[0].replace(call["call_id"], "call_0") == told[1]


@pytest.mark.req("V2", "V3")
def test_a_cursor_opens_nothing_of_another_tenant(house: Busy) -> None:
    good = house.ask("agent", "GET", "/v1/ledger?limit=1").body["next"]
    theirs = house.ask("stranger", "GET", f"/v1/ledger?cursor={good}")
    assert theirs.status == 400, "there is no such call of theirs to go on from"
    relations = house.ask("own", "GET", "/v1/admin/relations?limit=1").body["next"]
    beyond = house.ask("other", "GET", f"/v1/admin/relations?cursor={relations}").body
    assert beyond == {"relations": [], "next": None}


def test_the_old_way_of_paging_still_works(house: Busy) -> None:
    [first] = house.ask("agent", "GET", "/v1/ledger?limit=1").body["calls"]
    rest = house.ask("agent", "GET", f"/v1/ledger?before={first['call_id']}").body
    assert first not in rest["calls"]
    assert len(rest["calls"]) == 5
    both = f"/v1/ledger?before={first['call_id']}&cursor=x"
    is_problem(house.ask("agent", "GET", both), 400, "invalid_request")


@pytest.mark.req("V2")
@pytest.mark.parametrize("kind", [*LISTS, "one tool", "one approval"])
def test_what_has_not_changed_is_not_sent_again(house: Busy, kind: str) -> None:
    if kind == "one tool":
        who, path = "agent", "/v1/tools/echo"
    elif kind == "one approval":
        [last, *_] = house.ask("approver", "GET", "/v1/approvals").body["approvals"]
        who, path = "approver", f"/v1/approvals/{last['id']}"
    else:
        who, path, _ = LISTS[kind]
    answer = house.ask(who, "GET", path)
    tag = answer.headers["etag"]
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.headers["vary"] == "authorization"
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        kept = house.ask(who, "GET", path, If_None_Match=known)
        assert (kept.status, kept.text, kept.headers["etag"]) == (304, "", tag), known
    for other in ('"other"', "", tag[:-1], "W/"):
        assert house.ask(who, "GET", path, If_None_Match=other).status == 200


@pytest.mark.req("V2", "G1")
def test_a_tag_changes_with_what_it_stands_for(house: Busy) -> None:
    def tag(who: str = "intern", query: str = "") -> str:
        return house.ask(who, "GET", f"/v1/tools{query}").headers["etag"]

    before = tag()
    assert len({before, tag(query="?limit=1"), tag(query="?format=mcp"), tag("agent")}) == 4
    off = {"tenant": "acme", "agent": "intern", "tool": "echo", "enabled": False}
    assert house.ask("own", "PUT", "/v1/admin/activations", off).status == 200
    assert house.ask("intern", "GET", "/v1/tools", If_None_Match=before).status == 200
    assert tag() != before
    back = off | {"enabled": True}
    assert house.ask("own", "PUT", "/v1/admin/activations", back).status == 200
    assert tag() == before
    asks = back | {"overrides": {"requires_approval": True}}
    assert house.ask("own", "PUT", "/v1/admin/activations", asks).status == 200
    assert tag() != before, "whether it waits for a person is told in the list"
    assert "echo" in house.ask("intern", "GET", "/v1/tools").body["people"]


@pytest.mark.req("V2")
def test_what_an_agent_lacks_is_told_with_the_reason(house: Busy) -> None:
    found = house.ask("intern", "GET", "/v1/unavailable").body["unavailable"]
    by_name = {one["name"]: one for one in found}
    assert {"act", "hold", "tell"} <= by_name.keys()
    assert by_name["act"]["phase"] == "capsule"
    assert by_name["act"]["reason"]
    assert by_name["act"]["definition"]["effect"] == "compensatable"
    assert "act" not in {
        one["name"] for one in house.ask("intern", "GET", "/v1/tools").body["tools"]
    }


@pytest.mark.req("C4", "V3")
def test_the_operators_words_are_not_told_to_who_lacks_a_tool(house: Busy) -> None:
    layer = {"tenant": "acme", "deny": ["count"], "reason": "the merger"}
    assert house.ask("admin", "PUT", "/v1/admin/layers/hushed", layer).status == 200
    by_name = {
        one["name"]: (one["phase"], one["reason"])
        for one in house.ask("agent", "GET", "/v1/unavailable").body["unavailable"]
    }
    assert by_name["count"] == ("policy", "the policy refuses it")
    asked = "/v1/unavailable?read_only=true"
    own = {
        one["name"]: one["reason"] for one in house.ask("agent", "GET", asked).body["unavailable"]
    }
    assert own["act"] == "the task is read_only", "what the caller said itself"
    about = "/v1/tools/count/explain?tenant=acme&agent=billing"
    assert "the merger" in house.ask("admin", "GET", about).text, "an admin is told"
    assert house.ask("admin", "DELETE", "/v1/admin/layers/hushed?tenant=acme").status == 200


@pytest.mark.req("V2")
def test_a_planner_is_told_what_it_has_to_know(house: Busy) -> None:
    assert house.ask("agent", "GET", "/v1/tools/act/metadata").body == {
        "name": "act",
        "effect": "compensatable",
        "requires_confirmation": False,
        "is_irreversible": False,
        "is_safe_to_retry": False,
        "compensation_tool": "unact",
        "categories": [],
    }
    assert house.ask("agent", "GET", "/v1/tools/a%2Fb/metadata").body["is_safe_to_retry"] is True
    missing = house.ask("agent", "GET", "/v1/tools/none/metadata")
    is_problem(missing, 404, "tool_not_found")


@pytest.mark.req("V2")
def test_who_looks_after_tools_is_told_which_cannot_be_called_and_an_agent_is_not(
    house: Busy,
) -> None:
    agents = house.ask("agent", "GET", "/v1/tools").body
    assert "unusable" not in agents
    assert "broken" not in {tool["name"] for tool in agents["tools"]}
    every = house.ask("admin", "GET", "/v1/tools").body["unusable"]
    assert every["broken"] == "no provider 'nowhere' is available"
    # A tool of somebody's file is the house's affair; those that are built in are no secret.
    own = house.ask("own", "GET", "/v1/tools").body["unusable"]
    assert own == {name: why for name, why in every.items() if name != "broken"}
    for who, seen in (("admin", every), ("own", own), ("operator", own)):
        listed = house.ask(who, "GET", "/v1/admin/tools").body["tools"]
        assert {
            row["name"]: row["reason"] for row in listed if row["state"] == "unusable"
        } == seen, who
    listed = house.ask("own", "GET", "/v1/admin/tools?agent=billing").body["tools"]
    assert {row["state"] for row in listed} == {"on"}, "an agent's are what it may call"
