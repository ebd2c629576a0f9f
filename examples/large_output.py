"""A result that is too large to be answered at once, read in pieces."""

import asyncio

from toolgate import Caller, Toolgate, tool


@tool(effect="pure", output_limit=1_000)
async def report(rows: int) -> list[str]:
    """A long report."""
    return [f"row {number}: nothing to report" for number in range(rows)]


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(report)
        me = Caller(tenant="acme", agent="clerk")
        answer = (await gate.call("report", {"rows": 200}, caller=me)).data
        print(answer["head"][:40], "…", answer["size"], "bytes", answer["media_type"])

        text, at = answer["head"], answer["next"]
        while at is not None:
            wanted = {"reference": answer["reference"], "offset": at, "length": 4_000}
            piece = (await gate.call(answer["read_with"], wanted, caller=me)).data
            text, at = text + piece["text"], piece["next"]
        print(len(text), "bytes read, to the end:", text[-34:])

        other = Caller(tenant="acme", agent="intern")
        wanted = {"reference": answer["reference"]}
        print((await gate.call("read_output", wanted, caller=other)).to_human())


asyncio.run(main())
