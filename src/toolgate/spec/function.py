"""`@tool`: a Python function becomes a spec and a way to call it with plain JSON.

The signature is the schema: types, `Annotated`, `Literal`, dataclasses, pydantic models, defaults.
The docstring is the description. What the function does to the world is said in the decorator.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import (
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
    with_config,
)
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from typing_extensions import TypedDict, Unpack

from toolgate.errors import InvalidArguments, InvalidSpecs
from toolgate.spec.problem import Problem
from toolgate.spec.reader import read_tool
from toolgate.spec.schema import pointer
from toolgate.spec.tool import Origin

F = TypeVar("F", bound=Callable[..., Any])
INJECTED = "__toolgate_injected__"
_DECLARED = "__toolgate_tool__"
_SECTION = re.compile(
    r"^\s*(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$"
)
_ARGUMENT = re.compile(r"^\s*(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_SPHINX = re.compile(r"^\s*:param\s+(?:[\w\[\], |.]+\s+)?(\w+):\s*(.+)$")


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
    timeout: float
    retry: int | dict[str, Any]
    output_limit: int
    rate_limit: str | dict[str, Any]


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(**fields: Unpack[ToolFields]) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **fields: Any) -> Any:
    """Mark a function as a tool. The fields are those of a tool file.

    A function that does not say its effect is taken to be irreversible.
    """

    def mark(marked: F) -> F:
        setattr(marked, _DECLARED, dict(fields))
        return marked

    return mark if function is None else mark(function)


class Binding:
    """A function, its spec, and how arguments reach it."""

    __slots__ = ("_validate", "function", "injected", "is_async", "spec")

    def __init__(self, function: Callable[..., Any], **fields: Any) -> None:
        """Bind a function; fields given here win over those of its decorator."""
        declared = getattr(function, _DECLARED, {}) | fields
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        signature = _Signature(function, str(declared.get("name", "")))
        self.injected = signature.injected
        self._validate = signature.adapter.validator.validate_python
        self.spec = read_tool(
            signature.fields() | declared, origin=Origin("python", signature.place)
        )

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """JSON arguments as the function's own types."""
        try:
            return self._validate(args)
        except ValidationError as error:
            problems = [(pointer(list(one["loc"])), one["msg"]) for one in error.errors()]
            raise InvalidArguments(self.spec.name, problems) from None


class _Signature:
    """What a function's signature and docstring say."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        own = getattr(function, "__name__", type(function).__name__)
        self.name = name or own
        self.place = (
            f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', own)}"
        )
        self.description, documented = _docstring(inspect.getdoc(function) or "")
        self.injected: str | None = None
        self.defaults: dict[str, Any] = {}
        try:
            hints = get_type_hints(function, include_extras=True)
        except Exception as error:  # noqa: BLE001  a forward reference can raise anything
            raise self._refused("", f"has a type that cannot be resolved ({error})") from None
        self.returns = hints.get("return", Any)
        members: dict[str, Any] = {}
        extra = "forbid"
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = "allow"
            elif parameter.kind in {parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL}:
                raise self._refused(
                    parameter.name, "is positional; a model passes arguments by name"
                )
            elif hasattr(hints.get(parameter.name), INJECTED):
                self.injected = parameter.name
            else:
                hint = hints.get(parameter.name, Any)
                members[parameter.name] = self._member(parameter, hint, documented)
        shape = with_config(ConfigDict(extra=extra, arbitrary_types_allowed=False))(
            TypedDict(_class_name(self.name), members)  # pyright: ignore[reportArgumentType]
        )
        self.adapter: TypeAdapter[dict[str, Any]] = self._adapter(shape)

    def fields(self) -> dict[str, Any]:
        """The spec's fields that the function itself tells."""
        found: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "input_schema": self._input_schema(),
        }
        output = self._output_schema()
        return found if output is None else found | {"output_schema": output}

    def _member(
        self, parameter: inspect.Parameter, hint: Any, documented: Mapping[str, str]
    ) -> Any:
        hint = _described(hint, documented.get(parameter.name, ""))
        if parameter.default is parameter.empty:
            return Required[hint]
        self.defaults[parameter.name] = parameter.default
        return NotRequired[hint]

    def _adapter(self, shape: Any) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(shape)
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise self._refused(
                "", f"has a type that JSON has no word for ({_first(error)})"
            ) from None

    def _input_schema(self) -> dict[str, Any]:
        try:
            schema = self.adapter.json_schema(mode="validation")
        except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
            raise self._refused(
                "", f"has a type that JSON has no word for ({_first(error)})"
            ) from None
        schema.setdefault("properties", {})
        for name, default in self.defaults.items():
            plain = TypeAdapter(Any).dump_python(default, mode="json", fallback=lambda _value: None)
            if default is None or plain is not None:
                schema["properties"][name].setdefault("default", plain)
        return cast("dict[str, Any]", _untitled(schema))

    def _output_schema(self) -> dict[str, Any] | None:
        if self.returns in {Any, None, type(None), inspect.Signature.empty}:
            return None
        try:
            schema = TypeAdapter(self.returns).json_schema(mode="serialization")
        except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError):
            return None
        return cast("dict[str, Any]", _untitled(schema))

    def _refused(self, parameter: str, message: str) -> InvalidSpecs:
        return InvalidSpecs(
            [
                Problem(
                    file=self.place,
                    tool=self.name,
                    field=parameter,
                    message=message,
                    write="Use types that JSON can carry: numbers, texts, lists, dicts, models.",
                )
            ]
        )


def _described(hint: Any, text: str) -> Any:
    """`Annotated[str, "the city"]` and the docstring's line both describe a parameter."""
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        texts = [extra for extra in extras if isinstance(extra, str)]
        others = [extra for extra in extras if not isinstance(extra, str)]
        described = any(getattr(extra, "description", None) for extra in others)
        text = "" if described else (texts[0] if texts else text)
        extras = [*others, Field(description=text)] if text else others
        return Annotated[base, *extras] if extras else base
    return Annotated[hint, Field(description=text)] if text else hint


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said about each argument (Google and Sphinx forms)."""
    described: dict[str, str] = {}
    kept: list[str] = []
    section = ""
    for line in text.splitlines():
        heading = _SECTION.match(line)
        sphinx = _SPHINX.match(line)
        if heading:
            section = heading[1]
        elif sphinx:
            described[sphinx[1]] = sphinx[2].strip()
        elif section in {"Args", "Arguments", "Parameters"} and (found := _ARGUMENT.match(line)):
            described[found[1]] = found[2].strip()
        elif not section:
            kept.append(line)
    return "\n".join(kept).strip(), described


def _untitled(node: Any) -> Any:
    """pydantic titles every property after its name: words that cost a model tokens."""
    if isinstance(node, dict):
        fields = cast("dict[str, Any]", node)
        return {
            key: _named(value) if key in {"properties", "$defs"} else _untitled(value)
            for key, value in fields.items()
            if not (key == "title" and isinstance(value, str))
        }
    if isinstance(node, list):
        return [_untitled(item) for item in cast("list[Any]", node)]
    return node


def _named(node: Any) -> Any:
    return {name: _untitled(schema) for name, schema in cast("dict[str, Any]", node).items()}


def _class_name(name: str) -> str:
    return re.sub(r"\W", "_", name) or "tool"


def _first(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
