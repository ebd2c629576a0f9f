"""Pages as text: what their readers see is there, untouched, and what is hidden is not."""

import json
from html import escape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("selectolax", reason="skipped: no tools")
from toolgate.tools.web import page as reading
from toolgate.tools.web.charset import decoded
from toolgate.tools.web.invisible import clean
from toolgate.tools.web.page import page
from toolgate.tools.web.sections import headings_of, sections

pytestmark = pytest.mark.req("T1", "T4")
DATA = Path(__file__).parents[3] / "shared" / "data" / "security"
has_data = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
SECRET = "nobody-sees-this"  # noqa: S105  a mark
STYLES = (
    *("display:none", "DISPLAY : NONE !important", "color:red;display:none;", "d\\69splay:none"),
    *("display:/* x */none", "visibility:hidden", "visibility: collapse", "opacity:0"),
    *("opacity: 0.0;", "font-size:0", "font-size: 0px; color: red", "text-indent:-9999px"),
    *("position:absolute;left:-10000px", "color:transparent", "color: rgba(0,0,0,0)"),
    *("clip: rect(0,0,0,0)", "clip-path: inset(100%)", "transform: scale(0)"),
    *("height:0;overflow:hidden", "max-height: 0px; overflow-y: hidden", "width:0;overflow:clip"),
    *("color:white;background:white", "background-color: #fff; color: #fff"),
)
SEEN = (
    *("display:block", "opacity:0.5", "font-size:10px", "left:-5px", "color:white"),
    *("background-color:transparent", "margin-left:-20px", "height:0", "overflow:hidden"),
    *("color:white;background:black", "border-left: -9999px", "transform:scale(0.5)"),
)
HIDING = (
    *(f'<p style="{style}">{SECRET}</p>' for style in STYLES),
    *(f'<div style="{STYLES[0]}"><div><p>{SECRET}</div><p>{SECRET}</div>',),
    *(f"<p hidden>{SECRET}</p>", f"<div hidden=until-found>{SECRET}</div>"),
    *(f"<!-- {SECRET} -->", f"<p>{'<!--'}{SECRET}--></p>", f"<script>{SECRET}</script>"),
    *(f"<template>{SECRET}</template>", f"<noscript>{SECRET}</noscript>"),
    *(f"<style>{SECRET}</style>", f"<dialog>{SECRET}</dialog>", f"<iframe>{SECRET}</iframe>"),
    *(f'<input type=hidden value="{SECRET}">', f'<p title="{SECRET}">x</p>'),
    *(f'<meta name=description content="{SECRET}">', f"<svg><text>{SECRET}</text></svg>"),
    *(f"<style>.a{{display:none}}</style><p class=a>{SECRET}</p>",),
    *(f"<style>/* */ p , #b {{opacity:0}}</style><div id=b>{SECRET}</div>",),
    *(f"<select><option>{SECRET}</select>", f"<object>{SECRET}</object>"),
)


def read(html: str, **how: Any) -> dict[str, Any]:
    return page(html=html, url="https://example.com/", **{"navigation": True, "plain": False} | how)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("html", HIDING)
def test_what_is_hidden_is_not_there(html: str, plain: bool) -> None:  # noqa: FBT001
    found = read(f"<div>before</div>{html}<div>after</div>", plain=plain)
    assert SECRET not in json.dumps(found)
    assert "before" in found["text"]
    assert "after" in found["text"]


@pytest.mark.parametrize("style", SEEN)
def test_what_is_only_styled_is_there(style: str) -> None:
    assert read(f'<p style="{style}">{SECRET}</p>')["text"] == SECRET
    assert read(f"<style>p{{{style}}}</style><p>{SECRET}</p>")["text"] == SECRET


