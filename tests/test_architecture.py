"""The plan of the house, held against its source: who may build, read, run and import what."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from toolgate import errors
from toolgate.errors import ToolgateError
from toolgate.server.problems import STATUS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "toolgate"
MODULES = sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def tree(path: Path) -> ast.Module:
    return _tree(path.read_text("utf-8"))


# By its text: a module is read once, however many look at it, and at copies of it.
@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def imports(module: ast.Module) -> dict[str, str]:
    """Each imported name, and what it stands for."""
    known: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            known |= {(one.asname or one.name): one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = node.module or ""
            known |= {(one.asname or one.name): f"{home}.{one.name}" for one in node.names}
    return known


def calls(path: Path) -> tuple[str, ...]:
    """What a module calls, with imported names written out: `toolgate.call.Grant`, `time.time`."""
    return _calls(path.read_text("utf-8"))


@cache
def _calls(text: str) -> tuple[str, ...]:
    module = _tree(text)
    known = imports(module)
    called = [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    parts = [ast.unparse(one).partition(".") for one in called]
    return tuple(known.get(first, first) + dot + rest for first, dot, rest in parts)


def uses(path: Path) -> set[str]:
    """Every dotted name in a module, with imported names written out where they come from."""
    return _uses(path.read_text("utf-8"))


@cache
def _uses(text: str) -> set[str]:
    module = _tree(text)
    known = imports(module)
    found: set[str] = set(known.values())
    for node in ast.walk(module):
        if isinstance(node, (ast.Attribute, ast.Name)):
            first, dot, rest = ast.unparse(node).partition(".")
            found.add(known.get(first, first) + dot + rest)
    return found


def offenders(names: set[str], *, but: frozenset[str] = frozenset()) -> dict[str, set[str]]:
    found = {name_of(path): uses(path) & names for path in MODULES if name_of(path) not in but}
    return {file: used for file, used in found.items() if used}


@pytest.mark.req("X1", "G1")
def test_only_the_gate_builds_a_grant() -> None:
    makers = {
        name_of(path)
        for path in MODULES
        if "Grant" in {call.rsplit(".", 1)[-1] for call in calls(path)}
    }
    assert makers == {"gate/gate.py"}


@pytest.mark.req("X1")
def test_only_the_executor_builds_a_call_and_runs_a_provider() -> None:
    builders = {
        name_of(path)
        for path in MODULES
        if any(re.fullmatch(r"(?!ast\.)(.*\.)?Call", call) for call in calls(path))
    }
    assert builders == {"executor/executor.py"}
    runners = {
        name_of(path)
        for path in MODULES
        if any(
            re.fullmatch(r"(.*\.)?_?(provider|python|providers\[.*\])\.run", call)
            for call in calls(path)
        )
    }
    # One of a package or a plugin is run by what stands for it, with the call the executor gave.
    assert runners == {"executor/executor.py", "plugins/brought.py", "providers/plugged.py"}


@pytest.mark.req("X1")
def test_no_door_reaches_an_adapter() -> None:
    rooms = ("engines", "providers", "store", "sources", "tools", "net")
    adapters = tuple(f"toolgate.{room}" for room in rooms)
    for path in MODULES:
        room = name_of(path).split("/")[0]
        if room in {"server", "cli"}:
            found = {name for name in uses(path) if name.startswith(adapters)}
            # What came of a case is a value; the engine is opened by `policies`.
            assert found <= {"toolgate.engines.cases.Result"}, name_of(path)


def test_only_the_runtime_hands_a_grant_to_the_executor() -> None:
    way = re.compile(r"(.*\.)?_?executor\.(run|resume)")
    assert {name_of(path) for path in MODULES if any(map(way.fullmatch, calls(path)))} == {
        "runtime.py"
    }


@cache
def _runs_a_tool(text: str) -> bool:
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Attribute) and node.attr == "call":
            return True
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called == "self._run" or (called == "getattr" and "'call'" in ast.unparse(node)):
            return True
    return False


@pytest.mark.req("X1", "G1")
def test_every_entry_that_can_run_a_tool_is_one_that_is_swept() -> None:
    """A new one belongs into `tests/gate/test_attacks.py`, case 55, which walks through each."""
    entries = {name_of(path) for path in MODULES if _runs_a_tool(path.read_text("utf-8"))}
    # The runtime hands its verb to the toolbox. A client's leads to a server, which decides.
    entries.discard("client/remote.py")
    # The suite of providers, and whoever tests a plugin, calls a whole gate in memory.
    entries -= {"testing/provider.py", "testing/plugin.py"}
    # What another server runs is behind the gate, which has let the call through to it.
    behind = {"providers/mcp.py", "upstreams/"}
    entries = {name for name in entries if not name.startswith(tuple(behind))}
    # Of MCP, tasks and the table of methods hand a call on to `tools`.
    mcp = {f"server/mcp/{one}.py" for one in ("tools", "own", "tasks", "methods")}
    rest = {"server/calls.py", "server/routes.py"}
    # Built-in tools are handed the runtime's verb; `tests/tools/test_scheduler.py` walks that way.
    assert entries == {"cli/call.py", *rest, *mcp, "toolbox.py", "runtime.py", "bootstrap.py"}


@pytest.mark.req("X1", "G1")
def test_a_call_is_decided_in_the_function_that_hands_it_on() -> None:
    """What is known is looked up in one, and handed on or to the other, which decides anew."""
    found = {
        node.name: [one for one in ast.walk(node) if isinstance(one, ast.Call)]
        for node in ast.walk(tree(SOURCE / "runtime.py"))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    handed = {
        name: [_first(call) for call in calls if ast.unparse(call.func) == "self._executor.run"]
        for name, calls in found.items()
    }
    assert {name: who for name, who in handed.items() if who} == {
        "_perform": ["grant"],
        "_decided": ["known", "grant"],
    }
    made = {name: [ast.unparse(call.func) for call in calls] for name, calls in found.items()}
    assert made["_perform"].count("self.gate.known") == 1
    assert made["_decided"].count("self.gate.decide") == 1
    [passed] = [one for one in found["_perform"] if ast.unparse(one.func) == "self._decided"]
    assert _first(passed) == "grant"
    assert sum(names.count("self._decided") for names in made.values()) == 1


def _first(call: ast.Call) -> str:
    return ast.unparse(call.args[0])


TIME = {
    *(
        f"time.{name}{suffix}"
        for name in ("time", "monotonic", "perf_counter", "process_time")
        for suffix in ("", "_ns")
    ),
    *(f"time.{name}" for name in ("gmtime", "localtime", "ctime", "thread_time")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    *("datetime.date.today", "datetime.now", "datetime.utcnow"),
}


def test_only_the_clock_reads_the_time() -> None:
    assert offenders(TIME, but=frozenset({"clock.py"})) == {}
    assert uses(SOURCE / "clock.py") & TIME, "the scan would see it"


def test_nothing_evaluates_text_or_opens_a_shell() -> None:
    banned = {
        *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "marshal.loads"),
        *("pickle", "pickle.loads", "pickle.load", "dill", "shelve", "builtins.eval"),
        *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "subprocess.getoutput"),
    }
    # A tree that is built node by node from a table of ours; there is no text in it.
    assert offenders(banned) == {"tools/math/compiled.py": {"compile"}}
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                assert ast.unparse(node.value) != "True", name_of(path)


def test_the_scan_sees_what_it_looks_for(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from time import time as now\nimport datetime as d\nfrom datetime import datetime\n"
        "now(); d.datetime.now(); datetime.utcnow(); eval('1'); import pickle\n"
    )
    found = uses(bad)
    assert {"time.time", "datetime.datetime.now", "datetime.datetime.utcnow"} <= found
    assert {"eval", "pickle"} <= found


def test_inner_init_files_are_empty() -> None:
    full = [name_of(path) for path in MODULES if path.name == "__init__.py" and path.read_bytes()]
    assert full == ["__init__.py"]


def test_every_module_says_what_room_it_is() -> None:
    silent = [
        name_of(path) for path in MODULES if path.read_bytes() and not ast.get_docstring(tree(path))
    ]
    assert silent == []


def test_imports_stand_at_the_top_but_for_those_that_say_why() -> None:
    deferred = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for function in ast.walk(tree(path))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and "PLC0415" not in path.read_text("utf-8").splitlines()[node.lineno - 1]
    ]
    assert deferred == []


def every_error(kind: type[ToolgateError] = ToolgateError) -> Iterator[type[ToolgateError]]:
    yield kind
    for below in kind.__subclasses__():
        if vars(errors).get(below.__name__) is below:
            yield from every_error(below)


def drawn() -> list[tuple[int, str, str]]:
    """Depth, name and code of each line of the tree in the docstring."""
    found: list[tuple[int, str, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        branch = re.match(r"    ((?:[│ ] {3})*)(?:[├└]── )?(\w+)(?:\s{2,}([a-z_]+)\b)?", line)
        if branch and branch[2] in vars(errors):
            depth = len(branch[1]) // 4 + ("── " in line)
            found.append((depth, branch[2], branch[3] or ""))
    return found


@pytest.mark.req("X5")
def test_every_error_is_mapped_to_the_wire_and_nothing_else_is() -> None:
    assert set(STATUS) == set(every_error())
    assert all(400 <= status < 600 for status in STATUS.values())


@pytest.mark.req("X5")
def test_the_tree_is_drawn_as_it_is() -> None:
    shown = drawn()
    assert {name for _depth, name, _code in shown} == {kind.__name__ for kind in every_error()}
    above: list[str] = []
    for depth, name, code in shown:
        kind = getattr(errors, name)
        above[depth:] = [name]
        if depth:
            assert kind.__bases__[0].__name__ == above[depth - 1], name
        if kind.__subclasses__() and "code" not in vars(kind):
            assert not code or code in {"nothing", "it"}, name
        else:
            assert code == kind.code or name == "ToolgateError", name


@pytest.mark.req("X5")
def test_every_error_that_can_be_raised_has_a_code_of_its_own() -> None:
    kinds = list(every_error())
    own = [kind.code for kind in kinds if "code" in vars(kind)]
    assert len(own) == len(set(own))
    abstract = {kind.__name__ for kind in kinds if "code" not in vars(kind)}
    assert abstract == {"CatalogError", "StoreError", "CallRefused", "CallFailed"}
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in own)


def test_the_layers_name_every_room() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    [layers] = [one for one in linter["contracts"] if one["type"] == "layers"]
    assert layers["exhaustive"] is True
    assert "ignore_imports" not in str(linter["contracts"])
    named = {room.strip() for layer in layers["layers"] for room in layer.split("|")}
    rooms = {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__"}
    assert named == rooms
