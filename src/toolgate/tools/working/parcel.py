"""What goes between a worker and whoever asks it."""

from typing import Any, NamedTuple


class Parcel(NamedTuple):
    """A value with bytes beside it, which go as they are: JSON would make a text of them."""

    value: Any
    content: bytes
