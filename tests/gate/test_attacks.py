"""Attacks on a decision, by their numbers in the list of cases; each with its controls."""

# pyright: reportPrivateUsage=false
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests import test_architecture as architecture
from tests.gate.neighbours import two_tenants
from tests.house import ME, STORE, open_gate
from toolgate import Caller, Toolgate, tool
from toolgate.call import Grant, Turn
from toolgate.cli.main import app
from toolgate.executor.executor import Executor
from toolgate.gate.gate import Gate
from toolgate.gate.moment import Moment, Sifted
from toolgate.gate.phases import Phases
from toolgate.spec.tool import ToolSpec

HI: dict[str, Any] = {"text": "hi"}
ANN = Caller(tenant="acme", agent="billing", user="ann")

# 54


@pytest.mark.req("G1", "C4")
async def test_54_a_tool_that_is_hidden_and_called_by_name_is_as_missing_as_one_that_is(
    tmp_path: Path,
) -> None:
    async with two_tenants(tmp_path) as (_gate, door, keys):
        for key, hidden in ((keys["umbrella"], True), (keys["acme"], False)):
            listed = await door.ask("GET", "/v1/tools", key)
            names = {tool["name"] for tool in listed.body["tools"]}
            assert ("timestamp" in names) is not hidden
            hers, nobodys = [
                await door.ask("POST", "/v1/call", key, {"tool": name, "args": {}})
                for name in ("timestamp", "no_tool_")
            ]
            alike = hers.text.replace("timestamp", "X") == nobodys.text.replace("no_tool_", "X")
            assert (hers.status == nobodys.status, alike) == (hidden, hidden)


@pytest.mark.req("G1", "C4")
async def test_54_a_gate_that_only_hid_would_let_the_call_by_name_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control: lists are sifted as ever, a single tool is not."""
    original = Phases.sift

    async def lists_only(
        phases: Phases,
        moment: Moment,
        caller: Caller,
        specs: Iterable[ToolSpec],
        turn: Turn | None = None,
    ) -> Sifted:
        among = tuple(specs)
        if len(among) == 1:
            return Sifted({}, {})
        return await original(phases, moment, caller, among, turn)

    monkeypatch.setattr(Phases, "sift", lists_only)
    async with two_tenants(tmp_path) as (_gate, door, keys):
        listed = await door.ask("GET", "/v1/tools", keys["umbrella"])
        assert [tool["name"] for tool in listed.body["tools"]] == ["echo"]
        called = await door.ask("POST", "/v1/call", keys["umbrella"], {"tool": "timestamp"})
        assert (called.status, called.body["ok"]) == (200, True)
        missing = await door.ask("POST", "/v1/call", keys["umbrella"], {"tool": "no_tool"})
        assert missing.status == 404


# 55


class Watched:
    """What the gate granted and what the executor was handed, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[tuple[str, Grant]] = []
        self._inside = False
        decide, known, run, resume = Gate.decide, Gate.known, Executor.run, Executor.resume

        async def decided(gate: Gate, *given: Any) -> Grant:
            self._inside = True
            try:
                grant = await decide(gate, *given)
            finally:
                self._inside = False
            self.log.append(("granted", grant))
            return grant

        def remembered(gate: Gate, *given: Any) -> Grant | None:
            grant = known(gate, *given)
            if grant is not None and not self._inside:
                self.log.append(("granted", grant))
            return grant

        async def handed(executor: Executor, grant: Grant, *given: Any) -> Any:
            self.log.append(("ran", grant))
            return await run(executor, grant, *given)

        async def resumed(executor: Executor, grant: Grant, *given: Any) -> Any:
            self.log.append(("ran", grant))
            return await resume(executor, grant, *given)

        monkeypatch.setattr(Gate, "decide", decided)
        monkeypatch.setattr(Gate, "known", remembered)
        monkeypatch.setattr(Executor, "run", handed)
        monkeypatch.setattr(Executor, "resume", resumed)

    def once(self) -> None:
        """Exactly one grant, and what ran had that very grant."""
        [(first, grant), (second, handed)] = self.log
        assert (first, second) == ("granted", "ran")
        assert handed is grant
        self.log.clear()


