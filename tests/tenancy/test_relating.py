"""Relations are changed where they are kept, and every node hears of it."""

from collections.abc import Sequence

import pytest

from toolgate.errors import InvalidRequest, RelationsUnavailable
from toolgate.tenancy.relation import Relation, parse
from toolgate.tenancy.tenancy import Tenancy
from toolgate.testing.directory import MemoryDirectory

pytestmark = pytest.mark.req("G1")
ANN, BOB = "tool:pay#executor@user:ann", "tool:pay#executor@user:bob"


class Elsewhere:
    """Another place that keeps relations; it can be out of order."""

    def __init__(self, directory: MemoryDirectory) -> None:
        self._directory = directory
        self.held: set[Relation] = set()
        self.broken = False
        # The newest revision of ours, and the log, at the time of each write.
        self.seen: list[tuple[int, str]] = []

    async def write(self, tenant: str, add: Sequence[Relation], remove: Sequence[Relation]) -> str:
        newest = (await self._directory.audit(limit=1))[0]
        self.seen.append((await self._directory.revision(), newest.change))
        if self.broken:
            raise RelationsUnavailable("away")
        self.held = self.held - {*remove} | {*add}
        return f"token{len(self.seen)}"

    async def read(self, tenant: str, *, limit: int) -> Sequence[Relation]:
        return sorted(self.held)[:limit]


async def test_relations_are_written_as_text_or_as_values() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.relate("acme", add=[ANN, parse(BOB), ANN])
    assert [str(one) for one in await tenancy.relations("acme")] == [ANN, BOB]
    await tenancy.relate("acme", remove=[ANN])
    assert [str(one) for one in await tenancy.relations("acme")] == [BOB]
    assert await tenancy.relations("globex") == []
    assert tenancy.world.tenant("acme").relations == 2


@pytest.mark.parametrize(
    ("add", "remove", "said"),
    [
        ([], [], "Say which"),
        ([ANN], [BOB, ANN], "added and removed"),
        (["tool:pay#executor"], [], "no relation"),
        (["tool:pay#reader@user:ann"], [], "has no 'reader'"),
        ([Relation("tool", "pay", "executor", "tool", "x")], [], "cannot be executor"),
        ([f"tool:pay#executor@user:u{n}" for n in range(1_001)], [], "At most 1,000"),
        (["tool:pya#executor@user:ann"], [], "Did you mean 'pay'"),
        (ANN, [], "by itself"),
    ],
)
async def test_relations_that_cannot_be_are_refused(
    add: list[str | Relation], remove: list[str | Relation], said: str
) -> None:
    tenancy = Tenancy(MemoryDirectory(), known=lambda: ["pay"])
    with pytest.raises(InvalidRequest, match=said):
        await tenancy.relate("acme", add=add, remove=remove)
    assert tenancy.world.revision == -1
    await tenancy.relate("acme", add=[ANN], remove=["tool:gone#executor@user:ann"])


@pytest.mark.req("G7")
async def test_relations_kept_elsewhere_are_on_record_before_and_after() -> None:
    directory = MemoryDirectory()
    elsewhere = Elsewhere(directory)
    tenancy = Tenancy(directory, relations=elsewhere)
    await tenancy.by("eva", "new hire").relate("acme", add=[ANN])
    assert elsewhere.seen == [(1, "mark_relations")], "on record before it was written"
    tenant = tenancy.world.tenant("acme")
    # The second one makes every node forget what it read before the write.
    assert (tenant.relations, tenant.relations_token) == (2, "token1")
    assert [str(one) for one in await tenancy.relations("acme")] == [ANN]
    assert await directory.relations("acme", limit=1) == []
    told = [(one.who, one.details["token"], one.details["add"]) for one in await tenancy.audit()]
    assert told == [("eva", "token1", [ANN]), ("eva", "", [ANN])]
    assert [one.details.get("outcome") for one in await tenancy.audit()] == [None, "intended"]


@pytest.mark.req("G7")
async def test_a_write_elsewhere_that_fails_is_in_doubt_for_every_node() -> None:
    directory = MemoryDirectory()
    elsewhere = Elsewhere(directory)
    tenancy = Tenancy(directory, relations=elsewhere)
    await tenancy.relate("acme", add=[ANN])
    elsewhere.broken = True
    with pytest.raises(RelationsUnavailable):
        await tenancy.relate("acme", remove=[ANN])
    tenant = tenancy.world.tenant("acme")
    assert (tenant.relations, tenant.relations_token) == (4, "token1")
    last, intent = await tenancy.audit(limit=2)
    assert (intent.details["remove"], last.details["remove"]) == ([ANN], [ANN])
    assert (intent.details["outcome"], last.details["outcome"]) == ("intended", "failed")


@pytest.mark.req("G7")
async def test_a_node_that_has_not_looked_does_not_bring_an_older_token_back() -> None:
    directory = MemoryDirectory()
    elsewhere = Elsewhere(directory)
    here, there = (Tenancy(directory, relations=elsewhere) for _ in range(2))
    await here.relate("acme", add=[ANN])
    await there.relate("acme", add=[BOB])
    elsewhere.broken = True
    with pytest.raises(RelationsUnavailable):
        await here.relate("acme", remove=[ANN])
    tenant = here.world.tenant("acme")
    assert (tenant.relations, tenant.relations_token) == (6, "token2")


async def test_the_number_that_is_read_has_its_limits() -> None:
    tenancy = Tenancy(MemoryDirectory())
    await tenancy.relate("acme", add=[ANN, BOB])
    assert len(await tenancy.relations("acme", limit=1)) == 1
    for limit in (0, -1, 100_001):
        with pytest.raises(InvalidRequest, match="limit"):
            await tenancy.relations("acme", limit=limit)
