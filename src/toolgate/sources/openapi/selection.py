"""Which operations are chosen: by tag, path, method and id."""

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from toolgate.sources.openapi.operations import METHODS, Operation
from toolgate.sources.openapi.prose import printable

# Comparing a word with many others takes long enough to be noticed.
_MOST_COMPARED = 1_000
_MOST_LISTED = 20
_NO_TAGS = "The document has none: choose by --path, --method or --operation."


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

    def unknown(self, operations: Sequence[Operation]) -> list[str]:
        """A sentence about each word that fits no operation: most likely it is misspelt."""
        tags = list(dict.fromkeys(tag for one in operations for tag in one.tags))
        paths = list(dict.fromkeys(one.path for one in operations))
        ids = list(dict.fromkeys(one.id for one in operations if one.id))
        lacking = [one for one in self.tags if one not in set(tags)]
        found = [f"No operation has the tag {_meant(one, tags, _NO_TAGS)}" for one in lacking]
        for word, globs, known in (("path", self.paths, paths), ("id", self.operations, ids)):
            lacking = [one for one in globs if not any(fnmatchcase(of, one) for of in known)]
            found += [f"No operation has the {word} {_meant(one, known)}" for one in lacking]
        return found

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


def _meant(given: str, known: Sequence[str], none: str = "") -> str:
    """What was given, and what may have been meant by it."""
    said = f"{printable(given, 60)!r}."
    small = {one.lower(): one for one in known[:_MOST_COMPARED]}
    if close := difflib.get_close_matches(given[:80].lower(), small, n=1):
        return f"{said} Did you mean {printable(small[close[0]], 80)!r}?"
    some = ", ".join(printable(one, 60) for one in known[:_MOST_LISTED])
    more = f" and {len(known) - _MOST_LISTED:,} more" if len(known) > _MOST_LISTED else ""
    return f"{said} There are: {some}{more}." if known else f"{said} {none}".rstrip()


def _fits(text: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)
