"""Arguments fit the schema before anything else looks at them."""

from collections.abc import Coroutine
from typing import Any

from toolgate.call import Call, Output
from toolgate.errors import InvalidArguments
from toolgate.executor.extension import Extension, Handler
from toolgate.spec.secret import without_values


class Validate(Extension):
    """Holds the arguments against the compiled schema; nothing is coerced."""

    priority = 200

    def link(self, inner: Handler) -> Handler:
        """One call into the compiled validator when all is well."""

        # Not a coroutine of its own: it has nothing to wait for.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            spec = call.grant.spec
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
            return inner(call)

        return run
