"""What is nearly right would silently decide nothing: it is refused, with the right name."""

from typing import Any

import pytest

from tests.engines.questions import asked
from toolgate.caller import Action
from toolgate.engines import modules
from toolgate.engines.modules import build
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy

ALONE = "default allow := false\n\n"


def problems(body: str, data: dict[str, Any] | None = None, *, bundled: bool = True) -> str:
    try:
        build(
            {"a.rego": f"package toolgate\n\n{body}\n"} if body else {}, data or {}, bundled=bundled
        )
    except InvalidPolicy as error:
        return error.message
    return ""


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("global_tool_deny", "echo"),
        ("global_tool_deny", {"echo": True}),
        ("global_tool_deny", [["echo"]]),
        ("tool_catalog", ["echo"]),
        ("tool_catalog", {"echo": "off"}),
        ("tenant_tool_flags", {"echo": False}),
        ("tenant_tool_flags", {"acme": ["echo"]}),
        ("tenant_tool_flags", {"acme": {"echo": None}}),
        ("persona_tool_deny", ["echo"]),
        ("persona_tool_deny", {"clerk": "echo"}),
        ("code_execution_restricted_tenants", "acme"),
        ("code_execution_restricted_tenants", {"acme": True}),
        ("restricted_arguments", {"acme": {"echo": ["text"]}}),
        ("restricted_arguments", {"acme": {"echo": {"text": "hello"}}}),
        ("persona_permissions", ["clerk"]),
        ("persona_permissions", {"clerk": False}),
        ("persona_permissions", {"clerk": {"can_add_tools": "false"}}),
        ("persona_permissions", {"clerk": {"can_add_tool": False}}),
    ],
)
def test_data_of_another_shape_is_refused(name: str, wrong: object) -> None:
    told = problems("", {name: wrong})
    assert f"data: {name!r} is not of the shape that is read; write " in told
    assert not problems(f"{ALONE}allow if data.{name}", {name: wrong}, bundled=False), "theirs"


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("global_tool_deny", ["echo"]),
        ("global_tool_deny", []),
        ("tool_catalog", {"echo": {"enabled": False, "note": "x"}, "fetch": True}),
        ("tenant_tool_flags", {"acme": {"echo": {"enabled": False}, "fetch": False}}),
        ("persona_tool_deny", {"clerk": ["echo"]}),
        ("code_execution_restricted_tenants", ["acme"]),
        ("restricted_arguments", {"*": {"*": {"text": ["hello", 1, None]}}}),
        ("persona_permissions", {"clerk": {"can_add_tools": False}, "boss": {}}),
    ],
)
def test_data_of_the_shape_that_is_read_is_taken(name: str, right: object) -> None:
    assert not problems("", {name: right})


@pytest.mark.req("G3")
async def test_what_is_refused_would_have_refused_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    right = build({}, {"global_tool_deny": ["echo"]})
    assert not await Rego(right).allows(asked(Action.REQUEST, "echo"))
    monkeypatch.setattr(modules, "wrong_documents", lambda _data: ())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    for data in ({"persona_tool_deny": {"clerk": "echo"}}, {"global_tools_deny": ["echo"]}):
        assert await Rego(build({}, data)).allows(asked(Action.REQUEST, "echo"))


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("global_tools_deny", "global_tool_deny"),
        ("tool_catalogue", "tool_catalog"),
        ("persona_permission", "persona_permissions"),
        ("restricted_argument", "restricted_arguments"),
    ],
)
def test_a_document_of_nearly_the_name_is_refused(name: str, meant: str) -> None:
    assert f"nothing reads {name!r}; did you mean {meant!r}?" in problems("", {name: {}})
    assert not problems("", {"shop": {name: {}}}), "only at the top"
    assert not problems("", {"tools": {}, "catalog": {}, "persona": {}})


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("head", "meant"),
    [
        ("denny contains `x`", "deny"),
        ("restricts contains `x`", "restrict"),
        ('baned["echo"] contains `x`', "banned"),
    ],
)
def test_a_set_of_nearly_the_name_is_refused(head: str, meant: str) -> None:
    name = head.partition(" ")[0].partition("[")[0]
    told = problems(f"{head} if true")
    assert f"a.rego:3: nothing reads {name!r}; did you mean {meant!r}?" in told
    assert not problems(f"{head.replace(name, meant)} if true")
    used = f"{head} if true\n\ndeny contains `y` if count({name}) > 5"
    assert not problems(used), "a rule of theirs that another one reads"
    assert not problems(used.replace(f"({name})", f"(data.toolgate.{name})"))


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("input.tool.nam == `x`", "there is no input.tool.nam; did you mean input.tool.name?"),
        ("input.callr.user == `x`", "there is no input.callr; did you mean input.caller?"),
        ("input.caller[`rols`][_] == `x`", "did you mean input.caller.roles?"),
        ("input.histry.turn.calls > 1", "did you mean input.history?"),
        ("input.history.sesion.calls > 1", "did you mean input.history.session?"),
        ("input.context.facs.x", "did you mean input.context.facts?"),
        ("some x in input.caller.role\n\tx == `a`", "did you mean input.caller.roles?"),
        ("count([y | y := input.tool.tag]) > 1", "did you mean input.tool.tags?"),
        ("input.zzz", "there are action, args, caller, "),
    ],
)
def test_a_part_of_the_input_that_is_never_there_is_refused(body: str, told: str) -> None:
    said = problems(f"deny contains `x` if {{\n\t{body}\n}}")
    assert "a.rego:4: there is no input." in said
    assert told in said
    assert told in problems(f"{ALONE}allow if {{\n\t{body}\n}}", bundled=False)


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    "body",
    [
        "input.tool.name == `x`",
        "input.args.nam == `x`",
        "input.context.facts.callr",
        "input.history.turn.tools.echo.calls > 1",
        "some part\n\tinput.caller[part] == `x`",
        "input.caller.delegation[_].by == `x`",
        "`input.callr` == input.tool.name # input.callr",
        "callr := {`nam`: 1}\n\tcallr.nam == 1",
    ],
)
def test_a_part_of_the_input_that_may_be_there_is_taken(body: str) -> None:
    assert not problems(f"deny contains `x` if {{\n\t{body}\n}}")


@pytest.mark.req("G3")
def test_an_import_and_a_head_are_read_too() -> None:
    assert "input.tool.name?" in problems("import input.tool as t\n\ndeny contains `x` if t.nam")
    assert not problems("import input.tool as t\n\ndeny contains `x` if t.name == `y`")
    assert "input.caller?" in problems("import input.callr as c\n\ndeny contains `x` if c == 1")
    assert "input.tool.name?" in problems("banned[input.tool.nam] contains `x` if true")
    assert "input.tool.name?" in problems("deny contains input.tool.nam if true")
