"""Administration while the store takes nothing: every change is refused, and none is made."""

import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.admins import CHANGES, House, prepare
from tests.server.serving import Serving

pytestmark = pytest.mark.req("V2", "O2", "D1")
READS = ("tenants", "agents?tenant=acme", "flags?tenant=acme", "layers?tenant=acme")


@contextmanager
def nothing_can_be_written(pid: int) -> Generator[None]:
    """The kernel refuses the server every write to a file, as a full disk would."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def test_without_a_store_nothing_is_changed_and_what_is_there_can_be_read(tmp_path: Path) -> None:
    keys = prepare(tmp_path, calls=True)
    with Serving(tmp_path) as server:
        house = House(server, keys)
        admin = keys["admin"].secret
        for asked in CHANGES:
            house.prepare(asked)
        before = [server.ask("GET", f"/v1/admin/{path}", key=admin).body for path in READS]
        failed: list[object] = []
        with nothing_can_be_written(server.process.pid):
            for asked in CHANGES:
                answer = house.ask("admin", asked)
                told = (answer.status, answer.body.get("code"), answer.body.get("retryable"))
                failed += [] if told == (503, "store_unavailable", True) else [(asked, told)]
            after = [server.ask("GET", f"/v1/admin/{path}", key=admin) for path in READS]
        assert failed == []
        assert [one.status for one in after] == [200] * len(READS)
        assert [one.body for one in after] == before
        # The control: it was the store, and nothing else.
        for asked in CHANGES:
            house.prepare(asked)
            assert house.ask("admin", asked).status == 200, asked
