"""Code that wants out: nothing of it gets further than what it was given."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from toolgate import Caller, Toolgate
from toolgate.settings.settings import Settings

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "security" / "python_sandbox_escape.json"
SECRET = "hush-this-is-the-gateways-own"  # noqa: S105  a mark
VARIABLE = "A_SECRET_OF_THE_GATEWAY"
ME = Caller(tenant="acme", agent="clerk")
# What each of these does where nothing holds it: it prints the variable, or reads the file.
REACHING = {
    "the environment": "import os; print(os.environ)",
    "the environment of the first process": "print(open('/proc/1/environ').read())",
    "the environment of who started it": (
        "import os; print(open(f'/proc/{{os.getppid()}}/environ').read())"
    ),
    "a file": "print(open({file!r}).read())",
    "a file by its descriptor": "import os; print(os.read(os.open({file!r}, os.O_RDONLY), 99))",
    "a file by the root of another process": ("print(open('/proc/self/root' + {file!r}).read())"),
    "a program": "import subprocess; print(subprocess.run(['cat', {file!r}], capture_output=True))",
    "a class that runs programs": (
        "print([c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'] or "
        "__import__('subprocess').Popen)\n"
        "import subprocess; print(subprocess.Popen(['cat', {file!r}], stdout=-1).communicate())"
    ),
    "the C library": (
        "import ctypes; c = ctypes.CDLL(None); f = c.open({file!r}.encode(), 0)\n"
        "b = ctypes.create_string_buffer(99); c.read(f, b, 98); print(b.value)"
    ),
    "a search of everything": (
        "import os\nfor place, folders, names in os.walk('/'):\n"
        "    folders[:] = [one for one in folders if one not in ('proc', 'usr', 'lib', 'sys')]\n"
        "    if {name!r} in names: print(open(os.path.join(place, {name!r})).read())"
    ),
}


class House(NamedTuple):
    """A gate, and a file beside it that nobody is to read."""

    gate: Toolgate
    root: Path

    @property
    def file(self) -> Path:
        return self.root / "outside.txt"

    async def tell(self, tool: str, args: dict[str, Any]) -> str:
        """All that a caller is told."""
        return json.dumps((await self.gate.call(tool, args, caller=ME)).to_machine())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[House]:
    """One for all: no code is to change anything in it."""
    root = tmp_path_factory.mktemp("escapes")
    (root / "files").mkdir()
    settings = Settings.model_validate(
        {"root": root, "approvals": {"mode": "never"}, "tools": {"roots": ["files"]}}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, SECRET)
        (root / "outside.txt").write_text(SECRET)
        async with Toolgate.open(settings) as gate:
            yield House(gate, root)


pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("T1", "T3")]


def corpus() -> list[str]:
    """Expressions and templates that broke out of something, once."""
    if not CORPUS.is_file():
        pytest.skip("skipped: no ../shared/data beside this checkout")
    return [item["code"] for item in json.loads(CORPUS.read_text("utf-8"))["items"]]


def reaching(name: str, file: Path) -> str:
    return REACHING[name].format(file=str(file), name=file.name)


def listing(root: Path) -> set[str]:
    """Everything in the house but its store."""
    return {str(path) for path in root.rglob("*") if ".toolgate" not in path.parts}


@pytest.mark.parametrize("name", REACHING)
async def test_code_reaches_nothing_of_ours(house: House, name: str) -> None:
    code = reaching(name, house.file)
    assert SECRET not in await house.tell("code_execute", {"code": code})
    assert SECRET not in await house.tell("python_eval", {"expression": code})


@pytest.mark.parametrize("name", ["the environment", "a file", "a program", "the C library"])
async def test_where_nothing_holds_it_the_same_code_does(house: House, name: str) -> None:
    code = reaching(name, house.file)
    told = await asyncio.to_thread(subprocess.check_output, [sys.executable, "-c", code], text=True)
    assert SECRET in told


async def test_no_expression_of_the_corpus_gets_out_of_python_eval(house: House) -> None:
    before = listing(house.root)
    for code in corpus():
        told = await house.tell("python_eval", {"expression": code})
        assert SECRET not in told, code
        assert "uid=" not in told, code
        assert "root:" not in told, code
    assert listing(house.root) == before
    # And what is none of that goes on.
    assert '"value": 2' in await house.tell("python_eval", {"expression": "1 + 1"})


async def test_no_code_of_the_corpus_gets_out_of_code_execute(house: House) -> None:
    before = listing(house.root)
    # All in one sandbox, each in a process of its own, with a second for each.
    code = (
        "import os, signal, sys\n"
        f"for text in {corpus()!r}:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        signal.alarm(1)\n"
        "        try:\n"
        "            exec(text, {'os': os, 'sys': sys})\n"
        "        except BaseException as error:\n"
        "            print(type(error).__name__, flush=True)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "print('all of them')\n"
    )
    told = await house.tell("code_execute", {"code": code})
    assert "all of them" in told
    assert "uid=0" not in told
    assert SECRET not in told
    assert "root:" not in told
    assert listing(house.root) == before


@pytest.mark.parametrize(
    "expression",
    [
        *("1 << 10 ** 9", "9 ** 9 ** 9", "'a' * 10 ** 10", "[0] * 10 ** 9", "10 ** 10 ** 8"),
        *("(" * 9_000 + ")" * 9_000, "[" * 9_000, "x" * 19_000, "1" + "0" * 19_000),
        *("lambda: (yield)", "__builtins__", "__loader__", "globals()['__builtins__']"),
        *("(lambda: 0).__globals__", "(1).__class__.__mro__", "type(1).mro()"),
        *("getattr(1, '__cl' + 'ass__')", "''.__class__.__mro__[1].__subclasses__()"),
        *("[x for x in [1].__iter__.__self__.__class__.__base__.__subclasses__()]", "breakpoint()"),
        *("f'{open.__self__}'", "().__reduce_ex__(2)", "(0).__class__.__init__.__globals__"),
        *(
            "\uff41\uff42\uff53.__\uff47lob\uff41ls__",
            "exec('import os')\nos.environ",
            "memoryview(b'')",
            "help()",
        ),
        *("import builtins\nbuiltins.open('/etc/passwd')", "import ctypes", "import socket"),
        *("import sys\nsys.modules['os'].environ", "import sys\nsys._getframe().f_back.f_globals"),
        *("import pathlib\npathlib.Path('/etc/passwd').read_text()", "import asyncio\nasyncio.run"),
        *("import os\nos.listdir('/')", "import os\nos.urandom(8)", "import time\ntime.sleep(1e9)"),
    ],
)
async def test_an_expression_means_nothing_but_itself(house: House, expression: str) -> None:
    told = await house.tell("python_eval", {"expression": expression})
    assert SECRET not in told
    assert "root:" not in told
    assert '"code": "execution_failed"' not in told
    assert '"value": 3' in await house.tell("python_eval", {"expression": "1 + 2"})
