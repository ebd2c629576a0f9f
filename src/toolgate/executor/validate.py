"""Arguments fit the schema, and what runs the tool, before anything else looks at them."""

from collections.abc import Callable, Coroutine
from typing import Any

from toolgate.call import Call, Output
from toolgate.errors import InvalidArguments
from toolgate.executor.extension import Extension, Handler
from toolgate.spec.effect import Effect
from toolgate.spec.secret import without_values

# Raises what its provider would refuse, before anything is begun.
Check = Callable[[Call], None]


class Validate(Extension):
    """Holds the arguments against the compiled schema; nothing is coerced.

    Some providers have rules of their own beside it. Where a person would be asked, or a call be
    claimed, for arguments that could never run, those are held to them here.
    """

    priority = 200

    def __init__(self) -> None:
        # By kind of tool; most kinds have none.
        self.checks: dict[str, Check] = {}

    def link(self, inner: Handler) -> Handler:
        """One call into the compiled validator when all is well."""
        check_of = self.checks.get

        # Not a coroutine of its own: it has nothing to wait for.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            grant = call.grant
            spec = grant.spec
            try:
                problems = (
                    None
                    if spec.input_schema.is_valid(call.args)
                    else spec.input_schema.problems(call.args)
                )
            except ValueError as error:
                raise InvalidArguments(spec.name, [("", f"not JSON ({error})")]) from None
            if problems is not None:
                told = without_values(spec.input_schema.raw, call.args, problems)
                raise InvalidArguments(spec.name, told)
            check = check_of(spec.provider)
            if check is not None and (spec.effect is not Effect.PURE or grant.needs_a_person):
                check(call)
            return inner(call)

        return run
