"""Over HTTP: who and what is not on record, words that are not known, and one's own session."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.server.admins import RULE, Asked, House, prepare
from tests.server.serving import Serving
from tests.server.test_routes import is_problem
from toolgate.tenancy.keys import Role

pytestmark = pytest.mark.req("V2")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    root = tmp_path_factory.mktemp("typos")
    keys = prepare(root)
    with Serving(root) as server:
        yield House(server, keys)


@pytest.mark.parametrize(
    ("path", "body", "hint"),
    [
        ("flags", {"tenant": "acmee", "tool": "echo"}, "Did you mean 'acme'?"),
        ("activations", {"tenant": "acme", "agent": "biling", "tool": "echo"}, "'billing'?"),
    ],
    ids=["flags", "activations"],
)
def test_switching_off_for_nobody_is_refused(
    house: House, path: str, body: dict[str, Any], hint: str
) -> None:
    before = house.ask("admin", Asked("GET", "audit")).body
    answer = house.ask("admin", Asked("PUT", path, {**body, "enabled": False}))
    is_problem(answer, 400, "invalid_request")
    assert "on record; nothing was changed." in answer.body["detail"]
    assert hint in answer.body["detail"]
    assert house.ask("admin", Asked("GET", "audit")).body == before
    right = {**body, "tenant": "acme", "agent": "billing", "enabled": False}
    if path == "flags":
        del right["agent"]
    answer = house.ask("admin", Asked("PUT", path, right))
    assert (answer.status, "notes" in answer.body) == (200, False)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "flags", {"tool": "echo", "enabled": True}),
        ("PUT", "activations", {"agent": "new", "tool": "echo"}),
        ("PUT", "layers/own", {"deny": ["echo"]}),
        ("PUT", "roles/clerk", {"permissions": {"allowed_tools": ["echo"]}}),
        ("PUT", "agents/new", {}),
        ("POST", "relations", {"add": ["tool:echo#executor@user:ann"]}),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_whom_a_change_puts_on_record_is_in_the_notes(
    house: House, method: str, path: str, body: dict[str, Any]
) -> None:
    tenant = f"new-{path.partition('/')[0]}"
    asked = Asked(method, path, {**body, "tenant": tenant})
    first = house.ask("admin", asked).body
    assert first["notes"][0] == f"Tenant '{tenant}' was not on record; it is now."
    assert "notes" not in house.ask("admin", asked).body


def test_names_that_no_tool_and_no_role_has(house: House) -> None:
    denied = house.ask("admin", Asked("PUT", "layers/typo", {"deny": ["ehco"]}))
    is_problem(denied, 400, "invalid_request")
    assert "Did you mean 'echo'?" in denied.body["detail"]
    of = {"tenant": "umbrella"}
    allowed = house.ask("admin", Asked("PUT", "layers/typo", {**of, "allow": ["ehco"]})).body
    assert allowed["notes"] == ["No tool is called 'ehco' so far. Did you mean 'echo'?"]
    role = {**of, "permissions": {"allowed_tools": ["echo"]}}
    assert house.ask("admin", Asked("PUT", "roles/clerk", role)).status == 200
    key = {**of, "role": "agent", "agent": "billing", "roles": ["clrek"]}
    [note] = house.ask("admin", Asked("POST", "keys", key)).body["notes"]
    assert note.startswith("Role 'clrek' is not on record")


@pytest.mark.parametrize(
    ("path", "before"),
    [
        ("layers/gone", ("PUT", "layers/gone", {"deny": ["timestamp"]})),
        ("policies/gone", ("PUT", "policies/gone", {"text": RULE})),
    ],
    ids=["layers", "policies"],
)
def test_what_is_not_there_cannot_be_removed(
    house: House, path: str, before: tuple[str, str, Any]
) -> None:
    asked = Asked("DELETE", path, before=before)
    house.prepare(asked)
    assert house.ask("admin", asked).status == 200
    again = house.ask("admin", asked)
    is_problem(again, 400, "invalid_request")
    assert "nothing was changed" in again.body["detail"]


@pytest.mark.parametrize(
    ("asked", "values"),
    [
        (Asked("PUT", "agents/a", {"tenant": "acme", "mode": "some"}), "all, listed"),
        (Asked("POST", "keys", {"tenant": "acme", "role": "x"}), ", ".join(Role)),
    ],
    ids=str,
)
def test_a_value_that_is_none_of_those_names_them(house: House, asked: Asked, values: str) -> None:
    answer = house.ask("admin", asked)
    is_problem(answer, 400, "invalid_request")
    assert f"It is one of: {values}." in answer.body["detail"]


@pytest.mark.parametrize(
    "path", ["/v1/tools", "/v1/tools/timestamp", "/v1/tools/timestamp/explain"]
)
def test_a_misspelt_query_is_refused_with_the_nearest(house: House, path: str) -> None:
    key = house.keys["agent"].secret
    answer = house.server.ask("GET", f"{path}?readonly=true", key=key)
    is_problem(answer, 400, "invalid_request")
    assert "Did you mean 'read_only'?" in answer.body["detail"]
    assert house.server.ask("GET", f"{path}?read_only=true", key=key).status == 200


@pytest.mark.req("G6")
def test_an_agent_asks_why_about_a_session_of_its_own(house: House) -> None:
    key = house.keys["agent"].secret
    path = "/v1/tools/timestamp/explain"
    own = house.server.ask("GET", f"{path}?session=s1", key=key)
    assert (own.status, own.body["allowed"]) == (200, True)
    other = house.server.ask("GET", f"{path}?agent=other&session=s1", key=key)
    is_problem(other, 400, "invalid_request")
