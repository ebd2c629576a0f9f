"""Times: one form at each door. `…_ns` is a number; any other moment is text with its zone."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from tests.cli.conftest import Run
from toolgate import clock
from toolgate.cli import show
from toolgate.cli.since import parse_since
from toolgate.server import answers
from toolgate.server.admin import answers as admin_answers

WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# Fields that hold a moment and do not say so.
WORDS = {"created", "expires", "last_used", "replaced_until"}


def fields() -> Iterator[tuple[str, Any]]:
    for room in (answers, admin_answers):
        for shape in vars(room).values():
            if isinstance(shape, type) and issubclass(shape, answers.Shape):
                for field in msgspec.structs.fields(shape):
                    yield field.name, field.type


@pytest.mark.req("V2")
def test_a_field_says_by_its_name_how_it_tells_a_time() -> None:
    found = dict[str, list[Any]]()
    for name, kind in fields():
        if name.endswith("_ns") or name in WORDS:
            found.setdefault(name, []).extend(get_args(kind) or (kind,))
    assert found.keys() >= WORDS
    for name, kinds in found.items():
        allowed = {int, type(None)} if name.endswith("_ns") else {str, type(None)}
        assert set(kinds) <= allowed, name


@pytest.mark.req("V5")
def test_every_command_writes_a_moment_as_it_can_be_given_to_another(run: Run) -> None:
    now_ns = clock.unix_ns() // 10**9 * 10**9
    assert parse_since(show.moment(now_ns)) == now_ns
    assert show.moment(0) == ""
    run("tenants", "add", "acme", "--why", "new")
    run("keys", "add", "--role", "admin", "--tenant", "acme")
    run("call", "echo", "--tenant", "acme", "--agent", "", "--args", '{"text": "x"}')
    for command in (["audit", "list"], ["keys", "list"]):
        shown = run(*command).stdout
        assert WHEN.search(shown), shown
        assert not re.search(r"\d{4}-\d\d-\d\d \d\d:", shown), shown
