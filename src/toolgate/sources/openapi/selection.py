"""Which operations are chosen: by tag, path, method and id."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from toolgate.sources.openapi.operations import METHODS, Operation


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """An operation has to fit each kind that is given, in one of its words; none takes all."""

    tags: Sequence[str] = ()
    # As globs: `/pets/*`.
    paths: Sequence[str] = ()
    methods: Sequence[str] = ()
    # By operationId, as globs too.
    operations: Sequence[str] = ()
    deprecated: bool = False

    def unknown_methods(self) -> list[str]:
        """Methods that no operation has."""
        return [one for one in self.methods if one.lower() not in METHODS]

    def refusal(self, operation: Operation) -> str:
        """Why it is not chosen, or nothing."""
        if self.tags and not set(self.tags) & set(operation.tags):
            return "its tag was not chosen"
        if self.paths and not _fits(operation.path, self.paths):
            return "its path was not chosen"
        if self.methods and operation.method not in {one.lower() for one in self.methods}:
            return "its method was not chosen"
        if self.operations and not _fits(operation.id, self.operations):
            return "its operation was not chosen"
        if operation.is_deprecated and not self.deprecated:
            return "it is deprecated"
        return ""


def _fits(text: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)
