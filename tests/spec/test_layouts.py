"""The two foreign layouts become the native one, and their authors' words stay in the messages."""

from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.spec.specs import problems, read
from toolgate.spec.effect import Effect, Permission
from toolgate.spec.export import native

TYPED = """
tools:
  - name: file_reader
    description: Read file contents
    tool_type: python
    input_schema:
      type: object
      properties:
        path: {type: string}
    implementation_config:
      module: file_tools
      function_name: read_file
    metadata:
      category: filesystem
      requires_approval: false
  - name: dangerous_delete
    description: Delete files
    tool_type: shell
    input_schema:
      type: object
      properties:
        path: {type: string}
    implementation_config:
      command: "rm {path}"
    metadata:
      is_dangerous: true
      requires_approval: true
"""
REGISTRY = """
- name: export_canvas
  description: Export graphs
  module: tools.canvas
  function: export
  category: data
  parameters:
    graph_type: {type: string, required: false}
    limit: {type: integer, default: 5}
    title: {type: string}
  side_effects: [read_only]
- name: run_shell
  description: Sandboxed shell command execution
  category: code
  permission: shell
  parameters: {type: object, properties: {command: {type: string}}}
  side_effects: [local_exec, modifies_files, system_state]
  destructive: true
"""
# As its documentation shows it: no parameters, no module, nothing that is peculiar to the layout.
SHORT = """
tools:
  - name: run_shell
    description: Sandboxed shell command execution
    category: code
    side_effects: [local_exec, modifies_files, system_state]
    destructive: true
"""
MANIFEST = """
[
    {
      "name": "export_reasoning_canvas",
      "description": "Export hypothesis/failure graphs to JSON Canvas",
      "module": "src.tools.canvas_tools",
      "function": "export_reasoning_canvas",
      "category": "data",
      "parameters": {
        "graph_type": {"type": "string", "required": false}
      }
    }
]
"""


@pytest.mark.req("C2")
def test_the_typed_layout_is_read() -> None:
    reader, delete = read(TYPED)
    assert (reader.provider, reader.category) == ("python", "filesystem")
    assert reader.config.value() == {"module": "file_tools", "function": "read_file"}
    assert (delete.provider, delete.destructive, delete.requires_approval) == ("shell", True, True)


@pytest.mark.req("C2")
def test_the_registry_layout_is_read() -> None:
    export, shell = read(REGISTRY)
    assert export.config.value() == {"module": "tools.canvas", "function": "export"}
    assert export.effect is Effect.PURE
    assert export.input_schema.value() == snapshot(
        {
            "type": "object",
            "properties": {
                "graph_type": {"type": "string"},
                "limit": {"type": "integer", "default": 5},
                "title": {"type": "string"},
            },
            "required": ["title"],
        }
    )
    assert (shell.effect, shell.permissions) == (Effect.IRREVERSIBLE, (Permission.SHELL,))
    assert shell.destructive


@pytest.mark.req("C2")
def test_the_short_form_of_the_registry_layout_is_read() -> None:
    (shell,) = read(SHORT)
    assert (shell.provider, shell.config.value()) == ("python", {})
    assert (shell.category, shell.effect, shell.destructive) == ("code", Effect.IRREVERSIBLE, True)
    assert shell.side_effects == ("local_exec", "modifies_files", "system_state")


@pytest.mark.req("C2")
def test_the_tools_of_a_plugin_manifest_are_read() -> None:
    (export,) = read(MANIFEST, "tools.json")
    assert export.config.value()["module"] == "src.tools.canvas_tools"
    assert export.input_schema.value()["required"] == []


@pytest.mark.req("C2")
def test_a_tool_is_the_same_in_every_layout() -> None:
    one = "- {name: a, provider: shell, config: {command: ls}, category: b, destructive: true}"
    typed = (
        "- {name: a, tool_type: sandbox, implementation_config: {command: ls}, "
        "metadata: {category: b, is_dangerous: true}}"
    )
    assert native(read(one)[0]) == native(read(typed)[0])


@pytest.mark.req("C2")
@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ("{name: a, tool_type: 7}", "tool_type"),
        ("{name: a, tool_type: http, implementation_config: []}", "implementation_config"),
        ("{name: a, tool_type: http, metadata: {tags: 1}}", "metadata.tags"),
        ("{name: a, tool_type: http, metadata: {is_dangerous: 1}}", "metadata.is_dangerous"),
        ("{name: a, tool_type: http, metadata: [a]}", "metadata"),
        ("{name: a, provider: http, parameters: {city: 7}}", "parameters"),
        ("{name: a, provider: http, module: b, permission: root}", "permission"),
    ],
)
def test_a_message_uses_the_words_of_the_layout(tool: str, field: str) -> None:
    assert [problem.field for problem in problems(f"- {tool}")] == [field]


@pytest.mark.req("C1", "C2")
@pytest.mark.parametrize(
    ("tool", "second"),
    [
        ("{name: a, tool_type: shell, provider: http}", "tool_type"),
        ("{name: a, tool_type: http, destructive: false, metadata: {is_dangerous: true}}",
         "metadata.is_dangerous"),
        ("{name: a, tool_type: http, metadata: {destructive: false, is_dangerous: true}}",
         "metadata.is_dangerous"),
        ("{name: a, tool_type: http, metadata: {name: b}}", "metadata.name"),
        ("{name: a, tool_type: http, config: {}, implementation_config: {a: 1}}",
         "implementation_config"),
        ("{name: a, provider: http, module: b, config: {}}", "module"),
        ("{name: a, provider: http, module: b, permissions: [], permission: shell}", "permission"),
    ],
)  # fmt: skip
def test_what_is_said_in_two_places_is_refused_and_never_chosen_between(
    tool: str, second: str
) -> None:
    assert ("a", second, "Keep one of them.") in [
        (problem.tool, problem.field, problem.write) for problem in problems(f"- {tool}")
    ]


@pytest.mark.req("C2")
def test_a_line_is_found_in_a_foreign_layout() -> None:
    text = "- name: a\n  tool_type: http\n  metadata:\n    category: b\n    tags: 7\n"
    found: list[Any] = [problem.line for problem in problems(text)]
    assert found == [5]
