"""A search in the files of an archive: names and lines that hold a text."""

import io
from collections.abc import Sequence
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.archive.entry import Entry
from toolgate.tools.archive.flow import Full
from toolgate.tools.archive.limits import MEMBER
from toolgate.tools.system.encoding import HEAD, decoded, is_binary
from toolgate.tools.system.globs import Glob

_LONGEST = 300


class Matching:
    """Takes the files as they come, one at a time in memory."""

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        query: str,
        pattern: str,
        case_sensitive: bool,
        limit: int,
    ) -> None:
        self._entries = entries
        self._folds = not case_sensitive
        self._query = query.casefold() if self._folds else query
        self._glob = Glob(pattern) if pattern else None
        self._limit = limit
        self._place = -1
        self._content = bytearray()
        self._found: list[dict[str, Any]] = []
        self._skipped: list[str] = []
        self._searched = 0
        self._is_cut = False

    def wants(self, place: int) -> bool:
        """Files that match the pattern; a name is looked at also where the content is not."""
        entry = self._entries[place]
        if entry.kind != "file" or not self._is_chosen(entry.path):
            return False
        self._end()
        if entry.size > MEMBER:
            self._skipped.append(entry.path)
            return False
        self._place = place
        return True

    def take(self, place: int, piece: bytes) -> None:
        """More of the file."""
        assert place == self._place  # noqa: S101  they come one behind the other
        self._content.extend(piece)

    def told(self) -> dict[str, Any]:
        """What was found."""
        if not self._is_cut:
            try:
                self._end()
            except Full:
                self._is_cut = True
        names = [
            entry.path
            for entry in self._entries
            if self._is_chosen(entry.path) and self._query in self._folded(entry.path)
        ]
        return {
            "names": names[: self._limit],
            "matches": self._found,
            "searched": self._searched,
            "skipped": self._skipped[: self._limit],
            "truncated": self._is_cut or len(names) > self._limit,
        }

    def _is_chosen(self, path: str) -> bool:
        return self._glob is None or self._glob.matches(path)

    def _folded(self, text: str) -> str:
        return text.casefold() if self._folds else text

    def _end(self) -> None:
        """Look through the file that came last."""
        place, content = self._place, bytes(self._content)
        self._place = -1
        self._content.clear()
        if place < 0:
            return
        path = self._entries[place].path
        head = content[:HEAD]
        if is_binary(head):
            self._skipped.append(path)
            return
        try:
            text = decoded(content, head=head, offset=0, is_end=True, encoding="auto").text
        except ToolError:
            # It begins like a text of another kind, and is none.
            self._skipped.append(path)
            return
        self._searched += 1
        if self._query not in self._folded(text):
            return
        for number, line in enumerate(io.StringIO(text, newline=""), 1):
            at = self._folded(line).find(self._query)
            if at < 0:
                continue
            if len(self._found) >= self._limit:
                self._is_cut = True
                raise Full
            begin = max(0, at - _LONGEST // 3)
            found = {
                "member": path,
                "line": number,
                "text": line[begin : begin + _LONGEST].rstrip("\r\n"),
            }
            self._found.append(found)
