"""Policies are checked before they are used: all that is wrong is told, nothing is half taken."""

import asyncio
from pathlib import Path

import pytest

from tests.engines.questions import asked, listed, tool
from toolgate.caller import Action
from toolgate.engines import brackets
from toolgate.engines.builtins import FORBIDDEN
from toolgate.engines.keeper import Keeper
from toolgate.engines.modules import Modules, build
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy

GOOD = 'package toolgate\n\ndeny contains "no" if input.tool.name == "fetch"\n'
WHOLE = 'package toolgate\n\ndefault allow := false\n\nallow if input.tool.name == "fetch"\n'


def problems(text: str, *, bundled: bool = True) -> str:
    with pytest.raises(InvalidPolicy) as caught:
        build({"shop.rego": text}, {}, bundled=bundled)
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.req("G3")
@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_a_function_that_reaches_out_or_is_not_repeatable_is_refused_by_name(name: str) -> None:
    call = f'package toolgate\n\ndeny contains "x" if {{\n\tfalse\n\t{name}(input)\n}}\n'
    assert problems(call).startswith(f"shop.rego:5: {name} ")
    # Also behind a name that looks like somebody's own.
    module = name.rpartition(".")[0]
    if module:
        hidden = f"package toolgate\n\nimport data.toolgate.lib as {module.split('.')[0]}\n\n"
        assert name in problems(f'{hidden}deny contains "x" if {name}(1)\n')
    assert build({"shop.rego": f"# {name}(1)\n{GOOD}"}, {}).files == 1
    assert build({"shop.rego": GOOD.replace('"no"', f'"{name}(1)"')}, {}).files == 1


@pytest.mark.req("G3")
def test_a_function_that_the_engine_does_not_have_is_found_where_it_is_never_reached() -> None:
    told = problems(
        'package toolgate\n\ndeny contains "x" if {\n\tfalse\n\tio.jwt.decode("x")\n}\n'
    )
    assert told == "shop.rego:5: io.jwt.decode is no function that the engine knows."
    with_own = 'package toolgate\n\ndeny contains "x" if _f(1)\n\n_f(x) if x == 2\n'
    assert build({"shop.rego": with_own}, {}).reads == frozenset()


@pytest.mark.req("G3")
def test_functions_of_other_files_and_packages_are_found() -> None:
    library = "package toolgate.lib\n\nodd(n) if n % 2 == 1\n"
    user = (
        "package toolgate\n\nimport data.toolgate.lib\n\n"
        'deny contains "x" if lib.odd(2)\n\ndeny contains "z" if data.toolgate.lib.odd(2)\n'
    )
    assert build({"lib.rego": library, "shop.rego": user}, {}).files == 2
    renamed = user.replace("toolgate.lib\n", "toolgate.lib as l\n").replace("if lib", "if l")
    with pytest.raises(InvalidPolicy, match=r"write data.toolgate.lib.odd\(…\) instead of l.odd"):
        build({"lib.rego": library, "shop.rego": renamed}, {})


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "shop.rego:1: expecting `package`"),
        ("package toolgate\n", "shop.rego:1: there is no rule in it"),
        ("# only a comment\n", "expecting `package`"),
        ("package shop\n\nx := 1\n", "shop.rego:1: the package is 'shop'"),
        ("package toolgate_gate\n\ncall := true\n", "the package is 'toolgate_gate'"),
        ("package toolgate\n\ndeny[x] { x := 1 }\n", "the syntax before Rego v1"),
        ("package toolgate\n\ndeny contains x if {\n", "shop.rego:"),
        ("package toolgate\n\nallow if true\n", "'allow' is the bundled policy's"),
        ("package toolgate\n\ndefault allow := true\n", "'allow' is the bundled policy's"),
        ("package toolgate\n\n_may_add if true\n", "'_may_add' is the bundled policy's"),
        ('package toolgate\n\ndeny := "x"\n', "write deny contains reason if"),
        ('package toolgate\n\nbanned contains "x"\n', "write banned[name] contains reason if"),
        ("package toolgate.deny\n\nx := 1\n", "a rule and a package are both called 'deny'"),
        ("package toolgate\n\ndeny contains x if y == 1\n", "unsafe"),
        ("package toolgate\n\nf := 1\n\nf := 2\n\ndeny contains f if true\n", "shop.rego:"),
        ("package toolgate\n\na if b\n\nb if a\n\ndeny contains 1 if a\n", "recursion"),
        ("package toolgate\n\nx := 1 if data[", "shop.rego:"),
        ('package toolgate\n\nx := "\ud800"\n', "shop.rego"),
    ],
)
def test_what_is_broken_is_told_with_its_place(text: str, told: str) -> None:
    assert told in problems(text)
    assert build({"shop.rego": GOOD}, {}).revision


