"""A page as text: its HTML, read as browsers do, written as Markdown. It runs in a worker."""

import re
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from toolgate.tools.web.invisible import clean
from toolgate.tools.web.markdown import Markdown
from toolgate.tools.web.seen import UNSEEN, centre, clutter, hidden_by_rules, is_hidden

_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math "  # noqa: SIM905  a line of words
    "nobr q rp rt ruby s samp small span strike strong sub sup time tt u var wbr annotation mi mn "
    "mo mrow msup msub mfrac semantics".split()
)
_HEADING = re.compile(r"h([1-6])\Z")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight|brush:)[-: ]([\w+#.-]{1,30})")
# A table with one of these is there for its layout.
_BLOCKS = "table, h1, h2, h3, h4, h5, h6, pre, ul, ol, blockquote, form, article, section"
_SIGNS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`", "kbd": "`", "samp": "`"}
_MOST_LINKS = 500
_LONGEST_LINK = 2_000
_MOST_SPAN = 20
_ENOUGH = 200


class _Open(NamedTuple):
    """Something within a line that is not over: where it began, and where it leads."""

    start: int
    blocks: int
    url: str
    is_code: bool


class _Writer:
    """Walks through what is seen. Nothing is recursive: pages are nested as deep as they like."""

    def __init__(self, base: str, skipped: set[int], *, plain: bool) -> None:
        self.text = Markdown(plain=plain)
        self.links: dict[str, str] = {}
        self._base = base
        self._skipped = skipped
        self._open: list[_Open] = []
        self._pre: list[str] | None = None
        self._language = ""
        self._heading = 0
        self._anchor = ""
        self._row: list[str] = []
        self._rows: list[list[str]] | None = None

    def walk(self, root: LexborNode) -> None:
        """All of it, in order."""
        waiting: list[tuple[LexborNode, dict[str, str | None] | None]] = [(root, None)]
        while waiting and not self.text.is_full:
            node, leaving = waiting.pop()
            tag = node.tag or ""
            if leaving is not None:
                self._leave(tag, leaving)
            elif tag == "-text":
                self._say(node.text_content or "")
            elif not tag.startswith("-") and tag not in UNSEEN:
                attributes = node.attributes
                if node.mem_id in self._skipped or is_hidden(tag, attributes):
                    continue
                self._enter(tag, attributes, node)
                waiting.append((node, attributes))
                child = node.last_child
                while child is not None:
                    waiting.append((child, None))
                    child = child.prev
        self.text.end()

    def _say(self, text: str) -> None:
        text = clean(text)
        if self._pre is not None:
            self._pre.append(text)
        else:
            self.text.put(_SPACE.sub(" ", text))

    def _enter(self, tag: str, attributes: dict[str, str | None], node: LexborNode) -> None:
        text = self.text
        if self._pre is not None:
            if tag == "br":
                self._pre.append("\n")
            elif tag == "code" and not self._language:
                self._language = _language(attributes)
            return
        if tag == "br":
            text.put(" " if text.is_cell else "\n")
        elif tag == "img":
            self._picture(attributes)
        elif tag in _INLINE:
            if tag == "a" or tag in _SIGNS:
                url = self._address(attributes.get("href") or "") if tag == "a" else ""
                is_code = _SIGNS.get(tag) == "`"
                self._open.append(_Open(len(text.pieces), text.blocks, url, is_code))
        elif tag in {"td", "th"}:
            self._cell()
        else:
            text.end()
            self._begin(tag, attributes, node)

    def _begin(self, tag: str, attributes: dict[str, str | None], node: LexborNode) -> None:
        text = self.text
        if tag == "pre" and not text.is_cell:
            self._pre, self._language = [], _language(attributes)
        elif tag in {"ul", "ol"}:
            start = attributes.get("start") or "1"
            number = int(start) if start.isascii() and start.isdecimal() and len(start) < 9 else 1
            text.open_list(number if tag == "ol" else None)
        elif tag == "li":
            text.open_item()
        elif tag == "blockquote":
            text.quotes += 1
        elif tag == "hr" and not text.is_cell:
            text.rule()
        elif tag == "table" and self._rows is None and not _is_layout(node):
            self._rows = []
        elif found := _HEADING.match(tag):
            self._heading = int(found[1])
            self._anchor = _anchor(attributes, node)

    def _leave(self, tag: str, attributes: dict[str, str | None]) -> None:
        text = self.text
        if self._pre is not None:
            if tag == "pre":
                code, self._pre = "".join(self._pre), None
                text.code(code, self._language)
            return
        if tag in _INLINE:
            if (tag == "a" or tag in _SIGNS) and self._open:
                self._close(tag, self._open.pop())
        elif tag in {"td", "th"} and self._rows is not None:
            self._row.append(" ".join(text.taken(0).split()))
            span = attributes.get("colspan") or "1"
            if span.isascii() and span.isdecimal():
                self._row += [""] * (min(int(span[:4]), _MOST_SPAN) - 1)
            text.is_cell = False
        elif tag == "tr" and self._rows is not None:
            if any(self._row):
                self._rows.append(self._row)
            self._row = []
        elif _HEADING.match(tag) and not text.is_cell:
            text.heading(self._heading, self._anchor)
            self._heading = 0
        else:
            text.end()
            self._finish(tag)

    def _finish(self, tag: str) -> None:
        text = self.text
        if tag in {"ul", "ol"}:
            text.close_list()
        elif tag == "li":
            text.close_item()
        elif tag == "blockquote":
            text.quotes = max(0, text.quotes - 1)
        elif tag == "table" and self._rows is not None:
            rows, self._rows = self._rows, None
            text.table(rows)

    def _cell(self) -> None:
        if self._rows is None:
            self.text.end()
        else:
            self.text.pieces.clear()
            self._open.clear()
            self.text.is_cell = True

    def _close(self, tag: str, opened: _Open) -> None:
        """What stood within: with its signs, if it is still in the same line."""
        text = self.text
        if opened.blocks != text.blocks:
            if opened.url and not text.plain:
                text.put(f" ({opened.url})")
            return
        raw = "".join(text.pieces[opened.start :])
        inner = text.taken(opened.start)
        before = " " if raw[:1].isspace() else ""
        after = " " if raw[-1:].isspace() else ""
        text.put(before + self._signed(tag, inner, opened.url) + after)

    def _signed(self, tag: str, inner: str, url: str) -> str:
        if not inner:
            return ""
        if tag == "a":
            if not url:
                return inner
            inner = " ".join(inner.split())
            if len(self.links) < _MOST_LINKS:
                self.links.setdefault(url, inner[:_ENOUGH])
            if self.text.plain or self._heading or url == inner or self._is_in_code:
                return inner
            return f"[{inner}]({url})"
        sign = _SIGNS[tag]
        if self.text.plain or self._heading or sign in inner or "\n" in inner or self._is_in_code:
            return inner
        return f"{sign}{inner}{sign}"

    @property
    def _is_in_code(self) -> bool:
        return any(one.is_code for one in self._open)

    def _picture(self, attributes: dict[str, str | None]) -> None:
        shown = clean(_SPACE.sub(" ", attributes.get("alt") or "")).strip()
        url = self._address(attributes.get("src") or "")
        if shown and url and not self.text.plain:
            self.text.put(f"![{shown}]({url})")
        elif shown:
            self.text.put(shown)

    def _address(self, given: str) -> str:
        """Where a link leads, whole; nothing for one that leads to no page, or to its own."""
        given = given.strip()
        if not given or given.startswith("#") or len(given) > _LONGEST_LINK:
            return ""
        try:
            url = urljoin(self._base, given)
            if urlsplit(url).scheme not in {"http", "https", "mailto"}:
                return ""
        except ValueError:
            return ""
        return clean(url).replace(" ", "%20").replace("(", "%28").replace(")", "%29")


def page(*, html: str, url: str, navigation: bool, plain: bool) -> dict[str, Any]:
    """Title, text, headings by the character that they begin at, and links."""
    tree = LexborHTMLParser(html)
    base = tree.css_first("base[href]")
    if base is not None:
        url = _joined(url, base.attributes.get("href") or "")
    hidden = hidden_by_rules(tree)
    found = None
    if not navigation:
        found = _written(url, hidden | clutter(tree), centre(tree), plain=plain)
    if found is None or (not found.text.lines):
        found = _written(url, hidden, tree.body, plain=plain)
    text = found.text
    starts = [0]
    for line in text.lines:
        starts.append(starts[-1] + len(line) + 1)
    return {
        "title": _title(tree) or (text.headings[0].text if text.headings else ""),
        "text": "\n".join(text.lines),
        "headings": [
            {"at": starts[one.line], "level": one.level, "text": one.text, "anchor": one.anchor}
            for one in text.headings
        ],
        "links": [{"text": shown, "url": where} for where, shown in found.links.items()],
        "is_whole": not text.is_full,
    }


def _written(url: str, skipped: set[int], root: LexborNode | None, *, plain: bool) -> _Writer:
    writer = _Writer(url, skipped, plain=plain)
    if root is not None:
        writer.walk(root)
    return writer


def _language(attributes: dict[str, str | None]) -> str:
    found = _LANGUAGE.search(attributes.get("class") or "")
    return found[1] if found else ""


def _is_layout(table: LexborNode) -> bool:
    return any(one.mem_id != table.mem_id for one in table.css(_BLOCKS))


def _anchor(attributes: dict[str, str | None], node: LexborNode) -> str:
    """How the page calls a section: by its heading, by something in it, or by what holds it."""
    inner = node.css_first("a[id], span[id], a[name]")
    if inner is not None and not attributes.get("id"):
        attributes = inner.attributes
    given = attributes.get("id") or attributes.get("name")
    if not given and (around := node.parent) is not None and around.tag in {"section", "article"}:
        given = around.attributes.get("id")
    return clean(given or "")[:200]


def _title(tree: LexborHTMLParser) -> str:
    node = tree.css_first("head > title") or tree.css_first("title")
    return " ".join(clean(node.text()).split())[:300] if node is not None else ""


def _joined(url: str, base: str) -> str:
    try:
        return urljoin(url, base)
    except ValueError:
        return url
