"""Documents of every format: read as what they are, cut where they pause, and bounded."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools import papers
from toolgate.errors import ToolError
from toolgate.tools.documents import block, docx
from toolgate.tools.documents.reading import read

pytest.importorskip("pypdf", reason="skipped: no tools")
from toolgate.tools.documents import pdf

pytestmark = [pytest.mark.req("T3")]


def _read(name: str, content: bytes | str) -> dict[str, Any]:
    raw = content.encode() if isinstance(content, str) else content
    return read(name, raw)


def _places(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["heading"], one["text"]) for one in found["passages"]]


def test_markdown_has_headings_of_two_kinds_and_code_has_none() -> None:
    text = "Title\n=====\nA\n\n## One ##\nB\n\n```\n# no\n```\n\n#not\n\nTwo\n---\nC\n# Three\nD"
    assert _places(_read("a.md", text)) == [
        ("Title", "A"),
        ("Title > One", "B\n\n```\n# no\n```\n\n#not"),
        ("Title > Two", "C"),
        ("Three", "D"),
    ]
    # The same as plain text has no headings.
    assert {heading for heading, _ in _places(_read("a.txt", text))} == {""}


def test_html_is_what_a_reader_sees() -> None:
    page = (
        "<title>T &amp; U</title><h1>One</h1><p>a<b>b</b> c<br>d</p><script>evil()</script>"
        "<div hidden>no<div>never</div>no</div><ul><li>x</li><li>y</li></ul>"
        "<h2>Two</h2><table><tr><td>1</td><td>2</td></tr></table><!-- comment -->"
        '<p style="visibility: hidden">no</p><pre>  kept\n  so</pre>'
    )
    found = _read("a.html", page)
    assert found["title"] == "T & U"
    assert _places(found) == [
        ("One", "ab c\nd\n\nx\n\ny"),
        ("One > Two", "1 | 2\n\nkept\n  so"),
    ]
    assert _read("page", "<!DOCTYPE html><p>by its content</p>")["kind"] == "html"


def test_a_docx_has_headings_tables_and_no_text_twice() -> None:
    twice = (
        '<w:p><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-'
        'compatibility/2006"><mc:Choice><w:t>once</w:t></mc:Choice><mc:Fallback><w:t>twice</w:t>'
        "</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    gone = "<w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>"
    body = (
        papers.paragraph("Deed", "Titel")
        + papers.paragraph("Price", "berschrift1")
        + papers.paragraph("Ten & more", "")
        + papers.row("a", "b")
        + papers.paragraph("Part", "Heading2")
        + twice
        + gone
    )
    found = _read("a.docx", papers.docx(body))
    assert found["title"] == "Deed"
    assert _places(found) == [("Price", "Ten & more\n\na | b"), ("Price > Part", "once")]


def test_a_pdf_has_pages() -> None:
    found = _read("a.pdf", papers.pdf(["The first.\nIt is split-\nted.", "The second."]))
    assert [(one["page"], one["text"]) for one in found["passages"]] == [
        (1, "The first.\nIt is splitted."),
        (2, "The second."),
    ]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.docx", papers.laughs(), "entities"),
        ("a.docx", papers.docx_of("<!DOCTYPE x><a/>".encode("utf-16")), "document type"),
        ("a.docx", papers.docx_of(b"<a>" * 1_000), "damaged"),
        ("a.docx", papers.docx_of(b"no xml"), "damaged"),
        ("a.docx", papers.docx(papers.paragraph("x"))[:-40], "archive"),
        ("a.docx", papers.docx("<w:p/>"), "no text"),
        ("a.pdf", papers.pdf(["x"])[:60], "damaged"),
        ("a.pdf", b"%PDF-1.4\n1 0 obj<</Type/Pages/Kids[1 0 R]>>endobj", "damaged"),
        ("a.pdf", papers.pdf([""]), "no text"),
        ("a.pdf", papers.locked(papers.pdf(["x"]), "secret"), "password"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "no text"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(
    name: str, content: bytes, says: str
) -> None:
    with pytest.raises(ToolError, match=says):
        _read(name, content)


def test_a_pdf_that_only_claims_a_lock_is_read() -> None:
    assert _read("a.pdf", papers.locked(papers.pdf(["A page."]), ""))["pages"] == 1


def test_there_is_an_end_to_every_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MOST_PAGES", 3)
    found = _read("a.pdf", papers.pdf(["A page."], claim=10_000, repeat=5))
    assert (found["pages"], found["is_cut"]) == (3, True)
    monkeypatch.setattr(block, "MOST_CHARACTERS", 10)
    assert _read("a.txt", "12345\n\n67890abc")["passages"][0]["text"] == "12345\n\n67890"
    monkeypatch.setattr(docx, "_MOST_BYTES", 1_000)
    with pytest.raises(ToolError, match="unpacks to more"):
        _read("a.docx", papers.docx(papers.paragraph("x" * 1_000)))


@pytest.mark.parametrize(
    "piece", ["<p a='", "<div>", "<!--", "<![CDATA[", "<script>", "&#", "<", "<p 'a\">"]
)
def test_markup_without_an_end_takes_no_longer_than_its_length(piece: str) -> None:
    # What looks for the end again at each of them takes hours.
    found = _read("a.html", f"<p>before</p>{piece * 20_000}")
    assert found["passages"][0]["text"].startswith("before")


@given(text=st.text(alphabet=st.sampled_from("<>/!-='\"& apbr\n"), max_size=60))
def test_any_markup_is_read(text: str) -> None:
    found = _read("a.html", f"<p>before</p>{text}")
    assert found["passages"][0]["text"].startswith("before")


@settings(max_examples=40, deadline=None)
@given(
    text=st.lists(
        st.text(alphabet=st.sampled_from("ab.!? \n"), min_size=1, max_size=900), max_size=6
    )
)
def test_no_word_is_lost_and_no_passage_is_long(text: list[str]) -> None:
    whole = "\n\n".join([*text, "end"])
    found = [one["text"] for one in _read("a.txt", whole)["passages"]]
    assert "".join("".join(found).split()) == "".join(whole.split())
    assert all(len(one) <= 810 for one in found)
