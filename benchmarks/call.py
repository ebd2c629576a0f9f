"""What governance costs: one governed call of a trivial tool, beside the ungoverned peers.

Run it with `python -m benchmarks.call`. The tool adds two numbers, so all that is seen is the way
there and back: catalog, gate, schema, chain, journal. `benchmarks.peers` holds the other rows.
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.embedded import CALLER, open_gate
from benchmarks.measure import Bar, options, report
from benchmarks.peers import CHECKED, PEERS, PLAIN, Peer, Ready, add, fresh, measured
from toolgate import tool

GOVERNED = "toolgate, governed"
UNGOVERNED = "pydantic-ai ToolManager"
# Where the bars were set, the ungoverned ToolManager takes as long as toolgate may: these 20 µs.
# Elsewhere the ratio to it tells more than the microseconds.
AT_MOST_US = 20.0
AT_MOST_RATIO = 12.0


async def governed(stack: AsyncExitStack) -> Ready:
    """A whole gate: a store on disk, and every extension it comes with."""
    folder = stack.enter_context(TemporaryDirectory(prefix="toolgate-bench-"))
    gate = await stack.enter_async_context(open_gate(Path(folder)))
    gate.add(tool(effect="pure")(add))
    return lambda: gate.call("add", fresh(), caller=CALLER), lambda output: output.data


def _cases() -> dict[str, Peer]:
    """The table's order: the floor, toolgate, then the peers."""
    first: dict[str, Peer] = {PLAIN: PEERS[PLAIN], CHECKED: PEERS[CHECKED], GOVERNED: governed}
    return first | PEERS


def main() -> int:
    chosen = options("What one governed call costs, beside the peers.").parse_args()
    # Long rounds: what goes on beside calls all the time is not taken for theirs.
    rows = asyncio.run(measured(_cases(), rounds=11, seconds=0.15))
    found = {row.name: row for row in rows}
    ours, base, peer = found[GOVERNED], found[CHECKED], found[UNGOVERNED]
    if ours.value and ours.answered and base.value and not chosen.json:
        whole, answered = ours.value / base.value, ours.answered / base.value
        print(f"toolgate / {CHECKED}: {whole:.1f}, till the answer {answered:.1f}", end=" ")
        print(f"(at most {AT_MOST_RATIO})")
    bars = (
        Bar(
            name=f"all it causes / {UNGOVERNED}, ungoverned",
            value=ours.value / peer.value if ours.value and peer.value else None,
            limit=1.0,
            unit="x",
        ),
        Bar(name="governed call, all it causes", value=ours.value, limit=AT_MOST_US, unit="µs"),
        Bar(
            name=f"all it causes / {CHECKED}",
            value=ours.value / base.value if ours.value and base.value else None,
            limit=AT_MOST_RATIO,
            unit="x",
        ),
    )
    return report("CPU per call", rows, bars, baseline=CHECKED, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
