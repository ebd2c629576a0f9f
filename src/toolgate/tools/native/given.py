"""What callers give for functions of several variables: names, bounds and constants that fit."""

from collections.abc import Iterable, Mapping, Sequence

from toolgate.errors import ToolError
from toolgate.tools.math.expression import parse
from toolgate.tools.math.names import check_names

Bounds = Mapping[str, Sequence[float | None]]


def check_expression(what: str, text: str, names: Iterable[str]) -> None:
    """Refuse it before a process is started; an error says which one it is."""
    try:
        parse(text).check(tuple(names))
    except ToolError as error:
        raise ToolError(f"{what}: {error.message}") from None


def check_variables(variables: Iterable[str], constants: Iterable[str] = ()) -> tuple[str, ...]:
    """All names, the variables first; none stands for two things."""
    first, more = tuple(variables), tuple(constants)
    if not first:
        raise ToolError("Give at least one variable.")
    check_names((*first, *more))
    both = sorted(set(first) & set(more))
    if both:
        raise ToolError(f'"{both[0]}" is given twice: as a variable and as a constant.')
    return (*first, *more)


def check_bounds(bounds: Bounds, variables: Iterable[str]) -> None:
    """Each is `[low, high]` of a variable that there is; null is no bound."""
    known = tuple(variables)
    for name, (low, high) in bounds.items():
        if name not in known:
            raise ToolError(
                f'Bounds for "{name[:40]}", which is no variable of {", ".join(known)}.'
            )
        if low is not None and high is not None and not low < high:
            raise ToolError(f'The bounds of "{name}": the first is less than the second.')
