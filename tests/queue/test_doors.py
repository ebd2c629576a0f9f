"""Queued calls at the doors of a real server: how they stand, dead ones, and trying them again."""

import asyncio
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.house import ME, STORE, until
from tests.server.busy import Busy, busy
from tests.server.serving import COMMAND
from tests.store.places import open_at
from toolgate import Call, Caller, Extension, Toolgate, tool
from toolgate.errors import CallNotFound, ProviderUnavailable
from toolgate.executor.extension import Priority
from toolgate.queue.shipping import Poison
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Settings
from toolgate.store.shipping import TableShipping

pytestmark = pytest.mark.req("P6", "V2", "V5")
QUEUED = """\
  - name: later
    config: {module: busy_tools, function: hold}
    effect: irreversible
    execution: queued
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("queued"), more=QUEUED) as served:
        yield served


async def test_a_queued_call_is_shown_while_it_waits_and_when_it_is_over(house: Busy) -> None:
    here = house.server.root / "first"
    body = {"tool": "later", "args": {"path": str(here)}, "wait_s": 0}
    told = house.ask("agent", "POST", "/v1/call", body).body
    assert (told["status"], told["error"]["code"]) == ("queued", "queued")
    of = f"/v1/calls/{told['call_id']}"
    shown = house.ask("agent", "GET", of).body
    assert shown["queue"]["stage"] in {"waiting", "taken"}
    assert shown["output"] is None
    await until(Path(f"{here}.begun").exists)
    for stranger in ("intern", "bob", "stranger"):
        assert house.ask(stranger, "GET", of).status == 404
    here.touch()
    ended = house.ask("agent", "GET", f"{of}?wait_s=20").body
    assert (ended["state"], ended["queue"]["stage"]) == ("succeeded", "done")
    assert ended["output"]["data"] == "let go"
    admin = house.ask("own", "GET", f"/v1/admin/calls/{told['call_id']}?tenant=acme").body
    assert admin["queue"] == ended["queue"]


async def test_the_second_of_a_turn_is_shown_as_answered_by_the_first(house: Busy) -> None:
    here = house.server.root / "once"
    turn = {"turn": {"group": "twice"}, "wait_s": 0}
    body = {"tool": "later", "args": {"path": str(here)}, **turn}
    first = house.ask("agent", "POST", "/v1/call", body).body
    second = house.ask("agent", "POST", "/v1/call", body).body
    assert (first["status"], second["status"]) == ("queued", "queued")
    here.touch()
    of = second["call_id"]
    shown = house.ask("agent", "GET", f"/v1/calls/{of}?wait_s=20").body
    assert (shown["call_id"], shown["answered_by"]) == (of, first["call_id"])
    assert (shown["state"], shown["output"]["data"]) == ("succeeded", "let go")
    assert house.ask("bob", "GET", f"/v1/calls/{of}").status == 404
    admin = house.ask("own", "GET", f"/v1/admin/calls/{of}?tenant=acme").body
    assert (admin["state"], admin["answered_by"]) == ("succeeded", first["call_id"])
    third = house.ask("agent", "POST", "/v1/call", body).body
    assert (third["status"], third["data"], third["cached"]) == ("success", "let go", True)


async def test_who_follows_a_queued_call_is_told_its_id_at_once(house: Busy) -> None:
    here = house.server.root / "followed"
    body = {"tool": "later", "args": {"path": str(here)}}
    with house.stream("agent", "POST", "/v1/call", body) as (response, events):
        assert response.status == 200
        name, told = next(events)
        assert (name, told.keys()) == ("queued", {"call_id"})
    # The stream is lost before the call is over: by its id it is still found.
    of = f"/v1/calls/{told['call_id']}"
    await until(Path(f"{here}.begun").exists)
    assert house.ask("agent", "GET", of).body["queue"]["stage"] == "taken"
    here.touch()
    ended = house.ask("agent", "GET", f"{of}?wait_s=20").body
    assert (ended["state"], ended["output"]["data"]) == ("succeeded", "let go")


async def test_the_answer_comes_in_time_to_who_waits(house: Busy) -> None:
    here = house.server.root / "second"
    here.touch()
    told = house.ask("agent", "POST", "/v1/call", {"tool": "later", "args": {"path": str(here)}})
    assert (told.status, told.body["status"], told.body["data"]) == (200, "success", "let go")


def test_how_much_there_is_to_do_is_for_who_runs_the_house(house: Busy) -> None:
    assert house.ask("admin", "GET", "/v1/admin/queue").body["dead"] == 0
    assert house.ask("own", "GET", "/v1/admin/queue").status == 403
    assert house.ask("own", "GET", "/v1/admin/queue/dead").body == {"calls": [], "next": None}


def test_a_dead_call_is_tried_again_by_who_may_settle_calls_of_its_tenant(house: Busy) -> None:
    path, body = "/v1/admin/queue/call_none/retry", {"tenant": "acme", "why": "mended"}
    assert house.ask("own", "POST", path, body).body["code"] == "call_not_found"
    for who, status in {"agent": 403, "other": 403, "nobody": 401}.items():
        assert house.ask(who, "POST", path, body).status == status


async def _buried(root: Path, *places: str) -> None:
    """Messages that nobody could read."""
    database = open_at(f"sqlite:///{root / STORE}")
    poison = [Poison(place=one, content=b"?", why="it cannot be read") for one in places]
    await TableShipping(database).bury(poison)
    await database.close()


async def test_what_nobody_could_read_is_discarded_by_who_runs_the_house(house: Busy) -> None:
    await _buried(house.server.root, "requests/0/7", "requests/1/8", "requests/1/9")
    one, body = "/v1/admin/queue/requests%2F0%2F7/discard", {"why": "garbage"}
    for who, status in {"own": 404, "operator": 404, "agent": 403, "nobody": 401}.items():
        assert house.ask(who, "POST", one, body).status == status
        told = house.ask(who, "POST", "/v1/admin/queue/discard", body).status
        assert told == (401 if who == "nobody" else 403)
    assert house.ask("admin", "POST", one, {**body, "tenant": "acme"}).status == 404
    assert house.ask("admin", "GET", "/v1/admin/queue").body["dead"] == 3
    assert house.ask("admin", "POST", one, body).body == {"discarded": 1}
    assert house.ask("admin", "POST", "/v1/admin/queue/discard", body).body == {"discarded": 2}
    assert house.ask("admin", "GET", "/v1/admin/queue").body["dead"] == 0
    records = house.ask("admin", "GET", "/v1/admin/audit?limit=20").body["records"]
    found = [each for each in records if each["change"] == "queue_discarded"]
    assert [(each["why"], each["details"].get("unreadable")) for each in found] == [
        ("garbage", "2"),
        ("garbage", None),
    ]
    assert {each["who"] for each in found} == {house.ids["admin"]}


class Sick(Extension):
    """What a tool needs cannot be reached, until it can."""

    priority = Priority.HIGH

    def __init__(self) -> None:
        self.is_well = False
        self.tried = 0

    def before(self, _call: Call) -> None:
        self.tried += 1
        if not self.is_well:
            raise ProviderUnavailable("The machine is switched off.")


@tool(execution="queued", effect="irreversible")
def work(number: int) -> int:
    """Do it."""
    return number


async def _dead(root: Path, sick: Sick) -> str:
    """A call that was tried as often as it may."""
    settings = Settings(root=root, queue=Fleet(attempts=2))
    async with Toolgate.open(settings, extensions=[sick]) as gate:
        gate.add(work)
        output = await gate.call("work", {"number": 1}, caller=ME)
        assert output.error is not None
        assert output.error.code == "undelivered", output
        return output.call_id


async def test_what_cannot_be_begun_is_tried_a_few_times_and_is_dead_then(tmp_path: Path) -> None:
    sick = Sick()
    call_id = await _dead(tmp_path, sick)
    assert sick.tried == 2
    settings = Settings(root=tmp_path, queue=Fleet(attempts=2))
    async with Toolgate.open(settings, extensions=[sick]) as gate:
        [dead] = await gate.queue.dead.page("acme")
        assert (dead.call_id, dead.tool, dead.agent) == (call_id, "work", "billing")
        assert "switched off" in dead.why
        assert await gate.queue.dead.page("other") == []
        assert (await gate.find("acme", call_id)).shown()["state"] == "failed"
        sick.is_well = True
        gate.add(work)
        again = gate.queue.dead.again
        assert not await again("other", call_id, who="ops", why="mended")
        assert await again("acme", call_id, who="ops", why="mended")
        assert not await again("acme", call_id, who="ops", why="twice")
        async with asyncio.timeout(20):
            while (await gate.find("acme", call_id)).is_open:  # noqa: ASYNC110  nobody is told
                await asyncio.sleep(0.02)
        found = (await gate.find("acme", call_id)).shown()
        assert (found["state"], found["output"]["data"]) == ("succeeded", 1)
        assert sick.tried == 3
        [record] = [
            one for one in await gate.tenancy.audit(tenant="acme") if one.change == "queue_retried"
        ]
        assert (record.who, record.why) == ("ops", "mended")
        with pytest.raises(CallNotFound):
            await gate.find("acme", "call_none")
        assert not (await gate.find("acme", call_id)).is_of(Caller(tenant="acme", agent="other"))


async def test_a_call_that_is_given_up_is_told_as_before_and_never_runs(tmp_path: Path) -> None:
    sick = Sick()
    call_id = await _dead(tmp_path, sick)
    async with Toolgate.open(Settings(root=tmp_path), extensions=[sick]) as gate:
        gate.add(work)
        before = (await gate.find("acme", call_id)).shown()
        assert await gate.queue.dead.discard("acme", call_id, who="ops", why="too late")
        after = (await gate.find("acme", call_id)).shown()
        assert (after["state"], after["output"]) == ("failed", before["output"])
        assert not await gate.queue.dead.again("acme", call_id, who="ops", why="mended")
        [record] = [
            one
            for one in await gate.tenancy.audit(tenant="acme")
            if one.change == "queue_discarded"
        ]
        assert (record.who, record.why) == ("ops", "too late")
        assert record.details["call_id"] == call_id


@pytest.mark.timeout(180)
def test_the_command_line_gives_up_what_is_dead_here_and_on_a_server(
    tmp_path: Path, house: Busy
) -> None:
    call_id = asyncio.run(_dead(tmp_path, Sick()))
    there = ("--url", f"http://127.0.0.1:{house.server.port}")
    for root in (tmp_path, house.server.root):
        asyncio.run(_buried(root, "requests/0/1", "requests/0/2", "requests/0/3"))

    def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "queue", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environ},
        )

    doctor = [*COMMAND, "doctor", "--fleet", "--json"]
    found = subprocess.run(doctor, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "4 dead: toolgate queue dead, then retry or discard" in found.stdout
    assert "queue discard --unreadable" in run("dead").stdout
    for wrong in (("discard", "--why", "x"), ("discard", call_id, "--unreadable", "--why", "x")):
        assert run(*wrong).returncode == 2
    assert run("discard", call_id, "--why", "x").returncode == 1, "it is another tenant's"
    assert run("discard", call_id, "--tenant", "acme", "--why", "too late").returncode == 0
    for words in ((), there):
        key = {"TOOLGATE_KEY": house.secrets["admin"]} if words else {}
        one = run("discard", "requests/0/2", "--why", "garbage", *words, **key)
        assert (one.returncode, one.stdout) == (0, "requests/0/2 is discarded.\n"), one.stderr
        rest = run("discard", "--unreadable", "--why", "garbage", "--json", *words, **key)
        assert orjson.loads(rest.stdout) == {"discarded": 2}
        assert orjson.loads(run("show", "--json", *words, **key).stdout)["dead"] == 0


def test_the_command_line_shows_dead_calls_and_tries_them_again(tmp_path: Path) -> None:
    call_id = asyncio.run(_dead(tmp_path, Sick()))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "queue", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    shown = orjson.loads(run("show", "--json").stdout)
    assert (shown["waiting"], shown["dead"]) == (0, 1)
    listed = run("dead")
    assert call_id in listed.stdout
    assert "switched off" in listed.stdout
    wrong = run("retry", call_id, "--tenant", "other", "--why", "mended")
    assert wrong.returncode != 0
    assert "toolgate queue dead" in wrong.stderr
    assert run("retry", call_id, "--tenant", "acme", "--why", "mended").returncode == 0
    told: dict[str, Any] = orjson.loads(run("show", "--json").stdout)
    assert (told["waiting"], told["dead"]) == (1, 0)
