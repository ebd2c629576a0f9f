"""HTML as blocks: what a reader sees of it, without scripts and what is hidden."""

import re

from toolgate.tools.documents.block import Document, Writing
from toolgate.tools.documents.markup import Markup, Tag

_UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "math", "object", "iframe"})
_VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905  a line of words
)
_INLINE = frozenset(
    "a abbr b bdi bdo cite code data dfn em font i kbd label mark q s samp small span strong sub "  # noqa: SIM905  as above
    "sup time tt u var".split()
)
_HEADING = re.compile(r"h([1-6])\Z")
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


class _Reader:
    """Collects text; an element that is not seen is left out with all that is in it."""

    def __init__(self) -> None:
        self.found = Writing()
        self.title = ""
        self._pieces: list[str] = []
        # The element that is not seen, and how many of its name are open.
        self._unseen = ""
        self._depth = 0
        self._is_title = False
        self._is_kept = False

    def take(self, part: Tag | str) -> None:
        """What comes next."""
        if isinstance(part, str):
            self._text(part)
        elif part.is_closing:
            self._closed(part.name)
        else:
            self._opened(part)

    def end(self) -> None:
        """What is left is a paragraph."""
        self.found.paragraph(self._taken())

    def _opened(self, tag: Tag) -> None:
        name = tag.name
        if self._unseen:
            self._depth += name == self._unseen
            return
        if name not in _VOID and (name in _UNSEEN or _is_hidden(tag)):
            self._unseen, self._depth = name, 1
        elif name == "title":
            self._is_title = True
        elif name in {"td", "th"}:
            self._pieces.append(" | " if self._pieces else "")
        elif name == "br":
            self._pieces.append("\n")
        elif name not in _INLINE and name not in {"tbody", "thead", "table", "img"}:
            self.end()
            self._is_kept = name == "pre"

    def _closed(self, name: str) -> None:
        if self._unseen:
            self._depth -= name == self._unseen
            self._unseen = self._unseen if self._depth else ""
            return
        if name == "title":
            self._is_title = False
        level = _HEADING.match(name)
        if level:
            self.found.heading(int(level[1]), self._taken())
        elif name not in _INLINE and name not in {"td", "th", "br"}:
            self.end()
            self._is_kept = False

    def _text(self, text: str) -> None:
        if self._unseen:
            return
        if self._is_title:
            self.title += text[:200]
        else:
            self._pieces.append(text if self._is_kept else re.sub(r"\s+", " ", text))

    def _taken(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        return text


def read_html(text: str) -> Document:
    """A page, or a piece of one."""
    reader = _Reader()
    for part in Markup(text):
        reader.take(part)
    reader.end()
    return reader.found.done("html", title=reader.title)


def _is_hidden(tag: Tag) -> bool:
    given = tag.attributes
    return "hidden" in given or _HIDING.search(given.get("style", "")) is not None
