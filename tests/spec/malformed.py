"""Tool files that must be refused, by the way in which they are wrong.

Drawn by hypothesis, the same ones every time. The test asks what is said about each, the benchmark
how long that takes.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.spec import bombs
from toolgate.spec.fields import FIELDS

Files = st.SearchStrategy[tuple[str, bytes]]
Drawn = st.SearchStrategy[Any]


class Malformed(NamedTuple):
    """A file: how it is wrong, what it is called, what it holds."""

    kind: str
    name: str
    raw: bytes


def tool(**fields: Any) -> dict[str, Any]:
    """A tool that is fine but for these fields."""
    return {"name": "pay", "description": "Pay an open invoice.", "provider": "http"} | fields


def json_file(document: Any) -> tuple[str, bytes]:
    return "tools.json", json.dumps(document).encode("utf-8", "surrogatepass")


def yaml_file(document: Any) -> tuple[str, bytes]:
    return "tools.yaml", yaml.safe_dump(document, allow_unicode=True).encode()


def written(tools: st.SearchStrategy[Any]) -> Files:
    """A list of tools in either syntax."""
    return _documents(tools.map(lambda one: {"tools": [one]}))


def _documents(drawn: st.SearchStrategy[Any]) -> Files:
    return st.one_of(drawn.map(json_file), drawn.map(yaml_file))


def _inserted(at: int, odd: bytes, name: str) -> tuple[str, bytes]:
    return name, GOOD[:at] + odd + GOOD[at:]


def _filled(fill: bytes, name: str) -> tuple[str, bytes]:
    return name, fill * (10_000_000 // len(fill))


def _tagged(fields: dict[str, Any], words: list[str]) -> dict[str, Any]:
    return tool(**fields, tags=sorted(set(words)))


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
NUMBERS = st.integers(-(10**6), 10**6)
LISTS = st.lists(WORDS, max_size=3)
OBJECTS = st.dictionaries(WORDS, WORDS, max_size=3)
NOT_A_TEXT: Drawn = st.one_of(NUMBERS, st.booleans(), st.none(), LISTS, OBJECTS)
NOT_A_FLAG: Drawn = st.one_of(NUMBERS, WORDS, st.none(), LISTS, OBJECTS)
NOT_A_LIST: Drawn = st.one_of(NUMBERS, WORDS, st.booleans(), st.none(), OBJECTS)
NOT_AN_OBJECT: Drawn = st.one_of(NUMBERS, WORDS, st.booleans(), st.none(), LISTS)
NOT_A_NUMBER: Drawn = st.one_of(WORDS, st.booleans(), st.none(), LISTS, st.integers(-(10**6), 0))
ODD_ITEMS: Drawn = st.lists(
    st.one_of(NUMBERS, st.booleans(), LISTS, OBJECTS), min_size=1, max_size=3
)

WRONG: Mapping[str, Drawn] = {
    "name": NOT_A_TEXT,
    "description": NOT_A_TEXT,
    "display_name": NOT_A_TEXT,
    "version": st.one_of(st.booleans(), st.none(), LISTS, OBJECTS),
    "category": NOT_A_TEXT,
    "categories": NOT_A_LIST | ODD_ITEMS,
    "tags": NOT_A_LIST | ODD_ITEMS,
    "input_schema": NOT_AN_OBJECT,
    "output_schema": st.one_of(NUMBERS, WORDS, st.none(), LISTS),
    "provider": NOT_A_TEXT,
    "config": NOT_AN_OBJECT,
    "enabled": NOT_A_FLAG,
    "permissions": NOT_A_LIST | ODD_ITEMS | LISTS.filter(bool),
    "side_effects": NOT_A_LIST | ODD_ITEMS | LISTS.filter(bool),
    "effect": NOT_A_TEXT | WORDS,
    "destructive": NOT_A_FLAG,
    "compensation": st.one_of(NUMBERS, st.booleans(), st.none(), LISTS, OBJECTS),
    "downstream_key": st.one_of(NUMBERS, st.booleans(), st.none(), LISTS, OBJECTS),
    "probe": st.one_of(NUMBERS, st.booleans(), st.none(), LISTS, OBJECTS),
    "requires_confirmation": NOT_A_FLAG,
    "confirmation_prompt": NOT_A_TEXT,
    "requires_approval": NOT_A_FLAG,
    "allowed_callers": NOT_A_LIST | ODD_ITEMS | LISTS,
    "idempotency_key": NOT_A_LIST | ODD_ITEMS,
    "timeout": NOT_A_NUMBER | st.just(10**400) | st.just(86_401),
    "retry": st.one_of(WORDS, st.booleans(), st.none(), LISTS, OBJECTS, st.just({"attempts": 0})),
    "output_limit": NOT_A_NUMBER | st.just(1.5),
    "rate_limit": st.one_of(NUMBERS, WORDS, st.booleans(), st.none(), LISTS, OBJECTS),
    "costs": st.one_of(NUMBERS, WORDS, st.booleans(), st.none(), LISTS.filter(bool)),
    "resource": st.one_of(NUMBERS, WORDS, st.booleans(), st.none(), LISTS, OBJECTS),
    "execution": NOT_A_TEXT | WORDS,
    "order_by": NOT_A_TEXT,
    "queue_expires": NOT_A_NUMBER | st.just(2_592_001),
}

UNKNOWN: Drawn = st.one_of(
    st.sampled_from(["descripton", "input_shema", "timeouts", "tool", "Name", "effect ", "args"]),
    WORDS.filter(lambda word: word not in FIELDS and word not in {"module", "function"}),
).map(lambda key: tool(**{key: 1}))

NO_NAME: Drawn = st.one_of(
    st.sampled_from(
        ["", " ", "9lives", "p\u0430y", "pay\u200b", "pay invoice", "pay\n", "a" * 129]
    ),
    st.text(st.characters(min_codepoint=0x80, max_codepoint=0x2FFF), min_size=1, max_size=9),
    WORDS.map(lambda word: word + "\x1b[31m"),
).map(lambda name: tool(name=name))

CONTRADICTIONS: Drawn = st.builds(
    _tagged,
    st.sampled_from(
        [
            {"effect": "pure", "destructive": True},
            {"effect": "pure", "side_effects": ["modifies_files"]},
            {"effect": "compensatable"},
            {"effect": "idempotent", "compensation": "refund"},
            {"effect": "compensatable", "compensation": "pay"},
            {"effect": "compensatable", "compensation": {"tool": "a", "args": {"b": "$args.c"}}},
            {"effect": "compensatable", "compensation": {"tool": "a", "args": {"b": "$self"}}},
            {"effect": "pure", "side_effects": ["read_only", "modifies_files"]},
            {"effect": "pure", "side_effects": ["read_only"], "destructive": True},
            {"effect": "irreversible", "side_effects": ["read_only"]},
            {"retry": 3},
            {"effect": "pure", "downstream_key": "key"},
            {"effect": "idempotent", "probe": "find"},
            {"probe": "pay"},
            {"probe": {"tool": "find", "args": {"of": "$result.id"}}},
            {"confirmation_prompt": "Really?"},
            {"allowed_callers": []},
            {"idempotency_key": ["invoice"]},
        ]
    ),
    LISTS,
)

TYPED: Drawn = st.one_of(
    NOT_AN_OBJECT.map(lambda odd: tool(metadata=odd)),
    NOT_A_TEXT.map(lambda odd: {"name": "pay", "tool_type": odd}),
    NOT_AN_OBJECT.map(lambda odd: {"name": "pay", "implementation_config": odd}),
    NOT_A_FLAG.map(lambda odd: tool(metadata={"is_dangerous": odd})),
    WORDS.map(lambda word: tool(tool_type=word)),
    st.booleans().map(lambda flag: tool(destructive=flag, metadata={"is_dangerous": True})),
    UNKNOWN.map(lambda given: {"name": "pay", "metadata": given | {"name": "twice"}}),
)

REGISTRY: Drawn = st.one_of(
    NOT_AN_OBJECT.map(lambda odd: tool(parameters=odd)),
    NUMBERS.map(lambda odd: tool(parameters={"city": odd})),
    WORDS.map(lambda word: tool(parameters={"city": {"type": f"no {word}"}})),
    WORDS.map(lambda word: tool(permission=word, module="a")),
    NOT_A_TEXT.map(lambda odd: tool(permission=odd, module="a")),
    WORDS.map(lambda word: tool(module=word, config={"function": "f"})),
    st.just(tool(module="a", side_effects=["read_only"], destructive=True)),
)

ENTRIES: Drawn = st.one_of(NUMBERS, WORDS, st.booleans(), st.none(), LISTS, st.just({}))

NO_LIST: Files = _documents(
    st.one_of(NUMBERS, st.booleans(), st.none(), st.just({}), OBJECTS, NOT_A_LIST).map(
        lambda odd: odd if odd is None or isinstance(odd, (bool, int)) else {"tools": odd}
    ),
)


GOOD = json.dumps({"tools": [tool(tags=["a", "b"], timeout=3.5)]}).encode()
TRUNCATED: Files = st.integers(0, len(GOOD) - 1).map(lambda end: ("tools.json", GOOD[:end]))
CUT_YAML: Files = st.integers(1, len(GOOD) - 1).map(lambda end: ("tools.yaml", GOOD[:end]))
BAD_BYTES: Files = st.builds(
    _inserted,
    st.integers(0, len(GOOD)),
    st.sampled_from(
        [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80", b"\xc0\xaf", b"\xe2\x82"]
    ),
    st.sampled_from(["tools.json", "tools.yaml"]),
)
NUL: Files = st.builds(
    _inserted,
    st.integers(1, len(GOOD)),
    st.sampled_from([b"\x00", b"\x01", b"\x1b", b"\x7f\x00"]),
    st.sampled_from(["tools.json", "tools.yaml"]),
)
ENCODINGS: Files = st.sampled_from(
    [
        ("tools.yaml", GOOD.decode().encode("utf-16")),
        ("tools.yaml", GOOD.decode().encode("utf-32")),
        ("tools.json", b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD),
        ("tools.json", b"\xef\xbb\xbf"),
        ("tools.yaml", b"\xef\xbb\xbftools: 1"),
        ("tools.yaml", "tools: [{name: p\u00e4y}]".encode("latin-1")),
    ]
)
LARGE: Files = st.builds(
    _filled,
    st.sampled_from([b" ", b"a", b"\n", b"- 1\n", b"[", b'{"a":']),
    st.sampled_from(["tools.json", "tools.yaml"]),
)


def _schemas(drawn: st.SearchStrategy[dict[str, Any]]) -> Files:
    fields = st.sampled_from(["input_schema", "output_schema"])
    return st.builds(_of_schema, fields, drawn)


def _of_schema(field: str, schema: dict[str, Any]) -> tuple[str, bytes]:
    return json_file([tool(**{field: schema})])


def _texts(name: str, drawn: st.SearchStrategy[str]) -> Files:
    return drawn.map(lambda text: (name, text.encode("utf-8", "surrogatepass")))


def _wrong(field: str) -> Files:
    return written(WRONG[field].map(lambda odd: tool(**{field: odd})))


KINDS: Mapping[str, tuple[Files, int]] = {
    **{f"wrong type of {field}": (_wrong(field), 12) for field in FIELDS},
    "unknown field": (written(UNKNOWN), 20),
    "no name": (written(NO_NAME), 20),
    "contradiction": (written(CONTRADICTIONS), 40),
    "typed layout": (written(TYPED), 30),
    "registry layout": (written(REGISTRY), 30),
    "entry that is no tool": (written(ENTRIES), 20),
    "no list of tools": (NO_LIST, 20),
    "truncated JSON": (TRUNCATED, 20),
    "truncated YAML": (CUT_YAML, 20),
    "bad UTF-8": (BAD_BYTES, 25),
    "control bytes": (NUL, 20),
    "other encoding": (ENCODINGS, 6),
    "10 MB": (LARGE, 12),
    **{f"schema: {kind}": (_schemas(drawn), 12) for kind, drawn in bombs.SCHEMAS.items()},
    **{f"YAML: {kind}": (_texts("tools.yaml", drawn), 8) for kind, drawn in bombs.YAML.items()},
    **{f"JSON: {kind}": (_texts("tools.json", drawn), 8) for kind, drawn in bombs.JSON.items()},
}


def drawn(files: Files, most: int) -> list[tuple[str, bytes]]:
    """Up to so many different examples, the same ones every time."""
    found: dict[tuple[str, bytes], None] = {}

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=most,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(files)
    def collect(file: tuple[str, bytes]) -> None:
        found[file] = None

    collect()
    return list(found)


@cache
def malformed() -> tuple[Malformed, ...]:
    """All of them; no two hold the same."""
    kinds: dict[tuple[str, bytes], str] = {}
    for kind, (files, most) in KINDS.items():
        for file in drawn(files, most):
            kinds.setdefault(file, kind)
    return tuple(Malformed(kind, name, raw) for (name, raw), kind in kinds.items())
