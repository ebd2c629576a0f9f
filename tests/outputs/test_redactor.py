"""Secrets taken out of texts and JSON: the known ones, and those that tell themselves."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate import clock
from toolgate.settings.execution import Events
from toolgate.settings.gate import Policy
from toolgate.settings.secrets import known_secrets
from toolgate.settings.settings import Settings, Store
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.secret import secret_texts
from toolgate.spec.sieve import Sieve

pytestmark = pytest.mark.req("X6", "O2")
KNOWN = Redactor(["hunter2-Sekret", 'a"b\\c/d?', "the", "4815"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the key hunter2-Sekret was wrong", "the key [secret] was wrong"),
        ("https://ann:pass-word@host/x?y=1", "https://[secret]@host/x?y=1"),
        ("postgresql://u:p%40ss@db:5432/x", "postgresql://[secret]@db:5432/x"),
        ("https://ghp_token99@github.com", "https://[secret]@github.com"),
        ("Authorization: Bearer abc.def-123_x=", "Authorization: Bearer [secret]"),
        ("sent basic dXNlcjpwYXNzMTIz== to it", "sent basic [secret] to it"),
        ("k=a%22b%5Cc%2Fd%3F", "k=[secret]"),
        ("a basic understanding of bearer bonds", "a basic understanding of bearer bonds"),
        ("mail ann@example.com at http://host/a@b", "mail ann@example.com at http://host/a@b"),
        ("the short texts stay", "the short texts stay"),
        ("the pin 4815 is wrong", "the pin [secret] is wrong"),
    ],
)
def test_a_text_is_told_without_its_secrets(text: str, shown: str) -> None:
    assert KNOWN.text(text) == shown


def test_json_is_cleaned_in_names_values_and_headers() -> None:
    value = {
        "headers": {"Authorization": "Bearer x", "X-API-Key": "k", "accept": "text/html"},
        "hunter2-Sekret": 1,
        "list": ['a"b\\c/d?', {"url": "redis://:pw@host"}],
        "rest": [1, 2.5, True, None],
    }
    assert orjson.loads(KNOWN.raw(orjson.dumps(value))) == {
        "headers": {"Authorization": "[secret]", "X-API-Key": "[secret]", "accept": "text/html"},
        "[secret]": 1,
        "list": ["[secret]", {"url": "redis://[secret]@host"}],
        "rest": [1, 2.5, True, None],
    }


def test_a_secret_number_is_known_as_a_number_too() -> None:
    assert Redactor(["12345678"]).raw(b'{"pin":12345678,"n":1234567}') == (
        b'{"pin":"[secret]","n":1234567}'
    )


def test_what_holds_no_secret_is_handed_back_as_it_is() -> None:
    raw = b'{"text":"a basic text","n":[1,2]}'
    assert KNOWN.raw(raw) is raw
    assert KNOWN.knowing(["no", "5"]) is KNOWN


def test_what_its_schema_hides_is_hidden_from_the_same_length_on() -> None:
    schema = orjson.dumps({"properties": {"pin": {"type": "string", "secret": True}}})
    for pin in ("4815", "48151", "481516"):
        redactor = PLAIN.knowing(secret_texts(schema, {"pin": pin}))
        assert redactor.text(f"the pin {pin} is wrong") == "the pin [secret] is wrong"


MANY = [f"s{number:05d}x" for number in range(20_000)]


def test_many_secrets_in_a_long_text_take_no_longer_than_its_length() -> None:
    text = "y" * 300_000 + "s00007x, s1s19999x" + "s0000" * 1_000
    redactor = Redactor(MANY)
    began = clock.monotonic_ns()
    shown = redactor.text(text)
    took = (clock.monotonic_ns() - began) / 1e9
    assert shown == "y" * 300_000 + "[secret], s1[secret]" + "s0000" * 1_000
    # One after the other they take several seconds.
    assert took < 1.0
    assert orjson.loads(redactor.raw(orjson.dumps({"a": ["s00007x"], "s00009x": "no"}))) == {
        "a": ["[secret]"],
        "[secret]": "no",
    }


def test_where_looking_would_take_too_long_the_rest_is_hidden() -> None:
    alike = ["a" * number + "b" for number in range(4, 1_004)]
    began = clock.monotonic_ns()
    shown = Redactor(alike).text("before " + "a" * 200_000)
    assert (clock.monotonic_ns() - began) / 1e9 < 5.0
    assert shown.startswith("before ")
    assert shown.endswith("[secret]")


@given(st.text('abé"', max_size=60), st.lists(st.text('abé"', min_size=4, max_size=9)))
def test_many_secrets_are_found_as_few_are(text: str, secrets: list[str]) -> None:
    few = sorted(secrets, key=len, reverse=True)
    shown = Sieve(few).without(text)
    assert (shown == text) is not any(one in text for one in few)
    assert Sieve(few).holds(text) is any(one in text for one in few)
    assert not any(one in part for one in few for part in shown.split("[secret]"))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values, st.lists(st.text(min_size=6), max_size=3))
def test_no_known_secret_is_left_in_any_json(value: Any, secrets: list[str]) -> None:
    secrets = [one for one in secrets if one not in "[secret]"]
    raw = Redactor(secrets).raw(orjson.dumps({"value": value, "all": secrets}))
    found = orjson.loads(raw)

    def texts(node: Any) -> list[str]:
        if isinstance(node, dict):
            return [*node, *(text for of in node.values() for text in texts(of))]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(node, list):
            return [text for of in node for text in texts(of)]  # pyright: ignore[reportUnknownVariableType]
        return [node] if isinstance(node, str) else []

    for text in texts(found):
        for part in text.split("[secret]"):
            assert not any(secret in part for secret in secrets)


@given(values)
def test_cleaning_twice_is_cleaning_once(value: Any) -> None:
    once = PLAIN.value(value)
    assert PLAIN.value(once) == once


def test_the_settings_secrets_are_those_of_their_variables_and_addresses() -> None:
    settings = Settings(
        store=Store(url="postgresql://ann:p%40ss-word@db/x"),
        policy=Policy(token_env="TOKEN_OF_OPA"),  # noqa: S106  a name, no secret
        events=Events(url="https://hook", secret_env="HOOK"),  # noqa: S106
    )
    found = known_secrets(settings, {"TOKEN_OF_OPA": "opa-token", "HOOK": "hook-secret", "X": "x"})
    assert found == {"p%40ss-word", "p@ss-word", "opa-token", "hook-secret"}
