"""A store that fails at one statement of many: before it is done, or after."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError


@contextmanager
def failing(number: int, error: Callable[[], BaseException], *, after: bool) -> Generator[None]:
    """The statement with this number fails, of those that SQLAlchemy sends."""
    numbers = count()

    def fall(*_: object) -> None:
        if next(numbers) == number:
            raise error()

    name = "after_cursor_execute" if after else "before_cursor_execute"
    event.listen(sa.Engine, name, fall)
    try:
        yield
    finally:
        event.remove(sa.Engine, name, fall)


class Taken(Exception):
    """As a driver says that a transaction was taken back."""

    sqlstate = "40001"


def gone() -> BaseException:
    return DBAPIError("", {}, ConnectionResetError())


def taken_back() -> BaseException:
    return DBAPIError("", {}, Taken())
