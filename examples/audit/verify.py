"""Verify an export of the audit by hand: `toolgate audit export | python verify.py`."""

import hashlib
import json
import sys
from typing import Any


def sha256(value: Any, *, sort: bool) -> str:
    """Of the value as JSON without spaces."""
    raw = json.dumps(value, sort_keys=sort, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(raw.encode()).hexdigest()


chains: dict[str, tuple[int, str]] = {}
held: list[list[Any]] = []
for row in map(json.loads, sys.stdin):
    if row["kind"] == "record":
        said = [row[name] for name in ("at_ns", "tenant", "who", "why", "change", "details")]
        if sha256(said, sort=True) != row["digest"]:
            sys.exit(f"record {row['id']} was changed")
        held.append([row["id"], row["digest"]])
    else:
        number, before = chains.get(row["tenant"], (0, ""))
        said = [before, row["tenant"], row["number"], row["at_ns"], held]
        if row["number"] != number + 1:
            sys.exit(f"seal {number + 1} is gone")
        if sha256(said, sort=False) != row["hash"]:
            sys.exit(f"seal {row['number']} does not hold")
        chains[row["tenant"]], held = (row["number"], row["hash"]), []
for tenant, (number, link) in chains.items():
    # To be compared with the anchors that were kept.
    print(tenant or "(every one)", f"{number}:{link}")
