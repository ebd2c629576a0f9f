"""Plans, budgets and rate limits that an operator set, in every directory."""

import pytest

from toolgate.errors import InvalidRequest
from toolgate.spec.tool import RateLimit
from toolgate.tenancy.changes import AddTenant, SetBudget, SetPlan, SetRateLimit
from toolgate.tenancy.directory import Directory
from toolgate.tenancy.tenancy import Tenancy

MINUTE = RateLimit(calls=600, per=60.0)
SECOND = RateLimit(calls=1, per=1.0)


@pytest.mark.req("X9")
async def test_a_plan_is_kept_changed_and_taken_back(directory: Directory) -> None:
    await directory.put((AddTenant("acme"), SetPlan("acme", "free")))
    assert (await directory.load()).tenant("acme").plan == "free"
    await directory.put((SetPlan("acme", "team"),))
    assert (await directory.load()).tenant("acme").plan == "team"
    await directory.put((SetPlan("acme", None),))
    assert (await directory.load()).tenant("acme").plan == ""


@pytest.mark.req("X9")
async def test_a_plan_of_nobody_puts_nobody_on_record(directory: Directory) -> None:
    await directory.put((SetPlan("nobody", "free"),))
    assert (await directory.load()).tenants == {}


@pytest.mark.req("X9")
async def test_budgets_are_kept_by_metric(directory: Directory) -> None:
    await directory.put((SetBudget("acme", "money", 10**18), SetBudget("acme", "rows", 5)))
    assert (await directory.load()).tenant("acme").budgets == {"money": 10**18, "rows": 5}
    await directory.put((SetBudget("acme", "rows", 6), SetBudget("acme", "money", None)))
    assert (await directory.load()).tenant("acme").budgets == {"rows": 6}


@pytest.mark.req("X10")
async def test_rates_are_kept_of_a_tenant_and_of_each(directory: Directory) -> None:
    await directory.put(
        (
            SetRateLimit("acme", "", "", MINUTE),
            SetRateLimit("acme", "intern", "pay", SECOND),
            SetRateLimit("", "", "pay", SECOND),
        )
    )
    world = await directory.load()
    assert world.tenant("acme").rates == {("", ""): MINUTE, ("intern", "pay"): SECOND}
    assert world.everyone.rates == {("", "pay"): SECOND}
    await directory.put((SetRateLimit("acme", "", "", None), SetRateLimit("", "", "pay", MINUTE)))
    world = await directory.load()
    assert world.tenant("acme").rates == {("intern", "pay"): SECOND}
    assert world.everyone.rates == {("", "pay"): MINUTE}


@pytest.mark.req("X9", "X10")
async def test_every_change_is_on_record_in_words(directory: Directory) -> None:
    tenancy = Tenancy(directory).by("eva", "she asked")
    await tenancy.set_plan("acme", "starter")
    await tenancy.set_budget("acme", "money", 12.5)
    await tenancy.set_rate_limit("600/minute", tenant="acme", persona="intern")
    found = {record.change: record for record in await directory.audit(tenant="acme")}
    assert found["set_plan"].details == {"tenant": "acme", "plan": "starter"}
    assert found["set_budget"].details == {"tenant": "acme", "metric": "money", "most": 12.5}
    assert found["set_rate_limit"].details["limit"] == {"calls": 600, "per": 60.0}
    assert {record.who for record in found.values()} == {"eva"}


@pytest.mark.req("X9", "X10")
async def test_what_cannot_be_meant_changes_nothing(directory: Directory) -> None:
    tenancy = Tenancy(directory, known=lambda: {"pay"})
    for wrong in ("gold", "FREE", ""):
        with pytest.raises(InvalidRequest, match="is no plan"):
            await tenancy.set_plan("acme", wrong)
    for most in (-1, float("nan"), float("inf"), True, "7", 10**13):
        with pytest.raises(InvalidRequest, match="The most of a budget"):
            await tenancy.set_budget("acme", "money", most)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidRequest, match="cannot name a metric"):
        await tenancy.set_budget("acme", "Money!", 1)
    with pytest.raises(InvalidRequest, match="is no rate"):
        await tenancy.set_rate_limit("many", tenant="acme")
    with pytest.raises(InvalidRequest, match="no tool"):
        await tenancy.set_rate_limit("1/second", tool="pya")
    assert (await directory.load()).tenants == {}
