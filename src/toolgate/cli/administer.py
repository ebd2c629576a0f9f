"""What only administers works also while something cannot be read: it decides about no call."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.despite import open_despite
from toolgate.cli.far import Far, Place
from toolgate.cli.session import at_place, load
from toolgate.errors import CatalogError

T = TypeVar("T")
_NO_POLICIES = (
    "The policy files cannot be read, and nothing can be called until they are. "
    "What is wrong with them: toolgate policy check"
)
_NO_DEFINITIONS = (
    "The tool definitions cannot be read, so that only built-in tools are known here. "
    "What is wrong with them: toolgate doctor"
)


def administer(
    place: Place,
    work: Callable[[Toolgate], Awaitable[T]],
    far: Far[T] | None = None,
    *,
    json: bool,
    definitions: bool = False,
) -> T:
    """As `with_gate`, for work that asks for no decision; `definitions`: it needs those of tools.

    What cannot be read is told beside the answer.
    """

    async def run() -> T:
        async with AsyncExitStack() as stack:
            opened = await open_despite(load(place.config), stack, definitions=definitions)
            for problem in opened.problems:
                is_catalog = isinstance(problem, CatalogError)
                show.warning(_NO_DEFINITIONS if is_catalog else _NO_POLICIES)
            return await work(opened.gate)

    return at_place(place, run, far, json=json)
