"""PDF as blocks: the text of each page, as far as a file has any."""

import io
import re

from pypdf import PdfReader

from toolgate.errors import ToolError
from toolgate.tools.documents.block import Document, Writing

MOST_PAGES = 2_000
# Words of a justified line are far apart.
_GAPS = re.compile(r"[ \t]{2,}")
_HYPHENS = re.compile(r"(\w)-\n(?=[a-z])")


def read_pdf(content: bytes) -> Document:
    """A file that claims more pages than are read is read up to there."""
    try:
        return _read(content)
    except (ToolError, MemoryError):
        raise
    except Exception:  # noqa: BLE001  the library raises anything over a file that is made for it
        raise ToolError(
            "The PDF is damaged, or uses something that cannot be read. Save it again with another "
            "program, or as text."
        ) from None


def _read(content: bytes) -> Document:
    reader = PdfReader(io.BytesIO(content), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise ToolError("The PDF is locked with a password. Save it without one first.")
    found = Writing()
    count = 0
    for page in reader.pages:
        if count >= MOST_PAGES or found.is_cut:
            found.is_cut = True
            break
        count += 1
        text = _GAPS.sub(" ", _HYPHENS.sub(r"\1", page.extract_text()))
        for paragraph in re.split(r"\n[ \t]*\n", text):
            found.paragraph(paragraph, count)
    about = reader.metadata
    return found.done("pdf", pages=count, title=str(about.title or "") if about else "")
