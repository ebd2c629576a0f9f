"""How far tests go that could go on for ever: all the way in `make chaos`, part of it in CI."""

import os
from typing import TypeVar

T = TypeVar("T")
IS_THOROUGH = os.environ.get("TOOLGATE_CHAOS") == "1"


def some(part: T, whole: T) -> T:
    """The part, unless everything is asked for."""
    return whole if IS_THOROUGH else part
