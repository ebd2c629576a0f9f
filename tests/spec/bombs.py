"""Small texts with large meanings: schemas, YAML and JSON made to hurt whoever reads them."""

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

Schemas = st.SearchStrategy[dict[str, Any]]


def schema(**keywords: Any) -> dict[str, Any]:
    return {"type": "object"} | keywords


def doubling(levels: int, *, refer: Callable[[int], str], keyword: str = "allOf") -> dict[str, Any]:
    """Each definition applies the next one twice: 2 to the power of `levels` checks."""
    defs: dict[str, Any] = {
        f"d-{level}": {
            "$anchor": f"a{level}",
            keyword: [{"$ref": refer(level + 1)}, {"$ref": refer(level + 1)}],
        }
        for level in range(levels)
    }
    defs[f"d-{levels}"] = {"$anchor": f"a{levels}", "type": "string"}
    return schema(properties={"x": {"$ref": refer(0)}}, **{"$defs": defs})


def overlapping(levels: int, *, back: bool = False) -> dict[str, Any]:
    """Each definition holds the same property against the next one twice."""
    defs: dict[str, Any] = {
        f"d{level}": {
            "properties": {"a": {"$ref": f"#/$defs/d{level + 1}"}},
            "patternProperties": {"a": {"$ref": f"#/$defs/d{level + 1}"}},
        }
        for level in range(levels)
    }
    last = {"additionalProperties": {"$ref": "#/$defs/d0"}} if back else {"type": "string"}
    defs[f"d{levels}"] = last
    return schema(properties={"x": {"$ref": "#/$defs/d0"}}, **{"$defs": defs})


def depending(levels: int) -> dict[str, Any]:
    """The same through `dependentSchemas`, which also apply in place."""
    defs: dict[str, Any] = {
        f"d{level}": {
            "dependentSchemas": {
                "a": {"$ref": f"#/$defs/d{level + 1}"},
                "b": {"$ref": f"#/$defs/d{level + 1}"},
            }
        }
        for level in range(levels)
    }
    defs[f"d{levels}"] = {"type": "object"}
    return schema(properties={"x": {"$ref": "#/$defs/d0"}}, **{"$defs": defs})


def hidden(levels: int) -> dict[str, Any]:
    """The same, kept where only data should be."""
    default = {
        f"d{level}": {"allOf": [{"$ref": f"#/default/d{level + 1}"}] * 2} for level in range(levels)
    }
    default[f"d{levels}"] = {}
    return schema(properties={"x": {"$ref": "#/default/d0"}}, default=default)


def ring(length: int) -> dict[str, Any]:
    """Definitions that refer to each other and never go deeper into the value."""
    defs = {f"d{at}": {"$ref": f"#/$defs/d{(at + 1) % length}"} for at in range(length)}
    return schema(properties={"x": {"$ref": "#/$defs/d0"}}, **{"$defs": defs})


def nested(levels: int, keyword: str) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {keyword: inner}
    return schema(properties={"x": inner})


def property_x(**keywords: Any) -> dict[str, Any]:
    return schema(properties={"x": keywords})


POINTERS: Mapping[str, Callable[[int], str]] = {
    "pointer": lambda level: f"#/$defs/d-{level}",
    "anchor": lambda level: f"#a{level}",
    "escaped": lambda level: f"#/%24defs/d%2D{level}",
}
LEVELS = st.integers(14, 60)
REMOTE = st.sampled_from(
    [
        "https://example.com/schema.json",
        "http://127.0.0.1:9/",
        "file:///etc/passwd",
        "other.json",
        "//example.com/a#/b",
        "urn:uuid:0",
        "data:application/json,true",
    ]
)
BAD_PATTERNS = st.one_of(
    st.sampled_from(["(", "[", "a{2,1}", "*", "\\", "(?P<a>x)(?P<a>y)", "[z-a]", "\\p{Nope}"]),
    st.integers(1, 40).map(lambda deep: "(" * deep + "a" + ")" * (deep - 1)),
)
BACKTRACKING = st.sampled_from(
    [
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        r"(a)\1",
        r"(?P<n>a)(?P=n)",
        "(?>a+)b",
        r"^(?!.*\.\.)",
    ]
)

