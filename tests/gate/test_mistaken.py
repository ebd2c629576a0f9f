"""Attack 51: callers that could be mistaken for each other, or that nobody can be told of."""

# pyright: reportPrivateUsage=false
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.gate.random_worlds import module, opened
from toolgate import Caller
from toolgate.caller import Context
from toolgate.clock import utc_now
from toolgate.errors import InvalidArguments, InvalidRequest, ToolNotFound
from toolgate.gate.book import Book, Books
from toolgate.gate.policy import Health
from toolgate.gate.shared import permission_key


@pytest.mark.req("G1", "G8")
async def test_51_the_same_user_in_two_tenants_is_decided_and_cached_apart() -> None:
    async with opened() as house:
        await house.tenancy.relate("acme", add=["tool:pay#executor@user:ann"])
        ours, theirs = (
            Caller(tenant=tenant, agent="billing", user="ann") for tenant in ("acme", "umbrella")
        )
        for _ in range(3):
            assert (await house.call("pay", caller=ours)).ok
            with pytest.raises(ToolNotFound):
                await house.call("pay", caller=theirs)
            assert [spec.name for spec in await house.discover(ours)] == ["pay"]
            assert await house.discover(theirs) == ()


@pytest.mark.req("G1", "G8")
async def test_51_a_cache_that_forgot_the_tenant_would_let_the_other_one_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control."""
    original = Books.of

    def forgetful(books: Books, caller: Caller, *rest: Any) -> Book:
        return original(books, msgspec.structs.replace(caller, tenant="acme"), *rest)

    monkeypatch.setattr(Books, "of", forgetful)
    async with opened() as house:
        await house.tenancy.relate("acme", add=["tool:pay#executor@user:ann"])
        await house.call("pay", caller=Caller(tenant="acme", agent="billing", user="ann"))
        theirs = Caller(tenant="umbrella", agent="billing", user="ann")
        assert (await house.call("pay", caller=theirs)).ok


APART = [
    (Caller(tenant="a", agent="b_c"), Caller(tenant="a_b", agent="c")),
    (Caller(tenant="a", user="b"), Caller(tenant="a", persona="b")),
    (Caller(tenant="a", user="b", persona=""), Caller(tenant="a", user="", persona="b")),
    (Caller(tenant="a", persona="b:c", user="d"), Caller(tenant="a", persona="b", user="c:d")),
    (Caller(tenant="a", roles=("b", "c")), Caller(tenant="a", roles=("b,c",))),
    (Caller(tenant="a", roles=("b", "c")), Caller(tenant="a", roles=("b:c",))),
    (Caller(tenant="a", roles=("",)), Caller(tenant="a")),
    (Caller(tenant="a", session="s"), Caller(tenant="a", user="s")),
    *(
        (
            Caller(tenant="a", context=Context(facts=(("x", one),))),
            Caller(tenant="a", context=Context(facts=(("x", other),))),
        )
        for one, other in ((1, True), (1, 1.0), (True, 1.0), (0, False), (1, "1"), (0.0, False))
    ),
    (
        Caller(tenant="a", context=Context(allow=())),
        Caller(tenant="a", context=Context(allow=None)),
    ),
    (
        Caller(tenant="a", context=Context(allow=("x",))),
        Caller(tenant="a", context=Context(deny=("x",))),
    ),
    (
        Caller(tenant="a", agent="b").delegate("c"),
        Caller(tenant="a", agent="c"),
    ),
    (
        Caller(tenant="a", agent="b").delegate("c", allow=["x"]),
        Caller(tenant="a", agent="b").delegate("c", deny=["x"]),
    ),
]


@pytest.mark.req("G1", "G8")
@pytest.mark.parametrize(("one", "other"), APART)
async def test_callers_that_could_be_mistaken_for_each_other_have_books_of_their_own(
    one: Caller, other: Caller
) -> None:
    assert one != other
    async with opened(relations=False) as house:
        gate = house.gate
        assert gate._book(one) is not gate._book(other)
        assert gate._book(one) is gate._book(one)


@pytest.mark.req("G8")
@pytest.mark.parametrize(("one", "other"), APART)
async def test_callers_that_could_be_mistaken_for_each_other_share_no_key_between_nodes(
    one: Caller, other: Caller
) -> None:
    keys: list[set[str]] = []
    for caller in (one, other, one):
        shared = Kept()
        async with opened(relations=False, shared=shared) as house:
            await house.discover(caller)
        keys.append({*shared.values})
    assert keys[0] == keys[2]
    tasks = [(caller.context.allow, caller.context.deny) for caller in (one, other)]
    # What a task or a delegation leaves out is not asked about at all.
    if tasks[0] == tasks[1] and not one.delegation:
        assert keys[0]
        assert keys[0].isdisjoint(keys[1])


class Kept:
    """What a node would share."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        assert ttl_s > 0
        self.values[key] = value

    async def announce(self, revision: int) -> None:
        """Nobody listens."""

    def subscribe(self, on_change: Callable[[int], None]) -> None:
        """Nobody speaks."""

    def health(self) -> Health:
        return Health(engine="kept")


