"""`@tool`: a Python function becomes a spec and a way to call it with plain JSON.

The signature is the schema: types, `Annotated`, `Literal`, dataclasses, pydantic models, defaults.
The docstring is the description. What the function does to the world is said in the decorator.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, overload

from pydantic import ValidationError
from typing_extensions import TypedDict, Unpack

from toolgate.errors import InvalidArguments, InvalidSpecs
from toolgate.spec.fit import misfit
from toolgate.spec.problem import Problem
from toolgate.spec.reader import read_tool
from toolgate.spec.schema import pointer
from toolgate.spec.secret import without_values
from toolgate.spec.shape import DECLARED, as_function
from toolgate.spec.signature import Signature
from toolgate.spec.tool import Origin

F = TypeVar("F", bound=Callable[..., Any])


class ToolFields(TypedDict, total=False):
    """What `@tool` takes: the fields of a tool file that a function does not say by itself."""

    name: str
    description: str
    display_name: str
    version: str
    category: str
    categories: list[str]
    tags: list[str]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    enabled: bool
    permissions: list[str]
    side_effects: list[str]
    effect: Literal["pure", "idempotent", "compensatable", "irreversible"]
    destructive: bool
    compensation: str | dict[str, Any]
    requires_confirmation: bool
    confirmation_prompt: str
    requires_approval: bool
    allowed_callers: list[str]
    idempotency_key: list[str]
    downstream_key: dict[str, str]
    probe: dict[str, Any]
    timeout: float
    retry: int | dict[str, Any]
    output_limit: int
    rate_limit: str | dict[str, Any]
    costs: dict[str, float | str]
    resource: str | dict[str, str]
    execution: Literal["inline", "queued"]
    order_by: str
    queue_expires: float


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(**fields: Unpack[ToolFields]) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **fields: Any) -> Any:
    """Mark a function as a tool. The fields are those of a tool file.

    A function that does not say its effect is taken to be irreversible.
    """

    def mark(marked: F) -> F:
        setattr(marked, DECLARED, dict(fields))
        return marked

    return mark if function is None else mark(function)


class Binding:
    """A function, its spec, and how arguments reach it."""

    __slots__ = (
        "_validate",
        "declared",
        "function",
        "injected",
        "is_async",
        "is_stream",
        "own",
        "spec",
        "takes",
    )

    def __init__(self, function: Callable[..., Any], **fields: Any) -> None:
        """Bind a function; fields given here win over those of its decorator."""
        found = as_function(function, str(fields.get("name", "")))
        given = {**found.declared, **fields}
        signature = Signature(found, str(given.get("name", found.name)))
        self.function = function
        self.is_async = found.is_async
        self.is_stream = found.is_stream
        self.injected = signature.injected
        self.takes = signature.takes
        self.declared = frozenset(found.declared)
        self._validate = signature.adapter.validator.validate_python
        self.spec = read_tool(signature.fields() | given, origin=Origin("python", signature.place))
        # What the function says of itself stays when a file's definition takes the place of `spec`.
        self.own = self.spec
        reason = misfit(self.spec.input_schema, self.takes) if "input_schema" in given else None
        if reason is not None:
            raise InvalidSpecs(
                [
                    Problem(
                        file=found.place,
                        tool=self.spec.name,
                        field="input_schema",
                        message=f"cannot be used: {reason}",
                        write="Use the function's own names, or leave input_schema out.",
                    )
                ]
            )

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """JSON arguments as the function's own types."""
        try:
            return self._validate(args)
        except ValidationError as error:
            problems = [(pointer(list(one["loc"])), _told(one)) for one in error.errors()]
            told = without_values(self.spec.input_schema.raw, args, problems)
            raise InvalidArguments(self.spec.name, told) from None


def _told(problem: Mapping[str, Any]) -> str:
    """The text of a validator's own exception can hold anything, secrets too."""
    own = problem["type"] in {"value_error", "assertion_error"}
    return "is refused by the tool's own check" if own else problem["msg"]
