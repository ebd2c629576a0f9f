"""Patterns over paths, as shells have them: `*`, `?`, `[abc]`, and `**` for any folders."""

import fnmatch
import re

from toolgate.errors import ToolError

_LONGEST = 200
_MOST_FOLDERS = 32
_ANY = "**"


class Glob:
    """Matches whole paths, in a time that grows with their length and no faster.

    A pattern without a folder matches names at any depth.
    """

    def __init__(self, glob: str) -> None:
        parts = [part for part in glob.split("/") if part not in {"", "."}]
        if len(glob) > _LONGEST or len(parts) > _MOST_FOLDERS:
            raise ToolError(
                f"A pattern has at most {_LONGEST} characters and {_MOST_FOLDERS} folders. Write a "
                "simpler one, such as '*.md' or 'src/**/*.py'."
            )
        if len(parts) == 1 and parts[0] != _ANY:
            parts = [_ANY, *parts]
        self._parts = [
            None if part == _ANY else re.compile(fnmatch.translate(part)) for part in parts
        ]
        # How many folders deep it can match; nothing where any.
        self.depth = None if None in self._parts else len(parts)

    def matches(self, path: str) -> bool:
        """Whether all of the path is as the pattern says."""
        # Which beginnings of the pattern match what was read of the path until now.
        reached = self._further({0})
        for name in path.split("/"):
            step = {
                at + (part is not None)
                for at in reached
                if at < len(self._parts)
                and ((part := self._parts[at]) is None or part.match(name) is not None)
            }
            reached = self._further(step)
        return len(self._parts) in reached

    def _further(self, reached: set[int]) -> set[int]:
        """With those behind a `**`, which matches nothing too."""
        more = set(reached)
        for at in sorted(reached):
            following = at
            while following < len(self._parts) and self._parts[following] is None:
                following += 1
                more.add(following)
        return more
