"""Texts that have got out of evaluators of expressions, and others of their kinds.

Those of published attacks are in `../shared/data/security`, beside the repository, where they are
at hand; the kinds here are written in every form that an evaluator may treat in another way.
"""

import json
from pathlib import Path

DATA = Path(__file__).parents[3] / "shared" / "data" / "security" / "python_sandbox_escape.json"
# They are numbers, and nothing else.
HARMLESS = frozenset({"1<<250", "1>>25000"})

_CORES = (
    "__import__('os').system('id')",
    "().__class__.__bases__[0].__subclasses__()",
    "(1).__class__.__mro__[-1]",
    "x.__globals__['os']",
    "x.__init__.__globals__",
    "[].__class__.__base__",
    "''.join(['a'])",
    "'{0.__class__}'.format(1)",
    "'%s' % x",
    "f'{x.__class__}'",
    'f"{__import__(chr(111)+chr(115))}"',
    "lambda: 1",
    "(lambda f: f(f))(lambda f: f(f))",
    "(y := 1)",
    "[c for c in (1, 2)]",
    "{k: 1 for k in (1, 2)}",
    "(i for i in (1, 2))",
    "eval('1')",
    "exec('1')",
    "compile('1', '', 'eval')",
    "open('/etc/passwd').read()",
    "globals()['x']",
    "getattr(1, 'real')",
    "type(1)",
    "vars()",
    "print(1)",
    "breakpoint()",
    "@x\n1",
    "x: int = 1",
    "import os",
    "def f(): pass",
    "class A: pass",
    "raise SystemExit",
    "yield 1",
    "await x",
    "1; 2",
    "x[0:1]",
    "*x",
    "**x",
    "...",
    "1j.imag",
    "b'1'",
    "r'1'",
    "#x",
    "\\x31",
    "$x",
    "`id`",
    "x.y",
    "{1}",
    "x ? 1 : 2",
)
_FORMS = ("{}", "1 + ({})", "sqrt({})", "max(1, {})", "{} if 1 else 2", "\t{}\n")


def escapes() -> list[str]:
    """All of them, each once."""
    found = [form.replace("{}", core) for core in _CORES for form in _FORMS]
    # The same letters from another row: Python reads both as one name.
    found += ["".join(_wide(one) for one in core) for core in _CORES if any(map(str.isalpha, core))]
    if DATA.exists():
        found += [one["code"] for one in json.loads(DATA.read_text("utf-8"))["items"]]
    return list(dict.fromkeys(found))


def _wide(letter: str) -> str:
    return chr(ord(letter) + 0xFEE0) if letter.isascii() and letter.isalpha() else letter
