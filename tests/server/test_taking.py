"""Who takes nothing of an answer is cut off; who takes it slowly gets all of it."""

import time
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from tests.server.raw import (
    GET,
    IMPATIENT,
    NARROW,
    PATIENT,
    everything,
    is_let_go,
    status_of,
    untaken,
)
from tests.server.serving import Serving


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("more", [b"", b"GET", (GET + b"\r\n") * 100])
def test_who_takes_nothing_of_an_answer_is_cut_off(tmp_path: Path, more: bytes) -> None:
    with (
        Serving(tmp_path, before=NARROW + IMPATIENT) as server,
        closing(untaken(server)) as connection,
    ):
        connection.sendall(more)
        assert is_let_go(server, 20)
        assert len(everything(connection)) < 100_000
        assert server.log == ""


@pytest.mark.req("V3")
def test_who_takes_an_answer_slowly_gets_all_of_it(tmp_path: Path) -> None:
    with (
        Serving(tmp_path, before=NARROW + IMPATIENT) as server,
        closing(untaken(server)) as connection,
    ):
        began = time.monotonic()
        told = b""
        while more := connection.recv(8192):
            told += more
            time.sleep(0.08)
        whole = server.get("/openapi.json", server.greeting["keys"]["agent"]).body
        assert time.monotonic() - began > 2, "longer than one may take nothing"
    head, _, body = told.partition(b"\r\n\r\n")
    assert (status_of(head), orjson.loads(body)) == (200, whole)


def test_who_takes_nothing_would_be_kept_without_the_guard(tmp_path: Path) -> None:
    with (
        Serving(tmp_path, before=NARROW + PATIENT) as server,
        closing(untaken(server)),
    ):
        assert not is_let_go(server, 3)
