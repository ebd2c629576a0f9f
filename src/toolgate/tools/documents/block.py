"""What a document is made of, whatever its format: paragraphs below headings, on pages."""

import msgspec

from toolgate.errors import ToolError

# More text than this is not kept of one document.
MOST_CHARACTERS = 1_500_000
MOST_BLOCKS = 50_000
_DEEPEST = 6


class Block(msgspec.Struct, frozen=True):
    """A paragraph, the headings above it, and the page it stands on where there are pages."""

    text: str
    heading: str = ""
    page: int | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, in order. `is_cut`: there was more than is kept."""

    kind: str
    blocks: list[Block]
    title: str = ""
    pages: int | None = None
    is_cut: bool = False


class Writing:
    """Blocks while a document is read: headings open and close, and there is an end to it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.title = ""
        self.is_cut = False
        self._headings: list[tuple[int, str]] = []
        self._length = 0

    def heading(self, level: int, text: str) -> None:
        """A heading: those of its level and below are over."""
        text = " ".join(text.split())[:200]
        if not text:
            return
        self.title = self.title or text
        level = min(level, _DEEPEST)
        self._headings = [one for one in self._headings if one[0] < level] + [(level, text)]

    def paragraph(self, text: str, page: int | None = None) -> None:
        """A piece of text; what is only space is none."""
        text = text.strip()
        if not text or self.is_cut:
            return
        left = MOST_CHARACTERS - self._length
        if len(text) > left or len(self.blocks) >= MOST_BLOCKS:
            self.is_cut = True
            text = text[:left]
        self._length += len(text)
        if text:
            self.blocks.append(Block(text, " > ".join(one for _, one in self._headings), page))

    def done(self, kind: str, *, pages: int | None = None, title: str = "") -> Document:
        """The document as it was read."""
        if not self.blocks:
            raise ToolError(
                f"There is no text in this document (read as {kind}). A scan has pictures of text: "
                "have its text recognised first."
            )
        return Document(
            kind=kind,
            blocks=self.blocks,
            title=" ".join((title or self.title).split())[:200],
            pages=pages,
            is_cut=self.is_cut,
        )
