"""A policy that would end the process, or take all of its memory, is refused when it is read."""

import subprocess
import sys

import pytest

from tests.engines.questions import asked
from toolgate.caller import Action
from toolgate.engines import chains, modules
from toolgate.engines.modules import build
from toolgate.engines.recursion import MAX_CHAIN
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy

pytestmark = pytest.mark.req("G3")
START = "package toolgate\n\n"
USE = 'restrict contains "x" if f(1) == 3\n\n'
LIBRARY = "package toolgate.lib\n\ng(n) := data.toolgate.f(n)\n"
# Without our checks, in a process of its own.
ALONE = """
import sys
from toolgate.engines.interpreter import Interpreter
engine = Interpreter()
engine.add_module("a.rego", sys.stdin.read())
print(engine.ask("data.toolgate.restrict", b"{}"))
"""


def refused(*texts: str) -> str:
    with pytest.raises(InvalidPolicy) as caught:
        build({f"{name}.rego": text for name, text in zip("abc", texts, strict=False)}, {})
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("f(n) := f(n + 1)\n", "a.rego:5: recursion: toolgate.f → toolgate.f."),
        ("f(n) := 1 + f(n - 1) if n > 0\n", "a.rego:5: recursion"),
        ("f(n) := g(n)\n\ng(n) := f(n)\n", "toolgate.f → toolgate.g → toolgate.f"),
        ("f(n) := data.toolgate.f(n)\n", "recursion: toolgate.f"),
        ('f(n) := data.toolgate["f"](n)\n', "a.rego"),
        ("f(n) := count([1 | f(n)])\n", "recursion: toolgate.f"),
        ("f(n) := r\n\nr := f(1)\n", "toolgate.f → toolgate.r → toolgate.f"),
        ("f(n) := x if {\n\tx := f(n)\n}\n", "a.rego:6: recursion"),
        ("f(n) := x if {\n\tf := 1\n\tx := f(n)\n}\n", "recursion"),
        ("f(n) := n if n > 3\n\nelse := f(n + 1)\n", "recursion"),
    ],
)
def test_what_needs_itself_is_refused_with_its_place(rules: str, told: str) -> None:
    assert told in refused(START + USE + rules)


def test_a_cycle_through_another_package_is_refused() -> None:
    told = refused(f"{START}{USE}f(n) := data.toolgate.lib.g(n)\n", LIBRARY)
    assert "toolgate.f → toolgate.lib.g → toolgate.f" in told
    imported = f"{START}import data.toolgate.lib\n\n{USE}f(n) := lib.g(n)\n"
    assert "toolgate.lib.g" in refused(imported, LIBRARY)


async def test_functions_that_end_are_taken() -> None:
    text = f"{START}{USE}f(n) := g(n) + g(n)\n\ng(n) := n + 1 if n < 3\n\nelse := data.shop.f\n"
    policy = Rego(build({"a.rego": text}, {}))
    assert await policy.allows(asked(Action.REQUEST))


@pytest.mark.parametrize("count", [MAX_CHAIN + 1, 3000])
def test_functions_that_call_each_other_too_deep_are_refused(count: int) -> None:
    chain = "".join(f"f{each}(n) := f{each + 1}(n)\n\n" for each in range(count))
    text = f'{START}restrict contains "x" if f0(1) == 3\n\n{chain}f{count}(n) := n\n'
    assert f"needs more than {MAX_CHAIN} others" in refused(text)


@pytest.mark.parametrize("link", ["+1", "\n+1", "==1", " in\n1", "[0]", ".a", "-\n"])
def test_an_expression_without_an_end_is_not_parsed(link: str) -> None:
    text = f"{START}x := input{link * 5000}\n"
    assert "operators and dots stand in one expression" in refused(text)
    lines = "\n".join(f"\tinput.args.x{each} == {each} # a + b" for each in range(2000))
    assert not chains.refusal(f"{START}x if {{\n{lines}\n}}\n")
    assert not chains.refusal(f"{START}x := [{', '.join(['-1.5'] * 2000)}]\n")


@pytest.mark.parametrize("rules", ["f(n) := f(n + 1)\n", "f(n) := 1" + "\n+ 1" * 3 + "\n"])
def test_without_the_check_the_process_ends(rules: str) -> None:
    """The guard-off control; the second one is harmless."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        input=START + USE + rules,
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode == 0) is ("f(n + 1)" not in rules)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("sprintf(input.args.f, [1])", 'sprintf("%5d", [1])'),
        ('sprintf("%1000000000d", [1])', 'sprintf("%v of 10000", [1])'),
        ('replace("a", "a", input.args.f)', 'replace(input.args.f, "a", "b")'),
        ('concat(input.args.f, ["a"])', 'concat(",", ["a"])'),
        ("bits.lsh(1, input.args.n)", "bits.lsh(input.args.n, 3)"),
        ("bits.lsh(1, 1000000)", "bits.lsh(1, 8)"),
        ("units.parse_bytes(input.args.f)", 'units.parse_bytes("1MB")'),
        ("numbers.range(1, input.args.n)", "[1, 2]"),
    ],
)
def test_no_argument_decides_how_much_memory_is_taken(wrong: str, right: str) -> None:
    rule = 'restrict contains "x" if {\n\tinput.args.go == 1\n\t%s == 1\n}\n'
    assert "a.rego:5: " in refused(START + rule % wrong)
    assert build({"a.rego": START + rule % right}, {}).files == 1


@pytest.mark.parametrize(
    "body",
    [
        "data.toolgate_gate._rest.args.amount > 5",
        'data["toolgate_gate"]._rest.args.amount > 5',
        "data.toolgate_tools.x.name == 1",
        "data.toolgate_manifest.modules == []",
        "data[input.tool.name].x == 1",
        "x := data\n\tx.toolgate_gate._rest.args.amount > 5",
        "some x in data\n\tx == 1",
        "object.get(data, `toolgate_gate`, 1) == 1",
    ],
)
def test_what_the_gate_keeps_is_not_read_by_a_policy(body: str) -> None:
    assert "a.rego:4: " in refused(f'{START}restrict contains "x" if {{\n\t{body}\n}}\n')
    for name in ("data.toolgate_gate", "data.toolgate_gate as g", "data as d"):
        imported = f'{START}import {name}\n\nrestrict contains "x" if input.tool.name == "x"\n'
        assert "a.rego:3: " in refused(imported)
    fine = f'{START}restrict contains "x" if data.shop[input.tool.name].x == 1\n'
    assert build({"a.rego": fine}, {}).reads == frozenset()


def test_without_the_check_such_a_policy_would_seem_to_read_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control: a decision about one call would be kept for the next."""

    def asleep(*_given: object) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(modules, "bad_references", asleep)
    text = f'{START}restrict contains "x" if data.toolgate_gate._rest.args.amount > 5\n'
    assert build({"a.rego": text}, {}).reads == frozenset()