@pytest.mark.req("G1", "X1")
async def test_55_every_entry_passes_the_gate_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    async with two_tenants(tmp_path) as (gate, door, keys):
        for _cold_then_warm in range(2):
            await gate.call("echo", HI, caller=ANN)
            watched.once()
            await gate.toolbox(ANN).call("echo", HI)
            watched.once()
            answer = await door.ask("POST", "/v1/call", keys["acme"], {"tool": "echo", "args": HI})
            assert answer.status == 200
            watched.once()
            one = {"tool": "echo", "args": HI}
            said = {"tool_name": "echo", "tool_args": HI}
            assert (await gate.batch([one], caller=ANN)).ok
            watched.once()
            assert (await gate.chain([one], caller=ANN)).ok
            watched.once()
            assert await gate.toolbox(ANN).run(said)
            watched.once()
            for path, body in (
                ("/v1/batch", {"calls": [one]}),
                ("/v1/chain", {"steps": [one]}),
                ("/v1/messages", {"message": said}),
            ):
                assert (await door.ask("POST", path, keys["acme"], body)).status == 200
                watched.once()
        for method, path in (("GET", "/v1/tools"), ("GET", "/v1/tools/echo")):
            assert (await door.ask(method, path, keys["acme"])).status == 200
        assert watched.log == [], "what only looks hands nothing to the executor"


@tool(effect="compensatable", compensation={"tool": "unbook", "args": {"id": "$args.id"}})
def book(id: str) -> str:  # noqa: A002
    """Book it; of some nobody hears the end."""
    if id == "lost":
        raise RuntimeError(id)
    return id


@tool(effect="idempotent")
def unbook(id: str) -> str:  # noqa: A002
    """Give it back."""
    return id


@pytest.mark.req("G1", "X1")
async def test_55_undo_run_again_and_recovery_pass_the_gate_for_what_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    async with open_gate(tmp_path) as gate:
        gate.add(book, unbook)
        done = await gate.call("book", {"id": "a"}, caller=ME)
        watched.once()
        assert (await gate.undo(caller=ME, call_id=done.call_id)).ok
        # Whether it may be taken back is decided before anything is marked, and once more as a
        # call of its own.
        (asked, _first), *rest = watched.log
        assert asked == "granted"
        watched.log = rest
        watched.once()

        lost = await gate.call("book", {"id": "lost"}, caller=ME)
        watched.once()
        again = await gate.settling.again("acme", lost.call_id, who="root", why="nothing came")
        assert again.call_id != lost.call_id
        watched.once()

        marked = await gate.call("unbook", {"id": "b"}, caller=ME)
        watched.once()
        await _left_behind(tmp_path, marked.call_id)
        await gate.recovery.sweep()
        watched.once()
        entry = await gate.ledger.find("acme", marked.call_id)
        assert entry is not None
        assert (entry.state, entry.fence) == ("succeeded", 2)


async def _left_behind(root: Path, call_id: str) -> None:
    """As if its process had been killed in the middle of it."""
    with closing(sqlite3.connect(root / STORE)) as connection:
        changed = connection.execute(
            "UPDATE tool_execution_log SET state = 'started', lease_ns = 1, result = NULL, "
            "owner = 'gone', ended_ns = 0 WHERE call_id = ?",
            (call_id,),
        )
        assert changed.rowcount == 1
        connection.commit()


@tool(execution="queued", effect="irreversible")
def later(id: str) -> str:  # noqa: A002
    """Do it when a worker comes to it."""
    return id


