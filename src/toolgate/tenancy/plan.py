"""Budget plans: how many calls of tools a month they hold."""

from collections.abc import Mapping
from enum import StrEnum

from toolgate.spec.cost import UNIT


class Plan(StrEnum):
    """What a tenant has booked."""

    FREE = "free"
    STARTER = "starter"
    TEAM = "team"
    ENTERPRISE = "enterprise"


# In millionths of a call; `None`: as many as there are.
CALLS_A_MONTH: Mapping[str, int | None] = {
    Plan.FREE: 100 * UNIT,
    Plan.STARTER: 1_000 * UNIT,
    Plan.TEAM: 10_000 * UNIT,
    Plan.ENTERPRISE: None,
}


def calls_of(plan: str) -> int | None:
    """The calls of a plan; one that a newer version knows is taken for the smallest here."""
    return CALLS_A_MONTH.get(plan, CALLS_A_MONTH[Plan.FREE])
