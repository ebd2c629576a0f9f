"""What a reader of a page sees: what is hidden in it is no text, and what is around it is clutter.

A page can show text to programs that its readers never see. The ways that are known are looked
for: attributes, styles, and rules of the page's own style sheets. It is no proof of the rest.
"""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

# Never text, whatever is in them.
UNSEEN = frozenset(
    "script style template noscript svg object iframe canvas audio video head select input "  # noqa: SIM905  a line of words
    "textarea button datalist map param embed noframes frameset title".split()
)
_CLUTTER = (
    "nav, footer, aside, menu, [role=navigation], [role=banner], [role=contentinfo], "
    "[role=complementary], [role=search], [role=dialog], .sidebar, .breadcrumb, .breadcrumbs, "
    ".headerlink, .mw-editsection, .toc, #toc, .navbox, .noprint, .cookie-banner, .skip-link"
)
_CENTRE = ("main, [role=main]", "article")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?", re.IGNORECASE)
_NOTHING = r"0(?:\.0*)?(?:px|pt|em|rem|%|vh|vw)?\s*(?:!|;|\Z)"
_FAR = r"-\s*(?:\d{4,}|999)(?:\.\d*)?(?:px|pt|em|rem|%|vh|vw)"
_HIDING = re.compile(
    r"(?<![-\w])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    rf"|(?:opacity|font-size|zoom)\s*:\s*{_NOTHING}|font\s*:\s*0"
    rf"|(?:text-indent|left|right|top|bottom|margin-left|margin-top)\s*:\s*{_FAR}"
    r"|color\s*:\s*(?:transparent|rgba\([^)]*,\s*0(?:\.0*)?\s*\))"
    r"|clip\s*:\s*rect\(\s*(?:0|1)(?:px)?[\s,]|clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(0)"
    r"|transform\s*:\s*scale[xy]?\(\s*0(?:\.0*)?\s*[,)]|content-visibility\s*:\s*hidden)",
    re.IGNORECASE,
)
_FLAT = re.compile(rf"(?<![-\w])(?:max-)?(?:height|width)\s*:\s*{_NOTHING}", re.IGNORECASE)
_CLIPPED = re.compile(r"(?<![-\w])overflow(?:-[xy])?\s*:\s*(?:hidden|clip)", re.IGNORECASE)
_COLOURS = re.compile(
    r"(?<![-\w])(color|background(?:-color)?)\s*:\s*([^;!]{1,40}?)\s*(?:!|;|\Z)", re.IGNORECASE
)
_RULE = re.compile(r"([^{}@;]{1,400})\{([^{}]{0,2000})\}")
_NESTED = re.compile(r"@[^{};]{0,400}\{(?:[^{}]{0,4000}\{[^{}]{0,4000}\})*[^{}]{0,4000}\}")
_MOST_RULES = 200
# Pages hide themselves until a script has run.
_WHOLE = frozenset({"html", "body", "main"})


def hides(style: str) -> bool:
    """Whether declarations of a style hide what has it."""
    if not style:
        return False
    plain = _ESCAPE.sub(_unescaped, _COMMENT.sub("", style))
    if _HIDING.search(plain) or (_FLAT.search(plain) and _CLIPPED.search(plain)):
        return True
    colours = {name.lower()[:5]: value.lower() for name, value in _COLOURS.findall(plain)}
    return len(colours) == 2 and len(set(colours.values())) == 1


def is_hidden(tag: str, attributes: dict[str, str | None]) -> bool:
    """By what an element says of itself."""
    if "hidden" in attributes or (tag == "dialog" and "open" not in attributes):
        return True
    if attributes.get("class") == "katex-html":
        # The same formula again, in pieces.
        return True
    return hides(attributes.get("style") or "")


def hidden_by_rules(tree: LexborHTMLParser) -> set[int]:
    """Elements that a style sheet in the page hides, by their identity."""
    found: set[int] = set()
    for selector in _hiding_selectors(tree):
        try:
            nodes = tree.css(selector)
        except SelectolaxError:
            continue
        found.update(node.mem_id for node in nodes if node.tag not in _WHOLE)
    return found


def clutter(tree: LexborHTMLParser) -> set[int]:
    """Menus, side bars, headers and footers of the page, by their identity."""
    found = {node.mem_id for node in tree.css(_CLUTTER) if node.tag not in _WHOLE}
    inner = {node.mem_id for node in tree.css("main header, article header, [role=main] header")}
    return found | {node.mem_id for node in tree.css("header") if node.mem_id not in inner}


def centre(tree: LexborHTMLParser) -> LexborNode | None:
    """The element that holds what the page is about, where there is exactly one."""
    for selector in _CENTRE:
        nodes = tree.css(selector)
        if len(nodes) == 1:
            return nodes[0]
    return tree.body


def _hiding_selectors(tree: LexborHTMLParser) -> Iterator[str]:
    count = 0
    for sheet in tree.css("style"):
        text = _NESTED.sub("", _COMMENT.sub("", sheet.text()))
        for selectors, style in _RULE.findall(text):
            # What hovers or comes first is hidden at times only.
            if ":" in selectors or "*" in selectors or not hides(style):
                continue
            count += 1
            if count > _MOST_RULES:
                return
            yield selectors.strip()


def _unescaped(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return chr(code) if 0 < code < 0x110000 else ""
