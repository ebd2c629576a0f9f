"""Codes that stand in answers and on record without a class of their own are written down."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import every_error
from toolgate.codes import RESULTS

ROOT = Path(__file__).parent.parent
# What takes a code as its third argument, and what a code is called elsewhere.
_THIRD = {"_told", "_instead", "failed"}
_NAMES = {"code", "error_code"}


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value


def _codes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in _NAMES:
                    yield from _texts(keyword.value)
            if getattr(node.func, "id", "") in _THIRD and len(node.args) > 2:
                yield from _texts(node.args[2])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            for name, value in zip(
                node.targets[0].elts, getattr(node.value, "elts", ()), strict=False
            ):
                if getattr(name, "id", "") in _NAMES:
                    yield from _texts(value)


@pytest.mark.req("V2")
def test_every_code_is_that_of_an_error_or_of_a_result() -> None:
    used: set[str] = set()
    for room in ("executor", "ledger", "worker"):
        for file in (ROOT / "src/toolgate" / room).rglob("*.py"):
            used |= set(_codes(ast.parse(file.read_text("utf-8"))))
    raised = {kind.code for kind in every_error()}
    assert used - raised == set(RESULTS)
    assert not raised & set(RESULTS)


@pytest.mark.parametrize("code", RESULTS)
def test_the_errors_page_has_every_result(code: str) -> None:
    page = (ROOT / "docs/errors.md").read_text("utf-8")
    assert f"| `{code}` | {RESULTS[code]} |" in page
