"""Words that other systems make objects of: in arguments, results and on record they are data."""

import base64
import os
import pickle
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, open_gate
from toolgate import Turn, tool

pytestmark = pytest.mark.req("X2", "O2")
TURN = Turn(group="t-1")
_watching: list[list[str]] = []


class Bomb:
    """Leaves a mark where somebody loads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.getenv, ("PATH",)


PICKLED = pickle.dumps(Bomb())
# Each is an order to make something, to one reader or another.
MARKED: tuple[Any, ...] = (
    base64.b64encode(PICKLED).decode(),
    PICKLED.decode("latin-1"),
    {"py/object": "os.system", "py/reduce": [{"py/function": "os.system"}, {"py/tuple": ["id"]}]},
    {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "id"}},
    {"__class__": "os.system", "__module__": "os", "__init__": {"__globals__": {}}},
    {"__type__": "subprocess.Popen", "args": ["id"]},
    {"$type": "System.Diagnostics.Process", "$ref": "#/$defs/x", "$id": "1"},
    {"@class": "java.lang.Runtime", "@type": "javax.script.ScriptEngineManager"},
    {"__proto__": {"admin": True}, "constructor": {"prototype": {"admin": True}}},
    {"_type": "toolgate.call.Grant", "caller": {"tenant": "umbrella"}, "needs_a_person": False},
    "!!python/object/apply:os.system ['id']",
    "rO0ABXNyABdqYXZhLnV0aWwuUHJpb3JpdHlRdWV1ZQ==",
    "\x80\x04\x95(\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
    {"reference": "out_sha", "read_with": "read_output", "head": "x", "next": 0},
)


def _hook(event: str, _args: tuple[Any, ...]) -> None:
    if event in {"pickle.find_class", "marshal.loads", "exec", "os.system", "subprocess.Popen"}:
        for seen in _watching:
            seen.append(event)


sys.addaudithook(_hook)


@contextmanager
def watched() -> Generator[list[str]]:
    """What is made or run of data meanwhile."""
    seen: list[str] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


@tool(effect="irreversible")
async def keep(value: Any) -> Any:
    """Keep something, and say it again."""
    return {"kept": value}


async def test_what_would_be_an_object_elsewhere_comes_back_as_it_was_given(tmp_path: Path) -> None:
    async with open_gate(tmp_path) as gate:
        gate.add(keep)
        # Whatever is loaded at a first call is there.
        await gate.call("keep", {"value": 0}, caller=ME, turn=Turn(group="t-0"))
        first: list[Any] = []
        with watched() as seen:
            for at, value in enumerate(MARKED):
                turn = Turn(group=f"t-{at + 1}")
                first.append((await gate.call("keep", {"value": value}, caller=ME, turn=turn)).data)
        assert seen == []
        assert first == [{"kept": value} for value in MARKED]
    # Another process, so to say: everything is read from the store.
    async with open_gate(tmp_path) as gate:
        gate.add(keep)
        await gate.call("keep", {"value": 0}, caller=ME, turn=Turn(group="t-0"))
        with watched() as seen:
            for at, value in enumerate(MARKED):
                turn = Turn(group=f"t-{at + 1}")
                again = await gate.call("keep", {"value": value}, caller=ME, turn=turn)
                assert (again.cached, again.data) == (True, {"kept": value})
                entry = await gate.journal.find("acme", again.call_id)
                assert entry is not None
            await gate.journal.entries("acme", limit=50)
        assert seen == []


def test_a_reader_that_makes_objects_is_seen() -> None:
    """The guard-off control."""
    with watched() as seen:
        assert pickle.loads(PICKLED) == os.environ["PATH"]  # noqa: S301
    assert "pickle.find_class" in seen