@pytest.mark.req("G3")
def test_a_policy_that_stands_in_the_place_of_ours_needs_a_default() -> None:
    assert "no `default allow := false`" in problems(GOOD, bundled=False)
    assert "true or false" in problems(
        'package toolgate\n\ndefault allow := "yes"\n', bundled=False
    )
    assert build({"shop.rego": WHOLE}, {}, bundled=False).listing == "list_call"
    with pytest.raises(InvalidPolicy, match="has a default 'allow' too"):
        build({"a.rego": WHOLE, "b.rego": WHOLE}, {}, bundled=False)


@pytest.mark.req("G3")
def test_every_problem_of_every_file_is_told_at_once() -> None:
    with pytest.raises(InvalidPolicy) as caught:
        build({"a.rego": "", "b.rego": "package b\n\nx := 1\n", "c.rego": GOOD}, {"toolgate": 1})
    assert len(caught.value.problems) == 3


@pytest.mark.req("G3")
@pytest.mark.parametrize("pair", ["[]", "{}", "()"])
def test_brackets_that_a_parser_would_need_ages_for_are_not_parsed(pair: str) -> None:
    deep = pair[0] * 40 + "1" + pair[1] * 40
    assert "brackets stand more than" in problems(f"package toolgate\n\nx := {deep}\n")
    for harmless in (f"# {deep}\n", f'x := "\\"{deep}"\n', f"x := `{deep}`\n"):
        assert not brackets.refusal(f"package toolgate\n\n{harmless}")
    assert brackets.refusal("x" * 300_000).startswith("1: it has 300,000 bytes")


@pytest.mark.req("G3")
def test_a_folder_gives_modules_and_data_at_their_place(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "rules.rego").write_text(GOOD)
    (tmp_path / "shop" / "rules_test.rego").write_text("broken")
    (tmp_path / "shop" / "data.yaml").write_text("limit: 5\n")
    (tmp_path / "data.json").write_text('{"global_tool_deny": ["bad"], "shop": {"name": "x"}}')
    (tmp_path / "cases.yaml").write_text("- note: not data\n")
    (tmp_path / ".hidden.rego").write_text("broken")
    (tmp_path / "README.md").write_text("no policy")
    bundle = Modules(tmp_path).load({"more": GOOD.replace("fetch", "other")})
    assert bundle.data == {"global_tool_deny": ["bad"], "shop": {"limit": 5, "name": "x"}}
    assert [file for file in bundle.modules if not file.startswith("toolgate:")] == [
        "shop/rules.rego",
        "stored:more",
    ]


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("data.json", "[1]", "data is an object"),
        ("data.json", "{", "data.json:1: it is not JSON"),
        ("data.json", '{"a": 1, "a": 2}', "data.json:1: it has the key 'a' twice"),
        ("data.yaml", "a: 1\na: 2\n", "data.yaml:2: it has the key 'a' twice"),
        ("data.yaml", "a: &x [1]\nb: *x\n", "data.yaml:2: it uses the alias *x"),
        ("data.yaml", "a: [", "data.yaml:"),
        ("data.json", '{"a": 1' + 30 * "0" + "}", "no engine can hold it"),
        ("data.json", '{"toolgate_gate": {}}', "'toolgate_gate' cannot be a document's name"),
        ("data.json", '{"../x": {}}', "'../x' cannot be a document's name"),
        ("other.json", '{"global_tool_deny": []}', "is already there from another file"),
    ],
)
def test_data_that_cannot_be_meant_is_refused(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    (tmp_path / "a.json").write_text('{"global_tool_deny": ["bad"]}')
    assert Modules(tmp_path).load().data
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidPolicy) as caught:
        Modules(tmp_path).load()
    assert told in caught.value.message


@pytest.mark.req("G3")
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "policies", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "data.json").write_text('{"persona_permissions": {}}')
    (inside / "data.json").symlink_to(outside / "data.json")
    (inside / "more").symlink_to(outside)
    assert Modules(inside).load().data == {}
    assert Modules(outside).load().data != {}


