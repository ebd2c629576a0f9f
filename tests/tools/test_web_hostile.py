"""What strangers write is read in time that grows with its length: on the loop nothing else is."""

import pytest

pytest.importorskip("selectolax", reason="skipped: no tools")
from toolgate.tools.web.answer import shown
from toolgate.tools.web.charset import decoded
from toolgate.tools.web.fetch_wikipedia import _HEADING, _marked  # pyright: ignore[reportPrivateUsage]
from toolgate.tools.web.fetching import Fetched, written
from toolgate.tools.web.sections import headings_of

pytestmark = pytest.mark.req("T1", "T4")
# Twice as much for each character, or its square, would go on for hours.
LONG = 300_000


def fetched(text: str) -> Fetched:
    body = text.encode()
    return Fetched("http://a/", 200, {}, body, False, len(body), "")  # noqa: FBT003


@pytest.mark.parametrize(
    "text",
    [
        "<!---->" * LONG + "x",
        "<!-- -->\n" * LONG + "<htm",
        "<!--" * LONG,
        " " * LONG + "x",
        "<!--" + "-->" * LONG,
        "<!doctype" + " " * LONG + "x",
    ],
)
def test_what_is_like_a_page_and_is_none_is_known_at_once(text: str) -> None:
    assert shown(fetched(text)).kind == "text"


@pytest.mark.parametrize(
    "text",
    [
        "<html>",
        " <!-- a -- b --> <!----><!DOCTYPE html>x",
        "<!-- > -->\n<BODY class=a>",
        "<!---->" * 1_000 + "<head>",
    ],
)
def test_a_page_is_known_as_one(text: str) -> None:
    assert shown(fetched(text)).kind == "html"


@pytest.mark.parametrize("blank", [" ", "\t", "#", "# ", "\u00a0"])
def test_headings_are_found_in_one_pass(blank: str) -> None:
    found = headings_of(f"# a{blank * LONG}b\n## Two ##  \n### C# #\n# C#\n#### ####\n")
    assert [one["text"] for one in found[1:]] == ["Two", "C#", "C#", "####"]
    assert _HEADING.sub(_marked, f"== a{blank * LONG}b\n=== c = d ===  \n") == (
        f"== a{blank * LONG}b\n### c = d\n"
    )


def test_headings_of_a_wiki_become_markdowns() -> None:
    text = "== A ==\nx\n===B===\n==C=\n======\n== D == e\n"
    assert _HEADING.sub(_marked, text) == "## A\nx\n### B\n==C=\n======\n== D == e\n"


def test_an_address_is_written_in_one_pass() -> None:
    assert written(" http://a/" + " " * LONG + "x\u00e9 \n").endswith(" x%C3%A9")
    assert written("h" * LONG) == "h" * LONG
    assert written("\nhttp://\u00e9.example/\u00fc?q ") == "http://\u00e9.example/%C3%BC?q"


def test_the_charset_of_a_page_is_found_in_its_beginning() -> None:
    hostile = b"<meta charset =" * 200 + b" " * 100_000 + b"<"
    assert decoded(hostile) is not None
    assert decoded(b"<meta charset = ' koi8-r'>\xc1") == (
        "<meta charset = ' koi8-r'>\u0430",
        "koi8-r",
    )
