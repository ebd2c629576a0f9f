"""What a list calls a tool is what a call takes, and a name may hold a slash."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.server.serving import Serving
from tests.server.test_routes import is_problem
from toolgate.spec.names import for_model

TOOLS = """\
tools:
  - {name: "ns:pay", config: {builtin: timestamp}, effect: pure}
  - {name: "ns:hidden", config: {builtin: timestamp}, effect: pure, enabled: false}
  - {name: foo, config: {builtin: timestamp}, effect: pure}
  - {name: foo/explain, config: {builtin: timestamp}, effect: pure}
  - {name: a/b, config: {builtin: timestamp}, effect: pure}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    root = tmp_path_factory.mktemp("names")
    (root / "tools").mkdir()
    (root / "tools" / "names.yaml").write_text(TOOLS, "utf-8")
    (root / "toolgate.toml").write_text(
        "[tools]\nbuiltin = ['echo', 'read_output', 'timestamp']\n", "utf-8"
    )
    with Serving(root) as serving:
        yield serving


def key_of(server: Serving) -> str:
    return server.greeting["keys"]["agent"]


@pytest.mark.req("V2", "C3")
@pytest.mark.parametrize("format_", ["toolgate", "openai", "anthropic", "mcp"])
def test_whatever_a_list_calls_a_tool_can_be_called(server: Serving, format_: str) -> None:
    key = key_of(server)
    tools = server.get(f"/v1/tools?format={format_}", key).body["tools"]
    names = [(tool.get("function") or tool)["name"] for tool in tools]
    assert len(names) == 7
    for name in names:
        args = {"echo": {"text": "x"}, "read_output": {"reference": "x"}}.get(name, {})
        assert server.call(name, args, key=key).status == 200, name


@pytest.mark.req("G1")
def test_a_mapped_name_opens_nothing_that_is_hidden(server: Serving) -> None:
    key = key_of(server)
    for name in (for_model("ns:hidden"), for_model("ns:missing"), "ns:hidden", "nothing"):
        is_problem(server.call(name, key=key), 404, "tool_not_found")
    assert server.call(for_model("ns:pay"), key=key).status == 200


@pytest.mark.req("V2")
def test_an_encoded_slash_stays_inside_a_name(server: Serving) -> None:
    key = key_of(server)

    def at(path: str) -> dict[str, Any]:
        return server.get(f"/v1/tools/{path}", key).body

    assert at("foo%2Fexplain")["name"] == "foo/explain"
    assert at("foo%2fexplain")["name"] == "foo/explain"
    assert at("foo/explain")["tool"] == "foo"
    assert at("foo%2Fexplain/explain")["tool"] == "foo/explain"
    assert at("foo/explain/explain")["tool"] == "foo/explain"
    assert (at("a/b")["name"], at("a%2Fb")["name"]) == ("a/b", "a/b")
    assert at("a/b/explain")["tool"] == at("a%2Fb/explain")["tool"] == "a/b"
    assert (at("%66oo")["name"], at("foo/%65xplain")["tool"]) == ("foo", "foo")
    for nothing in ("", "explain", "%2F", "%00", "%ff", "foo%252Fexplain"):
        assert server.get(f"/v1/tools/{nothing}", key).status == 404, nothing
