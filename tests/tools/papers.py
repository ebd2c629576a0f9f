"""Documents for tests, made by hand: as a word processor or a printer would, and as a villain."""

import io
import zipfile
from collections.abc import Sequence
from xml.sax.saxutils import escape

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STYLES = (
    f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/>'
    '</w:style><w:style w:styleId="Titel"><w:name w:val="Title"/></w:style></w:styles>'
)


_FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf(pages: Sequence[str], *, claim: int | None = None, repeat: int = 1) -> bytes:
    """A page a text. `claim`: how many there are said to be; `repeat`: each stands so often."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids: list[str] = []
    for text in pages:
        number = len(objects) + 1
        kids += [f"{number} 0 R"] * repeat
        shown = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        lines = " ".join(f"({line}) Tj T*" for line in shown.split("\n"))
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {lines} ET"
        size = "/Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]"
        objects += [
            f"<< {size} /Contents {number + 1} 0 R /Resources << /Font << /F1 {_FONT} >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    count = len(kids) if claim is None else claim
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {count} >>"
    out = b"%PDF-1.4\n"
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + end.encode()


def docx(body: str, *, before: str = "") -> bytes:
    """One with that inside its body; `before` stands in front of all XML."""
    document = f'{before}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    return zipped({"word/document.xml": document.encode(), "word/styles.xml": _STYLES.encode()})


def zipped(parts: dict[str, bytes]) -> bytes:
    """An archive of these."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """One of a DOCX."""
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{about}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def row(*cells: str) -> str:
    """One of a table."""
    inner = "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in cells)
    return f"<w:tbl><w:tr>{inner}</w:tr></w:tbl>"


def bomb(megabytes: int) -> bytes:
    """A small archive with a large body."""
    text = b"<w:t>" + b"A" * (megabytes * 1024 * 1024) + b"</w:t>"
    return docx_of(text)


def docx_of(raw: bytes) -> bytes:
    """One whose body is these bytes."""
    return zipped({"word/document.xml": raw})


def laughs() -> bytes:
    """Entities of entities: nine lines that would be a thousand million words."""
    lines = ['<!ENTITY a0 "ha">']
    lines += [f'<!ENTITY a{at} "{f"&a{at - 1};" * 10}">' for at in range(1, 10)]
    head = f"<?xml version='1.0'?><!DOCTYPE w [{''.join(lines)}]>"
    return docx("<w:p><w:r><w:t>&a9;</w:t></w:r></w:p>", before=head)


def locked(content: bytes, password: str) -> bytes:
    """A PDF that opens with a password only."""
    from pypdf import PdfWriter  # noqa: PLC0415  an extra

    writer = PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
