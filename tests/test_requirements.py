"""Requirements and tests, held against each other in both directions."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import NOT_YET, REQUIREMENTS

TESTS = Path(__file__).parent
CONTRACT = TESTS.parent.parent / "shared" / "design" / "REQUIREMENTS.md"


@cache
def cited() -> dict[str, set[str]]:
    """Every id that a test cites, and the files that do."""
    found: dict[str, set[str]] = {}
    for file in TESTS.rglob("test_*.py"):
        text = file.read_text("utf-8")
        nodes = ast.walk(ast.parse(text)) if "pytest.mark.req" in text else ()
        for node in nodes:
            called = node.func if isinstance(node, ast.Call) else None
            if not isinstance(called, ast.Attribute) or called.attr != "req":
                continue
            if isinstance(node, ast.Call) and ast.unparse(called) == "pytest.mark.req":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{file.name}: write ids as texts"
                    found.setdefault(str(argument.value), set()).add(file.name)
    return found


def test_every_id_that_a_test_cites_is_a_requirement_that_is_built() -> None:
    wrong = {id_: files for id_, files in cited().items() if id_ not in REQUIREMENTS}
    assert not wrong, "unknown ids"
    early = {id_: files for id_, files in cited().items() if REQUIREMENTS[id_][0] is NOT_YET}
    assert not early, "these say `not yet` in tests/requirements.py"


def test_every_requirement_that_is_built_is_kept_by_a_test() -> None:
    built = {id_ for id_, (how, _what) in REQUIREMENTS.items() if how is not NOT_YET}
    assert built - cited().keys() == set()


def test_the_manifest_lists_exactly_the_contract() -> None:
    if not CONTRACT.exists():
        pytest.skip("skipped: no ../shared/design beside this checkout")
    named = set(re.findall(r"^- ([A-Z]\d{1,2}) ", CONTRACT.read_text("utf-8"), re.MULTILINE))
    assert named == REQUIREMENTS.keys()
