"""The root of all errors, and what can be wrong with the house itself. Import from `errors`."""

from collections.abc import Sequence
from typing import Any, ClassVar


class ToolgateError(Exception):
    """The root. `code` is stable; `retryable` says whether trying again can help."""

    code: ClassVar[str] = "internal_error"
    retryable: bool = False

    def __init__(self, message: str, **details: Any) -> None:
        # A file's name can hold what is not text; every door and record can carry this.
        self.message = str(message).encode("utf-8", "backslashreplace").decode()
        super().__init__(self.message)
        self.details = details
        # The call it is about, where that is another one than the caller's own attempt.
        self.call_id = ""
        # When that began, on the monotonic clock, where its caller waited for a person before.
        self.began_ns = 0


class SettingsInvalid(ToolgateError):
    """A setting cannot be used; correct the lines that the message names."""

    code = "settings_invalid"

    def __init__(self, problems: Sequence[object]) -> None:
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"The settings cannot be used:\n{listed}")
        self.problems = tuple(problems)


class CatalogError(ToolgateError):
    """Something is wrong with the tool definitions."""


class InvalidSpecs(CatalogError):
    """Definitions contradict themselves or are malformed; write what each line proposes."""

    code = "invalid_specs"

    def __init__(self, problems: Sequence[object]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{count} in the tool definitions; nothing was loaded:\n{listed}")
        self.problems = tuple(problems)


class NameClash(CatalogError):
    """Two sources have a tool of the same name; rename one."""

    code = "name_clash"


class SourceUnavailable(CatalogError):
    """A source did not answer; its last good tools stay. Look at its health."""

    code = "source_unavailable"
    retryable = True


class InvalidPolicy(ToolgateError):
    """A policy cannot be used; correct what each line names. The last good one stays."""

    code = "invalid_policy"

    def __init__(self, problems: Sequence[object]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{count} in the policies; nothing was loaded:\n{listed}")
        self.problems = tuple(problems)


class StoreError(ToolgateError):
    """Something is wrong with the store."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or written; try again when it is back."""

    code = "store_unavailable"
    retryable = True


class StoreMismatch(StoreError):
    """The database is newer, half migrated or not ours; restore it or use another."""

    code = "store_mismatch"


class StoreQuarantined(StoreError):
    """An older copy of the store was brought back; an operator says: toolgate store accept."""

    code = "store_quarantined"


class ServerUnreachable(ToolgateError):
    """A toolgate server elsewhere did not answer; check its address, and that it runs.

    `details.sent` says whether the request may have reached it.
    """

    code = "server_unreachable"
    retryable = True
