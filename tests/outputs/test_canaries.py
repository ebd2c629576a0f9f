"""Two hundred secrets go in by every way; none of them is in anything that is logged or stored."""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.house import STORE
from toolgate import Caller, Output, ToolError, Toolgate, Turn, tool
from toolgate.errors import ToolgateError
from toolgate.executor import bound
from toolgate.executor.deliveries import Deliveries
from toolgate.executor.recording import entries
from toolgate.settings.execution import Events
from toolgate.settings.execution import Toolbox as ToolboxSettings
from toolgate.settings.settings import Settings
from toolgate.spec.redactor import Redactor

pytestmark = pytest.mark.req("X6", "O2", "X5")
ME = Caller(tenant="acme", agent="clerk", session="s-1")
VARIABLE = "TOOLGATE_TEST_HOOK"
VISIBLE = "visible-marker-1"
SECRET: dict[str, Any] = {"type": "string", "format": "password"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"key": SECRET, "more": {"type": "object"}, "note": {"type": "string"}},
}
OUT: dict[str, Any] = {"type": "object", "properties": {"token": {"secret": True}}}
ENVIRONMENT = "canary-environment-0"
USER = "canary-user-0"
BEHIND = f"https://ann:{USER}@host"
# It looks at arguments and at what the session did, so that both are kept.
POLICY = """package toolgate

restrict contains "never" if {
\tinput.args.note == "never"
\tinput.args.note in input.history.session.tools.plain.args.note
}
"""


def _fields(**more: Any) -> dict[str, Any]:
    return {"effect": "irreversible", "input_schema": SCHEMA, **more}


@tool(**_fields())
async def plain(**args: Any) -> str:
    return "done"


@tool(**_fields())
async def repeats(**args: Any) -> dict[str, Any]:
    return {"said": f"<{args['key']}> {ENVIRONMENT}", "list": [args["key"]]}


@tool(**_fields(output_schema=OUT))
async def marked(**args: Any) -> dict[str, Any]:
    return {"token": args["more"]["new"], "note": VISIBLE}


@tool(**_fields())
async def raises(**args: Any) -> None:
    raise RuntimeError(args["key"])


@tool(**_fields())
async def says_so(**args: Any) -> None:
    raise ToolError(f"{args['key']} at https://u:{args['more']['cookie']}@h", at=[args["key"]])


@tool(effect="pure", input_schema=SCHEMA)
async def read(**args: Any) -> None:
    raise ToolError(f"{args['key']} and {ENVIRONMENT}")


@tool(**_fields(idempotency_key=["key"]))
async def keyed(**args: Any) -> str:
    return "done"


TAKEN_BACK = {"tool": "plain", "args": {"note": "$args.key"}}


@tool(**_fields(effect="compensatable", compensation=TAKEN_BACK))
async def undoable(**args: Any) -> str:
    return "done"


@tool(**_fields(output_schema=OUT))
async def large(**args: Any) -> dict[str, Any]:
    return {"rows": [f"{args['key']} {VISIBLE}"] * 100, "token": args["more"]["new"]}


@tool(effect="pure", execution="queued")
async def queued() -> dict[str, Any]:
    return {"said": f"{BEHIND} {ENVIRONMENT}", "list": [{"Cookie": USER}], "note": VISIBLE}


@tool(effect="irreversible", execution="queued")
async def queued_too() -> None:
    raise ToolError(f"{BEHIND} {ENVIRONMENT}", at=[{"Cookie": USER}])


TOOLS = (queued, queued_too, plain, repeats, marked, raises, says_so, read, keyed, undoable, large)