SCHEMAS: Mapping[str, Schemas] = {
    "reference cycle": st.one_of(
        st.integers(1, 30).map(ring),
        st.just(schema(**{"$ref": "#"})),
        st.just(schema(allOf=[{"$ref": "#"}, {"$ref": "#"}])),
        st.just(schema(anyOf=[{"not": {"$ref": "#"}}])),
    ),
    "remote reference": st.one_of(
        REMOTE.map(lambda target: property_x(**{"$ref": target})),
        REMOTE.map(lambda target: schema(dependencies={"enum": {"$ref": target}})),
        REMOTE.map(lambda target: schema(items={"anyOf": [{"$ref": target}]})),
        REMOTE.map(lambda target: schema(**{"$schema": target})),
    ),
    "dangling reference": st.sampled_from(
        ["#/$defs/none", "#none", "#/properties", "#/properties/x/enum", "#/%zz", "#/0", "#/~2"]
    ).map(lambda target: property_x(**{"$ref": target, "enum": [{}]})),
    "moved base": REMOTE.map(
        lambda base: schema(properties={"x": {"$id": base, "$ref": "#/$defs/a"}})
    ),
    "dynamic reference": st.sampled_from(["$dynamicRef", "$recursiveRef"]).map(
        lambda keyword: property_x(**{keyword: "#"})
    ),
    "doubling": st.builds(
        doubling,
        LEVELS,
        refer=st.sampled_from(list(POINTERS.values())),
        keyword=st.sampled_from(["allOf", "anyOf", "oneOf"]),
    ),
    "overlapping": st.builds(overlapping, LEVELS, back=st.booleans()),
    "depending": LEVELS.map(depending),
    "hidden": LEVELS.map(hidden),
    "10,000 allOf": st.integers(10_000, 30_000).map(
        lambda many: schema(allOf=[{"maxProperties": 3}] * many)
    ),
    "deep": st.builds(
        nested, st.integers(65, 300), st.sampled_from(["not", "items", "additionalProperties"])
    ),
    "huge enum": st.integers(20_001, 60_000).map(lambda many: property_x(enum=list(range(many)))),
    "bad pattern": BAD_PATTERNS.map(lambda pattern: property_x(pattern=pattern)),
    "backtracking pattern": st.one_of(
        BACKTRACKING.map(lambda pattern: property_x(type="string", pattern=pattern)),
        BACKTRACKING.map(lambda pattern: schema(patternProperties={pattern: {}})),
    ),
    "exploding pattern": st.integers(900, 1000).map(
        lambda many: property_x(pattern=f"((a{{1,{many}}}){{1,{many}}}){{1,{many}}}")
    ),
    "many patterns": st.integers(201, 900).map(
        lambda many: schema(properties={f"p{at}": {"pattern": f"a{at}"} for at in range(many)})
    ),
    "no schema": st.sampled_from(
        [
            property_x(type="strin"),
            property_x(type=7),
            property_x(minimum="1"),
            property_x(required="x"),
            schema(properties=[]),
            schema(properties={"x": 1}),
            schema(required=["x", "x"]),
            schema(allOf=[]),
            property_x(enum={}),
            property_x(minLength=-1),
            property_x(multipleOf=0),
        ]
    ),
}


def _aliases(width: int, levels: int) -> str:
    lines = ["a0: &a0 [x, x]"]
    lines += [
        f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * width)}]" for at in range(1, levels + 1)
    ]
    return "\n".join([*lines, "tools: []"])


