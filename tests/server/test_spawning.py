"""Who does not run the house starts no program, whichever way it is described (CASES 116)."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.server.busy import Busy, busy

pytestmark = pytest.mark.req("V3")
# It would be started with the first look at it.
PROGRAM = {"command": ["/bin/sh", "-c", "exec sleep 600"]}
OTHERS = ("own", "operator", "approver", "agent", "other", "stranger", "nobody")
WAYS: tuple[tuple[str, str, Any], ...] = (
    ("PUT", "/v1/admin/servers/mine", PROGRAM),
    ("POST", "/v1/admin/servers/mine/test", PROGRAM),
    ("POST", "/v1/admin/servers/mine/test", {}),
    ("GET", "/v1/admin/servers/mine/diff", None),
    ("POST", "/v1/admin/servers/mine/approve", {"tools": {"x": "y"}}),
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Busy]:
    with busy(tmp_path_factory.mktemp("spawning"), before="\n") as served:
        yield served


def children(house: Busy) -> set[str]:
    """What the server has started, and has not ended."""
    parent = f"PPid:\t{house.server.process.pid}\n"
    found: set[str] = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if parent in status.read_text():
                found.add(status.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.parametrize("who", OTHERS)
def test_who_does_not_run_the_house_starts_no_program(house: Busy, who: str) -> None:
    before = children(house)
    for method, path, body in WAYS:
        answer = house.ask(who, method, path, body)
        assert answer.status == (401 if who == "nobody" else 403), (method, path)
    assert house.ask("admin", "GET", "/v1/admin/servers").body["servers"] == []
    assert children(house) == before


def test_who_does_may_keep_one_and_only_what_is_kept_is_reached(house: Busy) -> None:
    """The positive control."""
    missing = house.ask("admin", "POST", "/v1/admin/servers/mine/test", {})
    assert missing.status in {400, 404}, "what is not kept is not tried"
    kept = house.ask("admin", "PUT", "/v1/admin/servers/mine", PROGRAM)
    assert kept.status == 200, kept.text
    listed = house.ask("admin", "GET", "/v1/admin/servers").body["servers"]
    assert [one["name"] for one in listed] == ["mine"]
    assert house.ask("admin", "DELETE", "/v1/admin/servers/mine").status == 200
