"""What a function's signature and docstring say: the schema of its arguments, and its words."""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    TypeAdapter,
    with_config,
)
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from typing_extensions import TypedDict

from toolgate.errors import InvalidSpecs
from toolgate.spec.fit import Parameters
from toolgate.spec.problem import Problem
from toolgate.spec.shape import Function

INJECTED = "__toolgate_injected__"
_TYPES = "Use types that JSON can carry: numbers, texts, lists, dicts, models."
_POSITIONAL = {
    inspect.Parameter.POSITIONAL_ONLY: (
        "Name the parameter, without / behind it: a model passes arguments by name."
    ),
    inspect.Parameter.VAR_POSITIONAL: (
        "Name the parameter and take a list: a model passes arguments by name."
    ),
}
_SECTION = re.compile(
    r"^\s*(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$"
)
_ARGUMENT = re.compile(r"^\s*(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_SPHINX = re.compile(r"^\s*:param\s+(?:[\w\[\], |.]+\s+)?(\w+):\s*(.+)$")


class Signature:
    """What a function's signature and docstring say."""

    def __init__(self, function: Function, name: str) -> None:
        self.name = name
        self.place = function.place
        self.description, documented = _docstring(inspect.getdoc(function.described) or "")
        self.injected: str | None = None
        self.defaults: dict[str, Any] = {}
        try:
            hints = get_type_hints(function.described, include_extras=True)
        except Exception as error:  # noqa: BLE001  a forward reference can raise anything
            raise self._refused("", f"has a type that cannot be resolved ({error})") from None
        self.returns = hints.get("return", Any)
        members: dict[str, Any] = {}
        takes_more = False
        for parameter in self._parameters(function):
            if parameter.kind is parameter.VAR_KEYWORD:
                takes_more = True
                if function.fixed:
                    raise self._refused(
                        parameter.name,
                        "would let a caller change what the partial has settled",
                        "Write a function that passes it on.",
                    )
            elif hasattr(hints.get(parameter.name), INJECTED):
                self.injected = parameter.name
            else:
                hint = hints.get(parameter.name, Any)
                members[parameter.name] = self._member(parameter, hint, documented)
        names = frozenset(members)
        self.takes = Parameters(names, names - self.defaults.keys(), takes_more)
        extra = "allow" if takes_more else "forbid"
        shape = with_config(ConfigDict(extra=extra, arbitrary_types_allowed=False))(
            TypedDict(_class_name(self.name), members)  # pyright: ignore[reportArgumentType]
        )
        self.adapter: TypeAdapter[dict[str, Any]] = self._adapter(shape)

    def _parameters(self, function: Function) -> Iterator[inspect.Parameter]:
        """Those that a caller gives, each by its name."""
        try:
            found = inspect.signature(function.given).parameters.values()
        except (TypeError, ValueError):
            raise self._refused(
                "", "does not say which arguments it takes", "Wrap it in a function of your own."
            ) from None
        for parameter in found:
            advice = _POSITIONAL.get(parameter.kind)
            if advice is not None:
                raise self._refused(parameter.name, "is passed by position", advice)
            if parameter.name not in function.fixed:
                yield parameter

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

    def _refused(self, parameter: str, message: str, write: str = _TYPES) -> InvalidSpecs:
        return InvalidSpecs(
            [
                Problem(
                    file=self.place,
                    tool=self.name,
                    field=parameter,
                    message=message,
                    write=write,
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