@pytest.mark.req("G1", "X1", "P6")
async def test_55_a_queued_call_passes_the_gate_when_it_is_put_and_again_when_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time once: what was allowed when it was put may be forbidden by now."""
    watched = Watched(monkeypatch)
    async with open_gate(tmp_path) as gate:
        gate.add(later)
        for _cold_then_warm in range(2):
            assert (await gate.call("later", {"id": "a"}, caller=ME)).data == "a"
            passed, watched.log = watched.log, []
            for at in (0, 2):
                watched.log = passed[at : at + 2]
                watched.once()
            assert len(passed) == 4


@pytest.mark.req("G1", "X1")
def test_55_the_command_line_passes_the_gate_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    (tmp_path / "toolgate.toml").touch()
    given = ["echo", "--args", '{"text": "hi"}', "--config", str(tmp_path / "toolgate.toml")]
    assert CliRunner().invoke(app, ["call", *given]).exit_code == 0
    watched.once()
    hidden = ["no_tool", *given[1:]]
    assert CliRunner().invoke(app, ["call", *hidden]).exit_code == 1
    assert watched.log == []


async def _without_the_gate(gate: Toolgate, _watched: Watched) -> None:
    spec = gate.catalog.current.specs["echo"]
    forged = Grant(ANN, spec, catalog_revision=1, tenancy_revision=1, needs_a_person=False)
    assert (await gate._executor.run(forged, HI, None)).ok


async def _on_the_grant_of_another(gate: Toolgate, _watched: Watched) -> None:
    grant = await gate.gate.decide(ANN, "echo", HI)
    other = Grant(grant.caller, grant.spec, 1, 1, needs_a_person=False)
    assert (await gate._executor.run(other, HI, None)).ok


async def _twice_on_one_grant(gate: Toolgate, _watched: Watched) -> None:
    grant = await gate.gate.decide(ANN, "echo", HI)
    for _ in range(2):
        assert (await gate._executor.run(grant, HI, None)).ok


async def _asked_after_it_ran(gate: Toolgate, watched: Watched) -> None:
    await _without_the_gate(gate, watched)
    await gate.gate.decide(ANN, "echo", HI)


@pytest.mark.req("G1", "X1")
@pytest.mark.parametrize(
    "entry",
    [_without_the_gate, _on_the_grant_of_another, _twice_on_one_grant, _asked_after_it_ran],
)
async def test_55_an_entry_that_goes_round_the_gate_runs_the_tool_and_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: Any
) -> None:
    """The guard-off control: such an entry works, and the sweep above would fail on it."""
    watched = Watched(monkeypatch)
    async with two_tenants(tmp_path) as (gate, _door, _keys):
        await entry(gate, watched)
        with pytest.raises((AssertionError, ValueError)):
            watched.once()
        watched.log.clear()
        await gate.call("echo", HI, caller=ANN)
        watched.once()


PLANTED: list[tuple[Callable[[], None], str]] = [
    (
        architecture.test_only_the_gate_builds_a_grant,
        "runtime._executor.run(Grant(caller, spec, 1, 1, False), args, None)",
    ),
    (
        architecture.test_only_the_executor_builds_a_call_and_runs_a_provider,
        "provider.run(call)",
    ),
    (
        architecture.test_only_the_executor_builds_a_call_and_runs_a_provider,
        "handler(Call('call_1', grant, args, None, 0))",
    ),
    (
        architecture.test_only_the_runtime_hands_a_grant_to_the_executor,
        "self._executor.run(grant, args, None)",
    ),
    (
        architecture.test_only_the_runtime_hands_a_grant_to_the_executor,
        "executor.run(grant, args, None)",
    ),
    *(
        (architecture.test_every_entry_that_can_run_a_tool_is_one_that_is_swept, door)
        for door in (
            "request.gate.call(tool, args, caller=caller)",
            "rt.call(tool, args, caller=caller)",
            "self._gate.call(tool, args, caller=caller)",
            "gate.toolbox(caller).call(tool, args)",
            "getattr(gate, 'call')(tool, args, caller=caller)",
        )
    ),
]


@pytest.mark.req("G1", "X1")
@pytest.mark.parametrize(("scan", "door"), PLANTED, ids=[door for _scan, door in PLANTED])
def test_55_a_planted_door_is_found_by_the_scan_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scan: Callable[[], None], door: str
) -> None:
    source = tmp_path / "toolgate"
    shutil.copytree(architecture.SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(architecture, "SOURCE", source)
    monkeypatch.setattr(architecture, "MODULES", sorted(source.rglob("*.py")))
    # The positive control: the house as it is.
    scan()
    planted = source / "server" / "side_door.py"
    planted.write_text(
        f"async def run(self, runtime, request):\n    return await {door}\n", "utf-8"
    )
    monkeypatch.setattr(architecture, "MODULES", sorted(source.rglob("*.py")))
    with pytest.raises(AssertionError):
        scan()
