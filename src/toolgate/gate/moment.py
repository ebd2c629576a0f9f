"""What a decision is made on, and what comes of deciding a whole list."""

from typing import NamedTuple

from toolgate.catalog.snapshot import Snapshot
from toolgate.gate.decision import Verdict
from toolgate.gate.layers import Cascade
from toolgate.tenancy.world import World


class Moment(NamedTuple):
    """What a decision is made on."""

    snapshot: Snapshot
    world: World
    cascade: Cascade


class Sifted(NamedTuple):
    """Of a list of tools, those that are refused, by name; and those that only would be."""

    refused: dict[str, Verdict]
    observed: dict[str, Verdict]
