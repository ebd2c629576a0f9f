"""What of a single call a policy looks at: in doubt, everything. On this rests what may be kept."""

import pytest

from toolgate.engines.modules import build
from toolgate.gate.policy import ARGS, HISTORY, PER_CALL, TIME

NOTHING: frozenset[str] = frozenset()


@pytest.mark.req("G3", "G8")
@pytest.mark.parametrize(
    ("body", "reads"),
    [
        ("input.tool.name == `input.args`", NOTHING),
        ('"input.args.x" == input.tool.name # input.args.x', NOTHING),
        ("input.context.facts.args == 1", NOTHING),
        ("input.context.facts.time == 1", NOTHING),
        ("data.args.x == 1", NOTHING),
        ("args := 1\n\targs == 2", NOTHING),
        ("input.args.amount > 5", {ARGS}),
        ('input["args"].amount > 5', {ARGS}),
        ("input[`args`].amount > 5", {ARGS}),
        ("input.args[_] == 5", {ARGS}),
        ("some x in input.args\n\tx == 1", {ARGS}),
        ("count([x | some x in input.args]) > 3", {ARGS}),
        ("not input.args.ok", {ARGS}),
        ("object.get(input.args, `x`, 0) == 1", {ARGS}),
        ("every x in input.args { x == 1 }", {ARGS}),
        ("x := {y: z | some y, z in input.args}\n\tx == {}", {ARGS}),
        ("_f(input.args)\n}\n\n_f(x) if {\n\tx == 1", {ARGS}),
        ("input.history.session.calls > 3", {HISTORY}),
        ("input.time.hour > 3", {TIME}),
        ("input.time.hour > input.args.hour", {ARGS, TIME}),
        ("data.x[input.args.y] == 1", {ARGS}),
        ("input.tool[input.time.weekday]", {TIME}),
        ("input[input.tool.name] == 1", PER_CALL),
        ("some key\n\tinput[key] == 1", PER_CALL),
        ("x := input\n\tx.args == 1", PER_CALL),
        ("count(input) == 3", PER_CALL),
        ("object.get(input, `args`, {}) == 1", PER_CALL),
        ("object.get(input, [`args`, `x`], 1) == 1", PER_CALL),
        ("walk(input, [_, 1])", PER_CALL),
        ("some part in input\n\tpart == 1", PER_CALL),
        ("[input][0].args == 1", PER_CALL),
        ("json.marshal(input) == ``", PER_CALL),
        ("true with input as {}", PER_CALL),
    ],
)
def test_a_rule_reads(body: str, reads: frozenset[str]) -> None:
    text = f'package toolgate\n\ndeny contains "x" if {{\n\t{body}\n}}\n'
    assert build({"a.rego": text}, {}).reads == reads


@pytest.mark.req("G3", "G8")
@pytest.mark.parametrize(
    ("imported", "body", "reads"),
    [
        ("input.args", "args.x == 1", {ARGS}),
        ("input.args as given", "given.x == 1", {ARGS}),
        ("input as i", "i.tool == 1", PER_CALL),
        ("input.tool", "tool.name == ``", NOTHING),
        ("data.shop as args", "args.x == 1", NOTHING),
    ],
)
def test_an_import_reads(imported: str, body: str, reads: frozenset[str]) -> None:
    text = f'package toolgate\n\nimport {imported}\n\ndeny contains "x" if {body}\n'
    assert build({"a.rego": text}, {}).reads == reads


@pytest.mark.req("G3", "G8")
def test_modules_of_inner_packages_count_too() -> None:
    inner = "package toolgate.shop\n\nlarge if input.args.amount > 5\n"
    outer = 'package toolgate\n\nrestrict contains "x" if data.toolgate.shop.large\n'
    assert build({"a.rego": inner, "b.rego": outer}, {}).reads == {ARGS}


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("rule", "listing"),
    [
        ('banned.x contains "no" if input.caller.tenant == "acme"', "list_names"),
        ('banned[name] contains "no" if some name in data.shop', "list_names"),
        ('banned.x contains "no" if input.tool.effect == "pure"', "list_direct"),
        ('banned.x contains "no" if input.action == "tool.view"', "list_call"),
        ('deny contains "no" if input.caller.tenant == "acme"', "list_direct"),
        ('deny contains "no" if input.action == "tool.view"', "list_call"),
        ('restrict contains "no" if input.caller.tenant == "acme"', "list_direct"),
        ('restrict contains "no" if input.args.x == 1', "list_names"),
        ('deny contains "no" if input.args.x == 1', "list_view"),
        ('deny contains "no" if input == 1', "list_view"),
    ],
)
def test_a_list_is_decided_in_the_cheapest_way_that_is_right(rule: str, listing: str) -> None:
    assert build({"a.rego": f"package toolgate\n\n{rule}\n"}, {}).listing == listing