@pytest.mark.req("G8")
def test_no_persona_and_tenant_share_a_key_between_nodes() -> None:
    parts = ["a", "b", "a:b", ":", "", "a%3Ab", "%", "=", "A", "é", "a" * 65, "a" * 66]
    keys = {permission_key(tenant, persona, "q") for tenant in parts for persona in parts}
    assert len(keys) == len(parts) ** 2


@pytest.mark.req("G3")
async def test_a_fact_that_is_true_does_not_stand_for_one_that_is_one() -> None:
    rule = 'package toolgate\n\ndeny contains "a drill" if input.context.facts.drill == true\n'
    async with opened(relations=False) as house:
        await house.tenancy.set_policy_module("drill", rule)
        drill, plain = (
            Caller(tenant="acme", context=Context(facts=(("drill", value),))) for value in (True, 1)
        )
        for _ in range(2):
            assert await house.discover(drill) == ()
            assert len(await house.discover(plain)) == 4
            assert (await house.call("pay", caller=plain)).ok
            with pytest.raises(ToolNotFound):
                await house.call("pay", caller=drill)


@pytest.mark.req("G1")
@pytest.mark.parametrize(
    "odd",
    [
        {"user": "\ud800"},
        {"session": "\udcff"},
        {"persona": "\ud800"},
        {"roles": ("\ud800",)},
        {"context": Context(facts=(("n", 2**70),))},
        {"context": Context(facts=(("\ud800", 1),))},
    ],
)
async def test_a_caller_that_no_engine_can_be_told_of_is_refused_in_words(
    odd: dict[str, Any],
) -> None:
    async with opened(relations=False) as house:
        caller = Caller(tenant="acme", **odd)
        for ask in (
            house.call("pay", caller=caller),
            house.discover(caller),
            house.explain("pay", caller=caller),
            house.gate.view(caller, "plain"),
            house.gate.unavailable(caller),
        ):
            with pytest.raises(InvalidRequest, match="put into words"):
                await ask
        fine = Caller(tenant="acme", user="Žofie \U0001f642")
        assert (await house.call("pay", caller=fine)).ok


@pytest.mark.parametrize(
    "facts", [(("n", float("nan")),), (("n", float("inf")),), [("n", 1)], (["n", 1],), (("n",),)]
)
def test_a_fact_that_no_policy_can_compare_is_refused(facts: Any) -> None:
    with pytest.raises(InvalidRequest, match="'facts' of a context"):
        Context(facts=facts)


@pytest.mark.req("G3")
@pytest.mark.parametrize(
    "odd",
    [{1, 2}, object(), 2**70, "\ud800", utc_now(), b"x", {1: "one"}, (Context(),)],
    ids=["set", "object", "large", "half", "time", "bytes", "key", "struct"],
)
async def test_an_argument_that_no_policy_can_be_told_is_refused_and_not_guessed(odd: Any) -> None:
    async with opened(relations=False) as house:
        await house.tenancy.set_policy_module("args", module("args"))
        caller = Caller(tenant="acme")
        for args in ({"amount": odd}, {"amount": [odd]}):
            with pytest.raises(InvalidArguments, match="not JSON"):
                await house.call("pay", args, caller=caller)
            with pytest.raises(InvalidArguments, match="not JSON"):
                await house.explain("pay", args=args, caller=caller)
        # The positive control.
        assert (await house.explain("pay", args={"amount": 1}, caller=caller)).allowed
