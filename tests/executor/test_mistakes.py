"""An extension that could never work is told when the chain is composed, not on every call."""

from typing import Any

import pytest

from toolgate import Call, Extension, Priority
from toolgate.errors import SettingsInvalid
from toolgate.executor.executor import Executor
from toolgate.executor.extension import Handler


class Audit(Extension):
    def before(self, call: Call) -> None: ...


class Mistyped(Extension):
    def befor(self, call: Call) -> None: ...


class Inert(Extension):
    priority = Priority.LOW


class Hurried(Extension):
    priority: Any = "high"

    def after(self, call: Call, output: Any) -> None: ...


class Constant(Extension):
    failed = 3


class Around(Extension):
    def link(self, inner: Handler) -> Handler:
        return inner


def said(*extensions: Any) -> str:
    with pytest.raises(SettingsInvalid) as refused:
        Executor({}, extensions, default_timeout=30.0)
    return refused.value.message


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("extension", "says"),
    [
        (Mistyped(), "Mistyped has no hook and would do nothing. Did you mean before where it"),
        (Inert(), "Inert has no hook and would do nothing. Define one of: before, after, failed."),
        (Audit, "Audit is a class. Pass an instance: Audit()."),
        (Hurried(), "Hurried.priority is 'high'. Write a number, or Priority.HIGH."),
        (Constant(), "Constant.failed cannot be called."),
        ("audit", "a str is not an extension. Subclass toolgate.Extension."),
    ],
)  # fmt: skip
def test_an_extension_that_could_not_work_is_refused_by_name(extension: Any, says: str) -> None:
    assert says in said(Audit(), extension)


@pytest.mark.req("X3")
def test_all_mistakes_are_told_at_once() -> None:
    message = said(Mistyped(), Inert(), Hurried())
    assert [name in message for name in ("Mistyped", "Inert", "Hurried")] == [True] * 3


@pytest.mark.req("X3")
def test_a_hook_or_a_link_of_its_own_is_enough() -> None:
    class Late(Extension):
        """Its hook is set on the instance."""

    late = Late()
    late.before = print  # pyright: ignore[reportAttributeAccessIssue]
    Executor({}, [Audit(), Around(), late], default_timeout=30.0)
