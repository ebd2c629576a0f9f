"""DOCX as blocks: an archive with XML inside, read with an end to both.

No entity is known and no document type allowed, so that nothing grows while it is read.
"""

import io
import re
import zipfile
import zlib
from xml.parsers import expat

from toolgate.errors import ToolError
from toolgate.tools.documents.block import Document, Writing

BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_MOST_BYTES = 32 * 1024 * 1024
_MOST_PARTS = 10_000
_DEEPEST = 256
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
_HEADING = re.compile(r"heading ?([1-9])\Z", re.IGNORECASE)


def is_docx(content: bytes) -> bool:
    """Whether it is an archive that has such a body."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return BODY in archive.NameToInfo
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return False


def read_docx(content: bytes) -> Document:
    """Paragraphs with the headings above them; tables row by row."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if len(archive.infolist()) > _MOST_PARTS:
                raise ToolError(f"The DOCX has more than {_MOST_PARTS:,} parts and is not read.")
            styles = _Styles()
            if _STYLES in archive.NameToInfo:
                styles.read(_part(archive, _STYLES))
            body = _Body(styles.levels)
            body.read(_part(archive, BODY))
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError):
        raise _damaged() from None
    return body.found.done("docx")


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read while it is unpacked, and only so much: what the archive claims is not believed."""
    with archive.open(name) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ToolError(
            f"The DOCX unpacks to more than {_MOST_BYTES // 2**20} MB of text and is not read. "
            "Split it into smaller documents."
        )
    return content


class _Xml:
    """A parser that calls `start`, `end` and `text`, and refuses what could grow."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self.text
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse
        self._depth = 0

    def read(self, content: bytes) -> None:
        try:
            self._parser.Parse(content, True)  # noqa: FBT003  it takes no name
        except expat.ExpatError:
            raise _damaged() from None

    def start(self, tag: str, attributes: dict[str, str]) -> None: ...

    def end(self, tag: str) -> None: ...

    def text(self, data: str) -> None: ...

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _damaged()
        self.start(_short(tag), {_short(name): value for name, value in attributes.items()})

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self.end(_short(tag))

    def _refuse(self, *_what: object) -> None:
        raise ToolError(
            "The DOCX declares a document type or entities, which no such document has. It is not "
            "read."
        )


class _Styles(_Xml):
    """Which styles are headings: their names are the same in every language, their ids are not."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: dict[str, int] = {}
        self._style = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "style":
            self._style = attributes.get("styleId", "")
        elif tag == "name" and self._style:
            name = attributes.get("val", "")
            level = _HEADING.match(name)
            if level or name.lower() == "title":
                self.levels[self._style] = int(level[1]) if level else 1


class _Body(_Xml):
    def __init__(self, levels: dict[str, int]) -> None:
        super().__init__()
        self.found = Writing()
        self._levels = levels
        self._pieces: list[str] = []
        self._cells: list[str] = []
        self._level = 0
        self._is_text = False
        self._tables = 0
        self._doubled = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "Fallback" or self._doubled:
            self._doubled += 1
        elif tag == "t":
            self._is_text = True
        elif tag in {"tab", "br", "cr"}:
            self._pieces.append("\t" if tag == "tab" else "\n")
        elif tag == "pStyle":
            style = attributes.get("val", "")
            level = _HEADING.match(style)
            self._level = self._levels.get(style, int(level[1]) if level else 0)
        elif tag == "tbl":
            self._tables += 1

    def end(self, tag: str) -> None:
        if self._doubled:
            self._doubled -= 1
        elif tag == "t":
            self._is_text = False
        elif tag == "tbl":
            self._tables -= 1
        elif tag == "p":
            self._paragraph()
        elif tag == "tc":
            self._cells.append(" ".join("".join(self._pieces).split()))
            self._pieces.clear()
        elif tag == "tr":
            self.found.paragraph(" | ".join(self._cells))
            self._cells.clear()

    def text(self, data: str) -> None:
        if self._is_text and not self._doubled:
            self._pieces.append(data)

    def _paragraph(self) -> None:
        if self._tables:
            self._pieces.append(" ")
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        level, self._level = self._level, 0
        if level:
            self.found.heading(level, text)
        else:
            self.found.paragraph(text)


def _short(name: str) -> str:
    """Without the namespace, where it is the one of such documents; else something else."""
    space, _, last = name.rpartition(" ")
    if space in {_WORD, _STRICT} or name == _FALLBACK:
        return last
    return name


def _damaged() -> ToolError:
    return ToolError(
        "The DOCX is damaged, or is none. Save it again with a word processor, or as text."
    )
