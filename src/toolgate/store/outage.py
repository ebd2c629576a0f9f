"""What a caller may know of a store that fails: the kind of failure, and what helps.

A driver's own text can hold the statement, its values, the file's place or the password.
"""

from toolgate.errors import StoreError, StoreMismatch, StoreUnavailable

_DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})


def outage(error: BaseException) -> StoreError:
    """The driver's failure in the house's words."""
    cause = getattr(error, "orig", None) or error
    cause = cause.__cause__ or cause
    kind: str = getattr(cause, "sqlite_errorname", type(cause).__name__)
    if kind in _DAMAGED:
        return StoreMismatch(
            f"The store's file is damaged, or is no database of ours ({kind}). "
            "Restore a backup, or point [store] url elsewhere."
        )
    return StoreUnavailable(
        f"The store cannot be used right now ({kind}). "
        "Try again when it is back; `toolgate doctor` says more."
    )


def closed() -> StoreError:
    """Whoever still asks comes too late; waiting would be for ever."""
    return StoreUnavailable("The store was closed. Open toolgate again.")
