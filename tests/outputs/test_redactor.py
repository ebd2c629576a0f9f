"""Secrets taken out of texts and JSON: the known ones, and those that tell themselves."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.settings.execution import Events
from toolgate.settings.gate import Policy
from toolgate.settings.secrets import known_secrets
from toolgate.settings.settings import Settings, Store
from toolgate.spec.redactor import PLAIN, Redactor

pytestmark = pytest.mark.req("X6", "O2")
KNOWN = Redactor(["hunter2-Sekret", 'a"b\\c/d?', "short"])


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
        ("short texts stay", "short texts stay"),
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
