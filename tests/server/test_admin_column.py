"""The administration column of docs/failures.md, cell by cell: a part is down, all is asked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.server.admins import ROUTES, House, prepare
from tests.server.serving import Serving
from tests.servers.fixtures import needed
from tests.servers.kafka import Kafka
from tests.servers.opa import Opa
from tests.servers.process import Process, free_port
from tests.servers.redis import Redis
from tests.servers.spicedb import SpiceDB

pytestmark = [pytest.mark.req("V2", "O2", "G8"), pytest.mark.timeout(180)]
SECRET = "TOOLGATE_COLUMN_SECRET"  # noqa: S105  the name of a variable
# It has a call run, which is decided as any other.
AGAIN = "POST calls/{failed}/again"
Refused = Mapping[str, tuple[int, str]]
NOTHING: Refused = {}


class Cell(NamedTuple):
    """A part that is down, how a house is told of it, and what is refused meanwhile."""

    kind: Callable[[], Process]
    settings: str
    refused: Refused = NOTHING
    # The same while the part is there.
    anyway: Refused = NOTHING


CELLS = {
    "OPA": Cell(
        Opa,
        '[policy]\nengine = "opa"\nurl = "http://127.0.0.1:{port}"\n',
        # What agents may call is what it decides.
        dict.fromkeys(
            (AGAIN, "GET tools?tenant=acme", "GET export?tenant=acme"), (503, "policy_unavailable")
        ),
    ),
    "SpiceDB": Cell(
        SpiceDB,
        '[relations]\nengine = "spicedb"\nurl = "grpc://127.0.0.1:{port}"\n'
        f'token_env = "{SECRET}"\n',
        dict.fromkeys(
            ("GET relations?tenant=acme", "POST relations", AGAIN), (503, "relations_unavailable")
        ),
        # Nobody stands in any relation to that tool.
        {AGAIN: (404, "tool_not_found")},
    ),
    "Redis": Cell(
        Redis,
        '[cache]\nurl = "redis://127.0.0.1:{port}/0"\n',
        # One of the routes has set a rate limit.
        {AGAIN: (503, "limits_unavailable")},
    ),
    "Kafka": Cell(Kafka, '[queue]\nurl = "kafka://127.0.0.1:{port}"\n'),
}
# Parts that are not there from the start.
AWAY = {
    "receiver of events": f'[events]\nurl = "http://127.0.0.1:{{port}}"\nsecret_env = "{SECRET}"\n',
    "sandbox": '[sandbox]\nkind = "sandlock"\n',
}


def refused(house: House) -> Refused:
    """What does not answer with 200, of all that an admin can ask."""
    found: dict[str, tuple[int, str]] = {}
    for one in ROUTES:
        house.prepare(one)
        answer = house.ask("admin", one)
        if answer.status != 200:
            found[str(one)] = answer.status, answer.body["code"]
    return found


@pytest.mark.parametrize("part", CELLS)
def test_with_a_server_stopped_administration_is_as_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    cell = CELLS[part]
    keys = prepare(tmp_path, calls=True)
    with needed(cell.kind) as server:
        monkeypatch.setenv(SECRET, server.token if isinstance(server, SpiceDB) else "")
        text = cell.settings.format(port=server.port)
        (tmp_path / "toolgate.toml").write_text(text, "utf-8")
        with Serving(tmp_path) as serving:
            house = House(serving, keys)
            # The control: it is the server, and nothing else.
            assert refused(house) == cell.anyway
            server.stop()
            assert refused(house) == cell.refused


@pytest.mark.parametrize("part", AWAY)
def test_with_a_part_away_from_the_start_administration_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setenv(SECRET, "a secret that signs events")
    keys = prepare(tmp_path, calls=True)
    text = AWAY[part].format(port=free_port())
    (tmp_path / "toolgate.toml").write_text(text, "utf-8")
    with Serving(tmp_path) as serving:
        assert refused(House(serving, keys)) == NOTHING
