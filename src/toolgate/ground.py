"""What a running house stands on, as it says itself to whoever looks after it from elsewhere."""

import msgspec


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """Its disk, and what its programs run in.

    `free`: bytes, where the store is; `None` where that cannot be looked at. `refusal`: why no
    sandbox holds; `is_named`: whether the settings name the one that was tried.
    """

    free: int | None = None
    sandbox: str = "none"
    refusal: str = ""
    is_named: bool = False


async def unknown() -> Ground:
    """Of a house that was put together by hand."""
    return Ground()
