"""Texts that engines of templates run: in an expression they are refused, in a value they stay."""

import pytest

from tests.tools.watched import watched
from toolgate.errors import ToolError
from toolgate.providers.http import template as http
from toolgate.providers.shell import template as shell
from toolgate.tools.math.expression import parse

_CORES = (
    "7*7",
    "config.items()",
    "v.__class__",
    "self.__init__.__globals__",
    "''.__class__.__mro__[1].__subclasses__()",
    "request|attr('application')|attr('\\x5f\\x5fglobals\\x5f\\x5f')",
    "()|attr('\\x5f\\x5fclass\\x5f\\x5f')",
    "cycler.__init__.__globals__.os.popen('id').read()",
    "lipsum.__globals__['os'].system('id')",
    "namespace.__init__.__globals__.__builtins__",
)
_FORMS = ("{{ @ }}", "{{@}}", "{% print(@) %}", "${@}", "#{@}", "<%= @ %>", "{@}", "{0[@]}")
TEMPLATES = [form.replace("@", core) for core in _CORES for form in _FORMS]
pytestmark = pytest.mark.req("T1", "P2")


def test_no_template_is_an_expression_and_nothing_happens() -> None:
    assert len(set(TEMPLATES)) >= 50
    with watched() as seen:
        for text in TEMPLATES:
            with pytest.raises(ToolError):
                parse(text)
    assert seen == []


@pytest.mark.parametrize("text", TEMPLATES)
def test_a_value_is_not_read_as_a_template(text: str) -> None:
    args = {"v": text, "0": "another", "other": "secret"}
    assert shell.text_of(shell.template("a {v} b"), args, {}) == f"a {text} b"
    assert http.template("a {v} b", args).text(args) == f"a {text} b"


def test_a_place_looks_into_what_was_given_and_never_into_the_object_that_holds_it() -> None:
    assert "str" in "{v.__class__}".format(v="x"), "Python's own templates do"
    with pytest.raises(ValueError, match="of an argument"):
        shell.template("{v.__class__}")
    found = http.template("{v.__class__}", {"v"})
    assert found.text({"v": "x"}) is None
    assert found.text({"v": {"__class__": "given"}}) == "given"
