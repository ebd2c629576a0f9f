"""Ids of sessions that say by themselves how they were begun: nobody else's, and not made up."""

import hmac
from typing import Any

import pytest

from toolgate import clock
from toolgate.server.mcp.passport import LIFE_NS, Passports, name_of

pytestmark = pytest.mark.req("V1", "V3")
SECRET = b"s" * 32
LEGACY = "2025-11-25"


def test_another_node_reads_what_one_has_issued() -> None:
    id_ = Passports(SECRET).issue(LEGACY, {"elicitation": {}}, "key-1")
    found = Passports(SECRET).read(id_, "key-1")
    assert found is not None
    assert found == (name_of(id_), LEGACY, {"elicitation": {}})
    assert id_.isascii()
    assert id_.isprintable()


def tampered(id_: str) -> list[str]:
    name, body, signature = id_.split(".")
    other = Passports(SECRET).issue(LEGACY, {}, "key-1").split(".")
    return [
        "",
        name,
        f"{name}.{body}",
        f"{name}.{body}.",
        f"{name}.{body}.{signature}A",
        f"{other[0]}.{body}.{signature}",
        f"{name}.{other[1]}.{signature}",
        f"{name}.{body}.{other[2]}",
        f"{name}.{body}.{signature}" + "." * 5_000,
        f"{name}.{body}.ü",
    ]


def test_what_is_tampered_with_or_anothers_is_no_session() -> None:
    passports = Passports(SECRET)
    id_ = passports.issue(LEGACY, {"elicitation": {}}, "key-1")
    assert passports.read(id_, "key-1") is not None
    for wrong in tampered(id_):
        assert passports.read(wrong, "key-1") is None, wrong
    assert passports.read(id_, "key-2") is None
    assert Passports(b"t" * 32).read(id_, "key-1") is None
    # Without a secret there is one for this process alone, and never an empty one.
    assert Passports(b"").read(Passports(b"").issue(LEGACY, {}, "key-1"), "key-1") is None


def believed(*_: object) -> bool:
    """The guard, taken out."""
    return True


def test_without_the_signature_it_would_be_anybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard-off control."""
    id_ = Passports(SECRET).issue(LEGACY, {}, "key-1")
    monkeypatch.setattr(hmac, "compare_digest", believed)
    assert Passports(SECRET).read(id_, "key-2") is not None


def test_it_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    passports = Passports(SECRET)
    id_ = passports.issue(LEGACY, {}, "key-1")
    now_ns = clock.unix_ns()
    monkeypatch.setattr(clock, "unix_ns", lambda: now_ns + LIFE_NS - 10**9)
    assert passports.read(id_, "key-1") is not None
    monkeypatch.setattr(clock, "unix_ns", lambda: now_ns + LIFE_NS + 10**9)
    assert passports.read(id_, "key-1") is None


def test_of_a_client_that_says_very_much_only_what_counts_is_kept() -> None:
    said: dict[str, Any] = {"experimental": {"x": "y" * 100_000}, "sampling": {"tools": {}}}
    id_ = Passports(SECRET).issue(LEGACY, said, "key-1")
    assert len(id_) < 500
    found = Passports(SECRET).read(id_, "key-1")
    assert found is not None
    assert found.capabilities == {"sampling": {}}


def test_an_answer_goes_to_the_node_that_asked_this_session_and_to_no_other() -> None:
    passports = Passports(SECRET)
    asked = passports.question("0a1b2c3d", "session-1")
    assert passports.asked_by(asked, "session-1") == "0a1b2c3d"
    assert passports.asked_by(asked, "session-2") == ""
    for wrong in (
        "",
        "tg",
        "tg-",
        "tg-0a1b2c3d",
        asked[:-1],
        asked + "A",
        "x" + asked[1:],
        "tg-ü-",
    ):
        assert passports.asked_by(wrong, "session-1") == "", wrong
    moved = asked.replace("0a1b2c3d", "ffffffff")
    assert passports.asked_by(moved, "session-1") == ""
