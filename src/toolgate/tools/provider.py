"""Runs the built-in tools: finds a function by its row, and hands it what it stands on."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolgate.call import Call
from toolgate.errors import InvalidArguments, ToolgateError
from toolgate.executor.failure import execution_failed
from toolgate.executor.plain import begun, plain
from toolgate.spec.effect import Execution
from toolgate.spec.fit import Parameters, carelessness, misfit
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.tools.means import Means
from toolgate.tools.table import Function, Row, table

_CARE = ("effect", "destructive", "requires_confirmation", "requires_approval")
# Those that hand their call's key on: in a header, as the id of a message, as the key of a task.
_KEYED = frozenset({"a2a_chat", "call_subordinate", "http_post"})


class BuiltinProvider:
    """The functions are called with their arguments as the schema has checked them."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._functions: dict[str, Function] = {}
        # Those that run programs here: a queued one runs where a worker is.
        self._programs: dict[str, ToolSpec] = {}

    @property
    def means(self) -> Means:
        """What its tools stand on."""
        return self._means

    def unusable(self, spec: ToolSpec) -> str | None:
        """What it lacks here; or how its definition does not fit the tool that it names."""
        row = table().get(_named(spec))
        if row is None:
            return "its implementation is not part of this version"
        if row.runs_programs and spec.execution is not Execution.QUEUED:
            self._programs[spec.name] = spec
        return _mismatch(spec, row) or row.lack()

    def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:  # noqa: ARG002  it is not the arguments
        """Nothing of the arguments. Where no sandbox holds, a program is refused whatever they are,
        before a person agrees to it.
        """
        if self._programs.get(spec.name) is spec:
            self._means.require_sandbox()
        return ()

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """Most of them have nobody to hand it to."""
        if _named(spec) in _KEYED:
            return None
        return "it has a downstream_key, but this built-in tool hands none on; leave it out"

    async def run(self, call: Call) -> Any:
        """The result, as plain JSON."""
        name = _named(call.spec)
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = table()[name].function()
        try:
            work = function(self._means, call, **call.args)
        except TypeError:
            # Nothing of it has run: only its arguments were looked at.
            raise _unfit(call, table()[name]) from None
        try:
            result = await begun(work)
        except ToolgateError:
            raise
        except Exception as error:
            raise execution_failed(call, error) from error
        return plain(call, result)


def _unfit(call: Call, row: Row) -> InvalidArguments:
    """A schema that lets more through than the tool takes; others may have written it."""
    known = row.definition["input_schema"].get("properties", {})
    more = [(f"/{name}", "is no argument of this tool") for name in call.args if name not in known]
    return InvalidArguments(call.spec.name, more or [("", "do not fit the tool")])


def _named(spec: ToolSpec) -> str:
    return str(spec.config.value().get("builtin"))


def _mismatch(spec: ToolSpec, row: Row) -> str | None:
    """A definition of an operator's own may ask for more care than ours, and never for less."""
    if spec.name == row.name and spec.input_schema.value() == row.seed["input_schema"]:
        return None
    own = read_tool(row.definition, origin=Origin(row.source, ""), file=row.name)
    schema = row.definition["input_schema"]
    takes = Parameters(
        names=frozenset(schema.get("properties", {})),
        required=frozenset(schema.get("required", ())),
        takes_more=False,
    )
    return carelessness(spec, own, _CARE) or misfit(spec.input_schema, takes)
