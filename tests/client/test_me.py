"""What a client asks first: whom its key speaks for, and its lists in a task of its own."""

from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.client.houses import Served

pytestmark = pytest.mark.req("V2")


def ask(served: Served, path: str, key: str, status: int = 200) -> Any:
    answer = served.server.get(path, key)
    assert answer.status == status, answer.text
    return answer.body


@pytest.mark.req("V3")
def test_a_key_is_told_whom_it_speaks_for_and_nothing_else(served: Served) -> None:
    keys = served.keys
    assert ask(served, "/v1/me", keys.narrow) == {
        "tenant": "acme",
        "agent": "billing",
        "user": "ann",
        "persona": "",
        "roles": ["finance"],
        "role": "agent",
        "most_calls": 10,
        "structured_tool_output": True,
    }
    told = [ask(served, "/v1/me", key) for key in (keys.admin, keys.approver)]
    assert [(one["role"], one["agent"]) for one in told] == [("admin", ""), ("approver", "")]
    assert ask(served, "/v1/me?agent=intern", keys.agent)["agent"] == "billing"
    assert ask(served, "/v1/me", "tg_agent_nothing", 401)["code"] == "unauthenticated"


@pytest.mark.parametrize("path", ["/v1/tools", "/v1/unavailable"])
def test_a_list_is_told_in_the_context_of_the_query(served: Served, path: str) -> None:
    def names(context: dict[str, Any], more: str = "") -> set[str]:
        query = f"?context={quote(orjson.dumps(context))}{more}"
        told = ask(served, path + query, served.keys.agent)
        return {one["name"] for one in told["tools" if path == "/v1/tools" else "unavailable"]}

    whole, without = names({}), names({"deny": ["echo"]})
    assert ("echo" in whole, "echo" in without) == (
        (True, False) if path == "/v1/tools" else (False, True)
    )
    both = names({"deny": ["echo"]}, "&read_only=true")
    assert ("write_line" in both) is not ("write_line" in without)
    assert ("echo" in both) is ("echo" in without)


@pytest.mark.parametrize(
    "context", ["x", "[]", '{"denied":[]}', '{"deny":"echo"}', '{"allow":[""]}', '{"a":1,"a":2}']
)
def test_half_a_context_is_refused(served: Served, context: str) -> None:
    path = f"/v1/tools?context={quote(context)}"
    told = ask(served, path, served.keys.agent, 400)
    assert (told["code"], "context" in told["detail"] or "selector" in told["detail"]) == (
        "invalid_request",
        True,
    ), told["detail"]
