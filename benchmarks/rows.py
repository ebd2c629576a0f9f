"""The tools that the catalog is measured with: real ones where the data is at hand.

`../shared/data/toolsearch/tools.jsonl.gz`, beside the repository, holds 12,971 tools as people
wrote them. Without that file rows are made up, and the tables say so.
"""

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec

DATA = Path(__file__).parents[2] / "shared" / "data" / "toolsearch" / "tools.jsonl.gz"
MADE_UP = 12_971
ORIGIN = Origin("python", "benchmarks")
PROVIDER = "echo"
_REFUSED = re.compile(r"[^A-Za-z0-9_.:/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool as its author wrote it."""

    name: str
    description: str
    parameters: dict[str, Any]


def rows() -> tuple[Sequence[Row], str]:
    """All rows, and what they are."""
    if not DATA.exists():
        return [_made_up(number) for number in range(MADE_UP)], "made-up tools"
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        found = [_read(json.loads(line)) for line in lines]
    return found, f"{len(found):,} real tools"


def many(count: int) -> tuple[Sequence[Row], str]:
    """Exactly `count` rows, each under its own name; real ones come again with another name."""
    found, about = rows()
    repeated = islice(cycle(found), count)
    named = [
        Row(
            name=f"t{number}_{_REFUSED.sub('_', row.name)}"[:128],
            description=row.description,
            parameters=row.parameters,
        )
        for number, row in enumerate(repeated)
    ]
    return named, about


def specs_from(given: Iterable[Row]) -> list[ToolSpec]:
    """The seam to toolgate: rows become specs, checked and compiled as any source's are."""
    return [
        read_tool(
            {
                "name": row.name,
                "description": row.description,
                "input_schema": row.parameters,
                "effect": "pure",
                "provider": PROVIDER,
            },
            origin=ORIGIN,
        )
        for row in given
    ]


def _read(line: dict[str, Any]) -> Row:
    return Row(name=line["name"], description=line["description"], parameters=line["parameters"])


def _made_up(number: int) -> Row:
    fields = ("city", "invoice_id", "limit", "since", "query", "format")
    properties = {
        field: {"type": "string", "description": f"The {field} of record {number}."}
        for field in fields[: number % len(fields) + 1]
    }
    return Row(
        name=f"service{number % 97}.operation_{number}",
        description=f"Does work {number} of service {number % 97}, and says how it went.",
        parameters={"type": "object", "properties": properties, "required": list(properties)[:1]},
    )
