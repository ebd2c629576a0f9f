"""What the rest of the store stands on: one way to read and one way to write, on either server."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from sqlalchemy import Connection

T = TypeVar("T")
# In the place of a tenant: the rows of all of them. No tenant can be called that.
HOUSE = "*"


class Database(Protocol):
    """A place for tables. Work is plain code on a connection and runs in one transaction.

    `tenant`: whose rows are there for it; without one nobody's, only what belongs to no tenant. A
    server that can (`store.row_security`) hides all others, whatever a statement asks for.

    Whatever goes wrong with the server itself is a `StoreUnavailable`.
    """

    async def read(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        """Run work that only reads."""
        ...

    async def ask(
        self, question: str, values: tuple[str, ...] = (), *, tenant: str = ""
    ) -> Sequence[Sequence[Any]]:
        """The rows of one statement that only reads, as of now; `$1` stands for the first value.

        For what is asked at every call: nothing is built around the statement.
        """
        ...

    async def write(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        """Run work in a transaction; returns when it is durable."""
        ...

    async def close(self) -> None:
        """Finish what was begun, then let go."""
        ...


class Ran(NamedTuple):
    """The rows of a statement that wrote. `again`: it was sent twice, the first answer was lost."""

    rows: Sequence[Sequence[Any]]
    again: bool


@runtime_checkable
class Statements(Database, Protocol):
    """A database at the end of a wire, where one statement is one transaction and one way there."""

    async def run(self, statement: str, values: Sequence[Any]) -> Ran:
        """One statement that writes; returns when it is durable. It says itself whose rows it is
        about (`store.whose.gate`).

        Only for one that may be sent twice: what it did the first time keeps it from doing it
        again, and whoever sends it can see that.
        """
        ...
