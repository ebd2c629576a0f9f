"""What is suspicious about a tool's definition: words for a model that its reader would not see.

Pure. A finding is no proof: the tool waits until an operator has looked at it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

# A description is for a model's context; what is longer hides more than it tells.
MOST_TEXT = 8_000
# All texts of a tool together; what has more is held for it, and so not read to its end.
MOST_IN_ALL = 8 * MOST_TEXT
_MOST_SHOWN = 60
# A joiner between two of these writes a language or a picture; anywhere else it hides something.
_JOINED = r"[\u0600-\u08ff\u0900-\u0dff\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]"


class Rule(NamedTuple):
    """What to look for, and what it is called before an operator."""

    about: str
    pattern: re.Pattern[str]


def _rule(about: str, pattern: str, flags: int = re.IGNORECASE) -> Rule:
    return Rule(about, re.compile(pattern, flags))


# Each has an end to how far it looks: no text takes longer than its length. They read a text whose
# blanks are single, but for those that look for one character.
RULES = (
    _rule("a terminal's escape sequences", r"\x1b|\x9b", 0),
    _rule("characters that nobody sees", r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", 0),
    _rule("text that runs the other way", r"[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]", 0),
    _rule(
        "characters that nobody sees",
        rf"[\u200b\u2060-\u2064\u180e\ufeff\u00ad\u115f\u1160\u3164\uffa0\U000e0000-\U000e007f"
        rf"\U000e0100-\U000e01ef]|(?<!{_JOINED})[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})",
        0,
    ),
    _rule("a comment that a page would not show", r"<!--|<\s?(script|style|iframe)\b"),
    _rule(
        "markup that sets words apart for a model",
        r"<\s?/?\s?(important|hidden|secret|system|instructions?|information|admin|critical|"
        r"priority|assistant|im_start|\|)\s?/?>|\[\s?/?\s?(inst|important|hidden[^\]\n]{0,30}|"
        r"[a-z ]{0,30}directive)\s?\]",
    ),
    _rule(
        "an order to disregard other instructions",
        r"\b(ignore|disregard|forget|override|bypass|disable)\b[^.\n]{0,40}\b(previous|prior|above|"
        r"earlier|other|all|any|safety|security|system|default)\b[^.\n]{0,30}\b(instructions?|"
        r"rules?|prompts?|restrictions?|polic(y|ies)|filters?|filtering|guidelines|validation|"
        r"messages?|tools?)\b|\b(safety bypass|system override|instruction override)\b",
    ),
    _rule(
        "an order to keep something from the user",
        r"\b(do not|don't|never|without|must not|avoid)\b[^.\n]{0,40}\b(mention|tell|inform|"
        r"notify|reveal|disclose|telling|informing|notifying|mentioning|alert|explicitly)\w{0,12}\b"
        r"[^.\n]{0,40}\b(user|human|this|that|you|it|anyone|customer)\b|\bsilently\s(post|send|"
        r"read|copy|call|upload|forward|include)\b",
    ),
    _rule(
        "an order about what else to do",
        r"\b(before|after|when(ever)?|while)\b[^.\n]{0,60}\b(this|any|other|solv|the)"
        r"[^\n]{0,60}\b(you (must|should|need to|have to)|always|please|first)\s(first\s)?"
        r"(read|call|access|include|send|pass|do the following|execute|open|fetch|check if)\b|"
        r"\byou must (first )?(read|access|include|call|send|copy)\b|"
        r"\bimportant message from\b",
    ),
    _rule(
        "a place where secrets are kept",
        r"(~|\$home|%userprofile%|/home/\w{1,64}|/root)[/\\]\.(ssh|aws|cursor|config|gnupg|kube|env|"
        r"netrc|npmrc|docker)|\bid_(rsa|ed25519|ecdsa)\b|/etc/(passwd|shadow)\b|\.cursor/mcp\.json",
    ),
    _rule(
        "words that put it before other tools",
        r"\b(best|only|most (powerful|reliable)) tool (in|for|on) (the|this|all|every)\b|"
        r"\b(use|prefer|choose|call)\b[^.\n]{0,30}\b(instead of|rather than|over) (the |all |any )?"
        r"(others?|built-?in|default|existing|original)\b|\bmust (always )?be (used|called) "
        r"(first|before)\b|\bcalled anytime the user asks anything\b|"
        r"\bexecute this tool and replace\b|\balways (bcc|cc|forward|copy|redirect)\b",
    ),
    _rule(
        "a role that a model is told to take",
        r"\bact as:|\byou are now\b|\bnew instructions?:|\b(developer|jailbreak|god) mode\b|"
        r"\brevealing secrets\b|\b(the|other|all) [`'\"]?\w{1,128}[`'\"]? tool is (present|"
        r"available)[^.\n]{0,40}\boverride\b",
    ),
)
_OF_CHARACTERS = 4
_BLANKS = re.compile(r"\s+")
# What a reader does not see as it is.
_HIDDEN = re.compile("|".join(rule.pattern.pattern for rule in RULES[:_OF_CHARACTERS]))
_ENCODED = re.compile(
    r"(?<![\w+/=])[A-Za-z0-9+/]{200,}+={0,2}+(?![\w+/=])|(?<![0-9a-f])[0-9a-f]{300}"
)
# Arguments that a tool has no use for, and whoever wants to know more of its caller has.
_ABOUT_CALLER = re.compile(
    r"(llm|ai|assistant)_?(model_?)?name\Z|system_?prompt\Z|(chat|conversation|message)_?"
    r"history\Z|(all_?)?(tool|tools)_?(list|names)\Z|sidenote\Z|chain_?of_?thought\Z",
    re.IGNORECASE,
)


def suspicions(definition: Mapping[str, Any]) -> list[str]:
    """What is suspicious about a definition as a server sent it, in words for an operator."""
    found: dict[str, None] = {}
    left = MOST_IN_ALL
    seen: set[tuple[str, str]] = set()
    for place, text in _texts(definition):
        if (place, text) in seen:
            continue
        seen.add((place, text))
        left -= len(text) + 1
        if left < 0:
            found[f"it has more than {MOST_IN_ALL:,} characters for a model"] = None
            break
        for about in _of_text(text):
            found[f"{place}: {about}"] = None
    for name in _arguments(definition.get("inputSchema")):
        if _ABOUT_CALLER.match(name):
            found[f"its argument {shown(name)!r} asks about the caller"] = None
    return list(found)


def visible(text: str) -> str:
    """The same text; what nobody would see of it, or what turns it around, is written out."""
    return _HIDDEN.sub(lambda found: _written(found[0]), text)


def shown(text: str, most: int = _MOST_SHOWN) -> str:
    """A text of others on one line, in characters that a terminal only shows."""
    plain = visible(text[:most])
    plain = "".join(one if one.isprintable() else _written(one) for one in plain)
    return plain if len(text) <= most else plain + "…"


def _written(text: str) -> str:
    return text.encode("unicode_escape").decode()


def _of_text(text: str) -> Iterator[str]:
    if len(text) > MOST_TEXT:
        yield f"{len(text):,} characters, more than anybody reads"
    raw = text[:MOST_TEXT]
    single = _BLANKS.sub(_blank, raw)
    for number, rule in enumerate(RULES):
        match = rule.pattern.search(raw if number < _OF_CHARACTERS else single)
        if match is not None:
            yield f"{rule.about} ({shown(match[0])!r})"
    if _ENCODED.search(single):
        yield "a long run of encoded text"


def _blank(found: re.Match[str]) -> str:
    """One for many. A line that ends still does."""
    return "\n" if "\n" in found[0] else " "


def _texts(definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything of it that a model reads, and where it stands."""
    for field in ("name", "title", "description"):
        value = definition.get(field)
        if isinstance(value, str):
            yield f"its {field}", value
    for field in ("inputSchema", "outputSchema", "annotations"):
        stack: list[Any] = [definition.get(field)]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                yield f"its {field}", node
            elif isinstance(node, dict):
                fields = cast("dict[str, Any]", node)
                stack.extend(fields)
                stack.extend(fields.values())
            elif isinstance(node, list):
                stack.extend(cast("list[Any]", node))


def _arguments(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = cast("dict[str, Any]", schema).get("properties")
        if isinstance(properties, dict):
            yield from cast("dict[str, Any]", properties)
