"""Old and new versions at one store: a rolling upgrade, and back again.

The old version is a commit of this repository, whose store is of an earlier revision. Without its
history, as in a shallow clone, there is none to start.
"""

import os
import re
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.fleet.house import FILES
from tests.fleet.nodes import Fleet, Node, made_database
from tests.server.serving import COMMAND
from tests.servers.fixtures import lacking, needed
from tests.servers.postgres import Postgres
from tests.servers.process import ROOT, free_port
from tests.servers.redis import Redis
from toolgate.store.migrate import VERSION

pytestmark = pytest.mark.req("D2", "S2")
MIGRATE = "src/toolgate/store/migrate.py"
MIGRATIONS = "src/toolgate/store/migrations/versions"
SETTINGS = '\n[relations]\nengine = "off"\n'


def git(*words: str) -> bytes:
    found = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    return found.stdout if found.returncode == 0 else b""


def older() -> str:
    """The newest commit whose store is of an earlier revision, as it is made today."""
    for commit in git("log", "--format=%H", "--", MIGRATE).decode().split():
        made = re.search(rb'^VERSION = "(\d+)"', git("show", f"{commit}:{MIGRATE}"), re.MULTILINE)
        if made is not None and made[1].decode() < VERSION and _is_as_today(commit):
            return commit
    return ""


def _is_as_today(commit: str) -> bool:
    """While it is worked on, a migration is another one from commit to commit."""
    names = git("ls-tree", "--name-only", commit, f"{MIGRATIONS}/").decode().split()
    return all(
        (ROOT / name).is_file() and (ROOT / name).read_bytes() == git("show", f"{commit}:{name}")
        for name in names
    )


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of it."""
    commit = older()
    if not commit:
        lacking("no commit of an older store is in this clone's history")
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(fileobj=BytesIO(git("archive", commit, "src"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def started(fleet: Fleet, number: int, source: Path) -> Node:
    """A node of that source, in one of the fleet's folders."""
    before = f"import sys; sys.path.insert(0, {str(source)!r}); "
    return Node(fleet.folder(number), free_port(), before)


def act(node: Node, key: str, text: str) -> bool:
    """Whether it was done; the answer says whether it was done before."""
    body = {"tool": "mark", "args": {"text": text}, "idempotency_key": f"k-{text}", "wait_s": 20}
    answer = node.ask("POST", "/v1/call", key=key, body=body)
    assert answer.status == 200, answer.text
    assert answer.body["data"]["marked"] == text
    return not answer.body["cached"]


@pytest.mark.timeout(180)
def test_old_and_new_serve_one_store_together_forward_and_back(
    old: Path, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with needed(Redis) as redis:
        fleet = Fleet(
            tmp_path_factory.mktemp("rolling"),
            nodes=2,
            store=made_database(postgres),
            redis=redis.url,
            files=FILES,
            settings=SETTINGS,
        )
        with started(fleet, 0, old) as first:
            # Keys are made by the old version's own code: this one would upgrade its store.
            keys = made_keys(fleet, old)
            assert act(first, keys, "old-alone")
            with started(fleet, 1, ROOT / "src") as second:
                # The store is upgraded under the old node, which goes on.
                assert not act(second, keys, "old-alone")
                for number in range(4):
                    here, there = (first, second) if number % 2 else (second, first)
                    assert act(here, keys, f"both-{number}")
                    assert not act(there, keys, f"both-{number}")
                listed = [one.get("/v1/ledger", keys).body["calls"] for one in (first, second)]
                assert [one["call_id"] for one in listed[0]] == [
                    one["call_id"] for one in listed[1]
                ]
            # The new one is gone again, and the old one has all that it did.
            assert act(first, keys, "old-again")
            assert not act(first, keys, "both-2")
        if b"MOST_NEWER" in (old / "toolgate" / "store" / "migrate.py").read_bytes():
            with started(fleet, 0, old) as back:
                assert act(back, keys, "back")
                assert not act(back, keys, "both-3")
        else:
            assert "newer" in refused(fleet, old)
        marked = fleet.marked()
    assert {marked[f"both-{number}"] for number in range(4)} == {1}
    assert marked["old-alone"] == marked["old-again"] == 1


def refused(fleet: Fleet, source: Path) -> str:
    """What a start says that comes to nothing."""
    code = f"import sys; sys.path.insert(0, {str(source)!r}); " + COMMAND[2]
    ended = subprocess.run(
        [*COMMAND[:2], code, "serve", "--port", "0"],
        cwd=fleet.folder(0),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode != 0
    return ended.stderr


def made_keys(fleet: Fleet, source: Path) -> str:
    """By the old version's command line: an agent, and its key."""
    words = ["keys", "add", "--tenant", "acme", "--agent", "billing", "--role", "agent", "--create"]
    made = subprocess.run(
        [*COMMAND, *words],
        cwd=fleet.folder(0),
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"tg_agent_[\w-]+", made.stdout)
    assert found is not None, made.stdout + made.stderr
    return found[0]
