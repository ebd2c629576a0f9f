"""A secret among the arguments is not repeated to whoever called, and not kept."""

from typing import Any

import pytest

from toolgate import Caller, tool
from toolgate.errors import InvalidArguments
from toolgate.executor import validate
from toolgate.executor.recording.remember import Remember
from toolgate.spec.secret import HOLDS, UNTOLD
from toolgate.testing.history import MemoryHistory
from toolgate.testing.house import in_memory

pytestmark = pytest.mark.req("O2", "X5")
ME = Caller(tenant="acme", agent="billing", session="s-1")
CANARY = "hunter2-Sekret"
PASSWORD: dict[str, Any] = {"type": "string", "format": "password", "pattern": "^a"}
LOGIN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "password": PASSWORD,
        "keys": {"type": "array", "items": {"$ref": "#/$defs/key"}},
        "user": {"type": "string", "maxLength": 3},
        "more": {"type": "object"},
    },
    "$defs": {"key": {"type": "string", "writeOnly": True, "maxLength": 3}},
}


async def refused(schema: dict[str, Any], args: dict[str, Any]) -> InvalidArguments:
    @tool(effect="irreversible", input_schema=schema)
    async def login(**args: Any) -> None: ...

    async with in_memory(login) as house:
        with pytest.raises(InvalidArguments) as raised:
            await house.call("login", args, caller=ME)
    return raised.value


def shown(error: InvalidArguments) -> str:
    return f"{error.message} {error!r} {error.details!r}"


CASES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, {"password": CANARY}, "/password", UNTOLD),
    ({}, {"keys": ["abc", CANARY]}, "/keys", UNTOLD),
    ({"minProperties": 9}, {"keys": [CANARY]}, "", HOLDS),
    ({"oneOf": [{"required": ["x"]}, False]}, {"password": CANARY}, "", HOLDS),
    ({"not": {"required": ["more"]}}, {"more": {"a": [{"password": CANARY}]}}, "", HOLDS),
    ({"if": True, "then": False}, {"user": "ann", "password": CANARY * 40}, "", HOLDS),
    ({}, {"password": "aaa-known", "user": "aaa-known"}, "/user", HOLDS),
    ({"additionalProperties": PASSWORD}, {"another": CANARY}, "", UNTOLD),
]


@pytest.mark.parametrize(("more", "args", "pointer", "message"), CASES)
async def test_what_is_wrong_with_a_secret_is_told_without_it(
    more: dict[str, Any], args: dict[str, Any], pointer: str, message: str
) -> None:
    error = await refused(LOGIN | more, args)
    assert {"pointer": pointer, "message": message} in error.details["problems"]
    assert CANARY not in shown(error)
    assert "aaa-known" not in shown(error)


@pytest.mark.parametrize(("more", "args", "pointer", "message"), CASES)
async def test_without_the_guard_the_secret_would_be_told(
    more: dict[str, Any],
    args: dict[str, Any],
    pointer: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def as_they_are(_schema: bytes, _args: Any, problems: Any) -> Any:
        return problems

    monkeypatch.setattr(validate, "without_values", as_they_are)
    text = shown(await refused(LOGIN | more, args))
    assert CANARY in text or "aaa-known" in text
    assert message not in text


async def test_what_is_wrong_beside_a_secret_is_told_as_ever() -> None:
    schema = LOGIN | {"additionalProperties": False, "required": ["password", "more"]}
    error = await refused(schema, {"password": "abc", "user": "long-name", "extra": 1})
    problems = sorted((one["pointer"], one["message"]) for one in error.details["problems"])
    assert problems == [
        ("", '"more" is a required property'),
        (
            "",
            (
                "Additional properties are not allowed ('extra' was unexpected); "
                "known: 'password', 'keys', 'user', 'more'"
            ),
        ),
        ("/user", '"long-name" is longer than 3 characters'),
    ]


async def test_a_call_that_fits_is_not_looked_at_for_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError

    @tool(effect="irreversible", input_schema=LOGIN)
    async def login(**args: Any) -> Any:
        return args

    monkeypatch.setattr(validate, "without_values", never)
    async with in_memory(login) as house:
        given = {"password": "abc", "keys": ["k"], "user": "ann"}
        assert (await house.call("login", given, caller=ME)).data == given


@pytest.mark.parametrize("mark", [{"writeOnly": True}, {"writeOnly": False}])
async def test_a_secret_behind_a_condition_is_not_remembered(mark: dict[str, Any]) -> None:
    token = {"if": {"type": "string"}, "then": {"anyOf": [{"type": "string", **mark}]}}

    @tool(effect="pure", input_schema={"type": "object", "properties": {"a": token, "b": {}}})
    async def act(**args: Any) -> None: ...

    history = MemoryHistory()
    async with in_memory(act, extensions=[Remember(history, lambda: True)]) as house:
        await house.call("act", {"a": CANARY, "b": 1}, caller=ME)
    [past] = history.calls.values()
    assert past.args == ({"b": 1} if mark["writeOnly"] else {"a": CANARY, "b": 1})
