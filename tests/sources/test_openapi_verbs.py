"""A method that should only read is not believed where the operation's own name says otherwise."""

from typing import Any

import pytest

from tests.sources.openapi_documents import document, real, taken, tools
from toolgate.sources.openapi import overlay
from toolgate.sources.openapi.operations import Operation
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.verbs import changing

pytestmark = pytest.mark.req("P2")


def word(operation_id: str, path: str = "/x") -> str:
    return changing(Operation("get", path, {"operationId": operation_id}, {}))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("deleteUser", "delete"),
        ("users.delete", "delete"),
        ("chat_postMessage", "post"),
        ("GET_account_delete", "delete"),
        ("delete_item_items__item_id__get", "delete"),
        ("userDelete", "delete"),
        ("connectCoreV1GetNamespacedPodExec", "connect"),
        ("listAndPurge", "purge"),
        ("SENDMessage", "send"),
        ("loginUser", "login"),
    ],
)
def test_a_verb_that_changes_something_is_found(name: str, found: str) -> None:
    assert word(name) == found


@pytest.mark.parametrize(
    "name",
    ["getPost", "retrieve-invite", "admin_inviteRequests_list", "team_accessLogs", "GetCharges",
     "users_lookupByEmail", "listCoreV1NamespacedPodTemplate", "getUserByName", "resetters", "",
     "conversations_restrictAccess_listGroups", "read_orders_get", "address", "sendgrid-designs"],
)  # fmt: skip
def test_a_name_that_reads_is_left_alone(name: str) -> None:
    assert word(name) == ""


@pytest.mark.parametrize(
    ("path", "name", "found"),
    [
        ("/cookies/delete", "", "delete"),
        ("/delete/{id}", "", "delete"),
        ("/apps.uninstall", "", "uninstall"),
        ("/send-message", "", "send"),
        ("/posts/{id}", "", ""),
        ("/transfers/{id}/reversals", "", ""),
        ("/{id}", "", ""),
        # The two contradict each other: what is done counts.
        ("/things/delete", "getThing", "delete"),
        ("/post/{id}", "getPost", ""),
    ],
)
def test_a_path_says_it_too(path: str, name: str, found: str) -> None:
    assert word(name, path) == found


def test_gets_of_slack_that_change_something_are_irreversible_and_told() -> None:
    found = taken(real("slack-3.0"))
    effects = {name: tool["effect"] for name, tool in tools(found).items()}
    for name in ("apps_uninstall", "auth_revoke", "views_publish", "files_remote_share"):
        assert tools(found)[name]["config"]["method"] == "GET"
        assert effects[name] == "irreversible", name
    assert (effects["users_list"], effects["conversations_history"]) == ("pure", "pure")
    (note,) = [one for one in found.notes if "changes something" in one.message]
    assert "GET /apps.uninstall (uninstall)" in note.where
    assert len(note.where) == 15
    assert "effect: pure in an overlay" in note.message


def test_an_overlay_lowers_it_and_a_fetched_document_does_not() -> None:
    get: dict[str, Any] = {"operationId": "sendTest", "x-toolgate": {"effect": "pure"}}
    given = document({"/a": {"get": get}})
    assert tools(taken(given))["sendTest"]["effect"] == "irreversible"
    assert tools(taken(given, Options()))["sendTest"]["effect"] == "pure"
    word = overlay.read(b"tools: {sendTest: {effect: pure}}", file="mine.yaml")
    assert tools(taken(given, overlay=word))["sendTest"]["effect"] == "pure"