_TOOL = "tools:\n  - name: pay\n    description: Pay.\n"
YAML: Mapping[str, st.SearchStrategy[str]] = {
    "alias bomb": st.builds(_aliases, st.integers(2, 10), st.integers(2, 30)),
    "alias cycle": st.sampled_from(
        [
            "tools: &a [*a]",
            "&a tools: *a",
            "tools: &a\n  - name: pay\n    config: *a",
            "&a [*a]",
            "tools: [&a {config: *a}]",
            "*a",
        ]
    ),
    "merge key": st.sampled_from(
        [
            _TOOL + "    <<: {effect: pure}",
            _TOOL + "    config: {<<: [{a: 1}]}",
            "<<: {tools: []}\ntools: []",
            "tools:\n  - &a {name: pay}\n  - {<<: *a, name: b}",
        ]
    ),
    "tag": st.sampled_from(
        [
            "python/object/apply:os.system ['true']",
            "python/name:os.system",
            "python/object/new:type {}",
            "python/tuple [a]",
            "binary aGk=",
            "set {a: null}",
            "timestamp 2020-01-01",
            "str pay",
        ]
    ).map(lambda tag: f"{_TOOL}    config: {{a: !!{tag}}}\n"),
    "tag on a key": st.sampled_from(["!!str", "!!python/name:os.system", "!a", "!!int"]).map(
        lambda tag: f"{_TOOL}    {tag} category: a\n"
    ),
    "key twice": st.sampled_from(
        [
            _TOOL + "    name: again\n",
            _TOOL + "    config: {a: 1, a: 2}\n",
            "tools: []\ntools: []\n",
            _TOOL + "    config: {\"a\": 1, 'a': 2}\n",
        ]
    ),
    "tab": st.integers(1, 4).map(lambda many: "tools:\n" + "\t" * many + "- name: pay\n"),
    "second document": st.integers(1, 5).map(lambda many: _TOOL + "---\ntools: []\n" * many),
    "key that is no text": st.sampled_from(
        [_TOOL + "    [a]: 1\n", _TOOL + "    {a: b}: 1\n", "? [tools]\n: []\n", "[]: []"]
    ),
    "odd number": st.sampled_from([".inf", "-.inf", ".nan", "1e999", "-1e999", "9" * 300]).map(
        lambda number: f"{_TOOL}    timeout: {number}\n"
    ),
    "too many values": st.sampled_from(
        [
            "tools: [" + "1," * 300_000 + "1]",
            "tools:\n" + "- x\n" * 300_000,
            "tools:\n" + "".join(f"- k{at}: 1\n" for at in range(100_000)),
            "{" + ",".join(f"k{at}: 1" for at in range(100_000)) + "}",
        ]
    ),
    "too deep": st.integers(65, 3000).flatmap(
        lambda deep: st.sampled_from(
            ["tools: " + "[" * deep, "tools:\n  " + "- " * deep + "a", "{a: " * deep]
        )
    ),
    "2 MB and more": st.sampled_from(["a", "\n", "# a\n", "- "]).map(
        lambda fill: fill * (3_000_000 // len(fill))
    ),
    "broken off": st.sampled_from(
        [
            'tools: "',
            "tools: [",
            "tools: {a",
            "tools: 'a",
            "tools: |\n a\nb",
            "%YAML 9.9\n---\ntools: []",
            "tools: @a",
            "tools: `a`",
            "a: b: c",
            "tools:\n  - name: pay\n   - b",
            'tools: "\\q"',
            "&",
            "!<",
        ]
    ),
}

_ITEM = '{"name": "pay", "description": "Pay."'
JSON: Mapping[str, st.SearchStrategy[str]] = {
    "odd number": st.sampled_from(
        ["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "9" * 400, "9" * 5000, "01", "+1", ".5"]
    ).map(lambda number: f'[{_ITEM}, "timeout": {number}}}]'),
    "key twice": st.sampled_from(
        [
            f'[{_ITEM}, "name": "again"}}]',
            '{"tools": [], "tools": []}',
            f'[{_ITEM}, "config": {{"a": 1, "a": 2}}}}]',
            f'[{_ITEM}, "n\\u0061me": "x"}}]',
        ]
    ),
    "not quite JSON": st.sampled_from(
        [
            f"[{_ITEM},}}]",
            f"[{_ITEM}}},]",
            f"[{_ITEM}}}] // tools",
            "{'tools': []}",
            "{tools: []}",
            f"[{_ITEM}}}] []",
            "",
            " ",
            "tools: []",
            f"[{_ITEM[:-1]}]",
            f'[{_ITEM}, "category": "a\nb"}}]',
            "nul",
        ]
    ),
    "deep": st.sampled_from(
        [opening * deep for deep in (65, 1_000, 100_000) for opening in ("[", '{"a":')]
    ),
    "deep and closed": st.sampled_from([65, 400, 900, 1_000, 100_000]).map(
        lambda deep: f'[{_ITEM}, "config": {{"a": {"[" * deep}{"]" * deep}}}}}]'
    ),
    "surrogate": st.sampled_from(
        [
            f'[{_ITEM}, "category": "\\ud800"}}]',
            f'[{_ITEM}, "config": {{"a": "\\udfff"}}}}]',
            f'[{_ITEM}, "config": {{"\\ud800": 1}}}}]',
            f'[{_ITEM}, "\\udc80": 1}}]',
            '[{"name": "\\ud83d"}]',
            f'[{_ITEM}, "category": "\ud800"}}]',
        ]
    ),
    "name twice": st.integers(2, 300).map(lambda many: f"[{', '.join([_ITEM + '}'] * many)}]"),
    "many entries": st.sampled_from([1_000, 30_000]).map(lambda many: f"[{'1,' * many}1]"),
    "many fields": st.sampled_from([300, 20_000]).map(
        lambda many: "[{" + ",".join(f'"k{at}": 1' for at in range(many)) + "}]"
    ),
    "long words": st.sampled_from(
        [
            f'[{_ITEM}, "effect": "{"a" * 50_000}"}}]',
            f'[{_ITEM}, "{"k" * 50_000}": 1}}]',
            '[{"name": "' + "a" * 50_000 + '"}]',
            f'[{_ITEM}, "effect": [{", ".join(["1"] * 20_000)}]}}]',
            f'[{_ITEM}, "compensation": {{"{"t" * 9_000}": 1}}}}]',
        ]
    ),
}
