"""What a caller may know of a store that fails: the kind of failure, and what helps.

A driver's own text can hold the statement, its values, the file's place or the password.
"""

from collections.abc import Mapping

from toolgate.errors import StoreError, StoreMismatch, StoreUnavailable

_DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})
# What waiting does not cure: the settings, or the server, have to be changed.
_HELP: Mapping[str, str] = {
    "InvalidCatalogNameError": "There is no database of that name on the server; create it.",
    "InvalidPasswordError": "The server refuses this user and password; correct them.",
    "InvalidAuthorizationSpecificationError": "The server does not let this user in; correct it.",
    "InsufficientPrivilegeError": "This user may not do that; grant it, or let the "
    "owner of the tables upgrade them: toolgate migrate, with [store] migrate_url.",
    "ReadOnlySQLTransactionError": "It can only be read now; see why the server takes no writes, "
    "or point [store] url at the one that does.",
    "gaierror": "The host in [store] url cannot be found; correct it.",
    "ConnectionRefusedError": "Nothing answers at that host and port; start the server.",
    "SSLCertVerificationError": "The server's certificate cannot be verified; correct its TLS.",
    "SQLITE_FULL": "The disk is full; make room.",
    "SQLITE_READONLY": "The file cannot be written; correct its permissions.",
    "SQLITE_CANTOPEN": "The file cannot be opened; correct [store] url or its permissions.",
}


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
    help_ = _HELP.get(kind, "Try again when it is back.")
    return StoreUnavailable(f"The store cannot be used right now ({kind}). {help_}")


def closed() -> StoreError:
    """Whoever still asks comes too late; waiting would be for ever."""
    return StoreUnavailable("The store was closed. Open toolgate again.")