@pytest.mark.req("G3")
def test_the_revision_names_everything_and_only_that(tmp_path: Path) -> None:
    plain = Modules(tmp_path).load().revision
    assert plain == Modules(None).load().revision == Modules(tmp_path / "absent").load().revision
    seen = {plain}
    for text, data in ((GOOD, "{}"), (GOOD + "\n", "{}"), (GOOD, '{"a": 1}')):
        (tmp_path / "a.rego").write_text(text)
        (tmp_path / "data.json").write_text(data)
        seen.add(Modules(tmp_path).load().revision)
    assert len(seen) == 4


@pytest.mark.req("G3")
async def test_a_broken_file_keeps_the_last_good_policy_and_says_so(tmp_path: Path) -> None:
    rules = tmp_path / "policies" / "rules.rego"
    rules.parent.mkdir()
    rules.write_text(GOOD)
    modules, stored = Modules(rules.parent), [dict[str, str]()]
    policy = Keeper(modules, Rego(modules.load()), lambda: stored[0])
    good = policy.revision
    for broken in ("", "package toolgate\n", "package toolgate\n\ndeny contains nosuch(1)\n"):
        rules.write_text(broken)
        await policy.look()
        assert policy.revision is good
        assert not await policy.allows(asked(Action.REQUEST, "fetch"))
        assert not policy.health().ok
        assert "rules.rego:" in policy.health().problem
    rules.write_text(GOOD.replace("fetch", "other"))
    await policy.look()
    assert policy.revision != good
    assert policy.health().ok, "before anybody has asked"
    assert policy.health().revision == policy.revision
    assert await policy.allows(asked(Action.REQUEST, "fetch"))
    assert not await policy.allows(asked(Action.REQUEST, "other"))
    stored[0] = {"more": GOOD}
    assert policy.revision != good
    assert not await policy.allows(asked(Action.REQUEST, "fetch"))


@pytest.mark.req("G3")
async def test_a_folder_that_vanishes_keeps_the_last_good_policy(tmp_path: Path) -> None:
    rules = tmp_path / "policies" / "rules.rego"
    modules, stored = Modules(rules.parent), dict[str, str]()
    policy = Keeper(modules, Rego(modules.load()), lambda: stored)
    assert policy.health().ok
    rules.parent.mkdir()
    rules.write_text(GOOD)
    await policy.look()
    assert not await policy.allows(asked(Action.REQUEST, "fetch"))
    rules.unlink()
    rules.parent.rmdir()
    await policy.look()
    assert "the folder is gone" in policy.health().problem
    assert not await policy.allows(asked(Action.REQUEST, "fetch"))
    assert await policy.visible(listed(), [tool("fetch"), tool("echo")]) == {"echo"}


@pytest.mark.req("G3")
async def test_the_last_rego_file_that_vanishes_keeps_the_last_good_policy(tmp_path: Path) -> None:
    rules, other = tmp_path / "rules.rego", tmp_path / "other.rego"
    rules.write_text(GOOD)
    other.write_text(GOOD.replace("fetch", "other"))
    (tmp_path / "data.json").write_text("{}")
    modules, stored = Modules(tmp_path), dict[str, str]()
    policy = Keeper(modules, Rego(modules.load()), lambda: stored)
    other.unlink()
    await policy.look()
    assert policy.health().ok, "one of two may go"
    assert await policy.allows(asked(Action.REQUEST, "other"))
    rules.unlink()
    await policy.look()
    assert "no Rego file is left" in policy.health().problem
    assert not await policy.allows(asked(Action.REQUEST, "fetch"))
    other.write_text(GOOD.replace("fetch", "other"))
    await policy.look()
    assert policy.health().ok
    assert await policy.allows(asked(Action.REQUEST, "fetch"))
    other.unlink()
    assert Modules(tmp_path).load().files == 0, "a new start may be without"


@pytest.mark.req("G3")
async def test_an_idle_node_takes_a_stored_module_at_its_next_look() -> None:
    modules, stored = Modules(None), [dict[str, str]()]
    policy = Keeper(modules, Rego(modules.load()), lambda: stored[0])
    before = policy.health().revision
    await policy.look()
    assert policy.health().revision == before
    stored[0] = {"more": GOOD}
    await policy.look()
    assert policy.health().revision != before


@pytest.mark.req("G3")
async def test_a_policy_is_checked_on_any_thread() -> None:
    bundle = await asyncio.to_thread(build, {"a.rego": GOOD}, {})
    assert not await Rego(bundle).allows(asked(Action.REQUEST, "fetch"))