def _calls(canary: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("plain", "repeats", "raises", "read", "keyed", "undoable"):
        yield name, {"key": next(canary), "note": VISIBLE}
    yield "plain", {"more": {"headers": {"Authorization": next(canary), "Cookie": next(canary)}}}
    yield "plain", {"more": {"url": f"https://ann:{next(canary)}@host/{VISIBLE}"}}
    yield "queued", {}
    yield "queued_too", {}
    yield "plain", {"note": f"postgresql://{next(canary)}:x@db"}
    yield "plain", {"note": f"curl -H 'Authorization: Bearer {next(canary)}'"}
    yield "plain", {"key": [next(canary)]}
    yield "marked", {"more": {"headers": {"cookie": next(canary)}, "new": "x"}}
    yield "says_so", {"key": next(canary), "more": {"cookie": next(canary)}}
    yield "large", {"key": next(canary), "more": {"new": "x"}}
    yield "marked", {"more": {"password_of": {"Set-Cookie": next(canary)}, "new": "y"}}


def _files(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


async def _told(root: Path, caplog: pytest.LogCaptureFixture) -> tuple[bytes, list[str]]:
    """Everything that was stored or logged, and the canaries."""
    given: list[str] = [ENVIRONMENT, USER]

    def canaries() -> Iterator[str]:
        while True:
            given.append(f"canary-{len(given)}-{len(given) * 7919:08x}")
            yield given[-1]

    (root / "policies").mkdir()
    (root / "policies" / "looks.rego").write_text(POLICY, "utf-8")
    settings = Settings(
        root=root,
        toolbox=ToolboxSettings(output_limit=1_000),
        events=Events(url="http://127.0.0.1:9/hook", secret_env=VARIABLE),
    )
    canary = canaries()
    with caplog.at_level(logging.DEBUG):
        async with Toolgate.open(settings) as gate:
            gate.add(*TOOLS)
            number = 0
            while len(given) < 200:
                for name, args in _calls(canary):
                    number += 1
                    with suppress(ToolgateError):
                        await gate.call(name, args, caller=ME, turn=Turn(group=f"t-{number}"))
    stored = _files(root)
    logged = "\n".join(
        f"{record.getMessage()} {record.exc_text or ''} {vars(record)}" for record in caplog.records
    )
    return stored + logged.encode(), given


def _leaked(sinks: bytes, given: list[str]) -> list[str]:
    return [one for one in given if one.encode() in sinks]


async def test_no_secret_is_in_any_sink(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, ENVIRONMENT)
    sinks, given = await _told(tmp_path, caplog)
    assert len(given) >= 200
    assert _leaked(sinks, given) == []
    for table, column in WHERE:
        assert any(VISIBLE in text for text in _column(tmp_path, table, column)), table
    # What is no secret is there: this looks where things are.
    assert VISIBLE.encode() in sinks
    assert b"[secret]" in sinks


WHERE = (
    ("tool_execution_log", "args"),
    ("tool_execution_log", "result"),
    ("session_calls", "args"),
    ("decisions", "input"),
    ("outbox", "payload"),
    ("blobs", "content"),
    ("queue", "output"),
)


def _column(root: Path, table: str, column: str) -> list[str]:
    with closing(sqlite3.connect(root / STORE)) as connection:
        found = connection.execute(f"SELECT {column} FROM {table}").fetchall()  # noqa: S608
    return [one.decode() if isinstance(one, bytes) else str(one) for (one,) in found]


def _as_it_is(*args: Any) -> Any:
    return args[-1]


def _unkept(_deliveries: Deliveries, output: Output) -> Output:
    return output


GUARDS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "redactor": lambda patch: patch.setattr(Redactor, "raw", _as_it_is),
    "texts": lambda patch: patch.setattr(Redactor, "text", _as_it_is),
    "queued": lambda patch: patch.setattr(Deliveries, "_kept", _unkept),
    "marks": lambda patch: patch.setattr(entries, "without_secrets", _as_it_is),
    "large": lambda patch: (
        patch.setattr(bound, "without_secrets", _as_it_is),
        patch.setattr(bound, "secret_texts", lambda *_: frozenset[str]()),  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    )[0],
}


@pytest.mark.parametrize("guard", GUARDS)
async def test_without_a_guard_secrets_are_found_there(
    guard: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, ENVIRONMENT)
    GUARDS[guard](monkeypatch)
    sinks, given = await _told(tmp_path, caplog)
    assert _leaked(sinks, given)


async def test_the_callers_own_answer_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        gate.add(repeats)
        turn = Turn(group="t-1")
        first = await gate.call("repeats", {"key": "hunter2-x"}, caller=ME, turn=turn)
        again = await gate.call("repeats", {"key": "hunter2-x"}, caller=ME, turn=turn)
    assert first.data["list"] == ["hunter2-x"]
    assert again.cached
    assert again.data["list"] == ["[secret]"]
