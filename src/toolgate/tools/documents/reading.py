"""A file as passages: what it is, read as that. Runs in a process of its own."""

from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.documents import docx, plain
from toolgate.tools.documents.block import Document
from toolgate.tools.documents.html import read_html
from toolgate.tools.documents.passage import passages

_MOST_PASSAGES = 4_000
_BYTE_ORDER = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_ZIP = b"PK\x03\x04"
_PDF = b"%PDF-"
_NEAR = 1_024
_MARKDOWN = (".md", ".markdown", ".mdown")
_HTML = (".html", ".htm", ".xhtml")


def read(name: str, data: bytes) -> dict[str, Any]:
    """The document of that name, with that content."""
    found = _document(name, data)
    pieces = passages(found.blocks)
    return {
        "kind": found.kind,
        "title": found.title,
        "pages": found.pages,
        "is_cut": found.is_cut or len(pieces) > _MOST_PASSAGES,
        "passages": [
            {"text": one.text, "heading": one.heading, "page": one.page}
            for one in pieces[:_MOST_PASSAGES]
        ],
    }


def _document(name: str, content: bytes) -> Document:
    """What a file is, its content says; its name only which kind of text."""
    if _PDF in content[:_NEAR]:
        from toolgate.tools.documents.pdf import read_pdf  # noqa: PLC0415  heavy, and not for all

        return read_pdf(content)
    if content.startswith(_ZIP):
        if docx.is_docx(content):
            return docx.read_docx(content)
        raise ToolError(
            "This is an archive, or a format that is not read. Give text, Markdown, HTML, PDF or "
            "DOCX; take files out of an archive first."
        )
    text = _decoded(content)
    ending = name.lower()
    start = text[:_NEAR].lstrip().lower()
    if ending.endswith(_HTML) or start.startswith(("<!doctype html", "<html")):
        return read_html(text)
    if ending.endswith(_MARKDOWN):
        return plain.read_markdown(text)
    return plain.read_text(text)


def _decoded(content: bytes) -> str:
    for mark, encoding in _BYTE_ORDER.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace").replace("\r\n", "\n")
    if b"\0" in content:
        raise ToolError(
            "This is no text, and none of the formats that are read: text, Markdown, HTML, PDF and "
            "DOCX. Convert it first."
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