def test_without_the_looking_it_would_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control."""

    def shown(_tag: str, _attributes: object) -> bool:
        return False

    def none(_tree: object) -> set[int]:
        return set()

    monkeypatch.setattr(reading, "is_hidden", shown)
    monkeypatch.setattr(reading, "hidden_by_rules", none)
    assert sum(SECRET in read(html)["text"] for html in HIDING) >= len(STYLES) + 3


def _texts() -> list[str]:
    found: list[str] = []
    for name, key in (("agentdojo_injections", "text"), ("tool_poisoning", "description")):
        items = json.loads((DATA / f"{name}.json").read_text("utf-8"))["items"]
        found += [one[key] for one in items if one.get(key, "").strip()]
    return found


@has_data
def test_real_injections_are_data_where_they_are_seen_and_gone_where_they_are_not() -> None:
    texts = _texts()
    assert len(texts) > 250
    for text in texts:
        inside = escape(text)
        found = read(
            f"<pre>{inside}</pre><div style='display:none'>{SECRET} {inside}</div>"
            f"<!-- {SECRET} {inside.replace('--', '')} --><p hidden>{SECRET} {inside}</p>",
            plain=True,
        )["text"]
        assert SECRET not in found
        assert found.split() == clean(text).split(), "as it was, and once"


@has_data
def test_a_paragraph_of_it_keeps_every_word() -> None:
    for text in _texts():
        found = read(f"<p>{escape(text)}</p>")["text"]
        assert found.split() == clean(text).replace("\u00a0", " ").split()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\u200bb\ufeffc\u2060d\u00ade", "abcde"),
        ("x\U000e0049\U000e0067\U000e006e", "x"),
        ("\u202etxet", "txet"),
        ("a\u200d\u200d\u200c\u200db", "ab"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None),
        ("Family \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f", None),
        ("plain text, \t and\nlines", None),
    ],
)
def test_characters_that_nobody_sees_go_and_those_of_scripts_stay(
    text: str, left: str | None
) -> None:
    assert clean(text) == (text if left is None else left)


_WORDS = st.text("abcdefghij", min_size=1, max_size=6)
_TAGS = ("div", "p", "ul", "li", "b", "a", "span", "blockquote", "section", "h2", "td", "code")
_TREES = st.recursive(
    _WORDS,
    lambda inner: st.tuples(st.sampled_from(_TAGS), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=25,
)


def _written(tree: Any, words: list[str]) -> str:
    if isinstance(tree, str):
        words.append(tree)
        return f" {tree} "
    tag, inner = tree
    return f"<{tag}>{''.join(_written(one, words) for one in inner)}</{tag}>"


@settings(max_examples=100, deadline=None)
@given(tree=_TREES)
def test_every_word_of_a_page_is_told_once_and_in_order(tree: Any) -> None:
    words: list[str] = []
    html = _written(tree, words)
    signs = str.maketrans(dict.fromkeys("*`>#-|[]()", " "))
    assert read(html, plain=True)["text"].translate(signs).split() == words
    assert read(html)["text"].translate(signs).split() == words


_SOUP = st.lists(
    st.one_of(
        st.sampled_from([f"<{tag}>" for tag in (*_TAGS, "table", "tr", "pre", "ol", "br", "img")]),
        st.sampled_from([f"</{tag}>" for tag in (*_TAGS, "table", "tr", "pre", "ol", "body")]),
        st.sampled_from(["<td colspan=99999>", "<ol start=x>", "<a href=//[>", "<base href=//[>"]),
        st.text(max_size=8),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(soup=_SOUP)
def test_no_page_is_too_broken(soup: list[str]) -> None:
    found = read("".join(soup), navigation=False)
    text = found["text"]
    parts = sections(text, found["headings"])
    assert "".join(text[one.start : one.end] for one in parts).strip() == text.strip()
    json.dumps(found).encode()


def test_headings_in_code_are_none() -> None:
    text = "# One\n\n```\n# no\n~~~\n```\n## Two ##\n~~~~\n# no\n~~~\n# no\n~~~~\n### Three!\n#no"
    found = headings_of(text)
    assert [(one["level"], one["text"], one["anchor"]) for one in found] == [
        (1, "One", "one"),
        (2, "Two", "two"),
        (3, "Three!", "three"),
    ]
    assert all(text[one["at"] :].startswith("#" * one["level"]) for one in found)


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(min_codepoint=0x20, codec="utf-8"), min_size=1, max_size=50))
def test_text_is_read_as_it_was_written(text: str) -> None:
    for charset in ("utf-8", "utf-16-le", "gb18030"):
        raw = text.encode(charset)
        if not raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\0\0\xfe\xff")):
            assert decoded(raw, f"text/plain; charset={charset}") == (text, charset) or (
                "\x7f" in text
            )
    assert decoded(b"\xff\xfe" + text.encode("utf-16-le")) is not None


@pytest.mark.parametrize(
    ("body", "kind", "is_text"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0", "", False),
        (bytes(range(256)), "text/plain", False),
        (b"", "text/plain", True),
        (b"caf\xc3", "text/plain", True),
        (b"x", "text/plain; charset=idna", True),
        (b"x", "text/plain; charset=utf-16-be", True),
    ],
)
def test_what_is_no_text_is_not_read_as_one(body: bytes, kind: str, is_text: bool) -> None:  # noqa: FBT001
    assert (decoded(body, kind) is not None) is is_text
