"""An extension that sees every call, and one that answers instead of the tool."""

import asyncio

from toolgate import Call, Caller, Extension, Output, Priority, Toolgate, tool


class Transcript(Extension):
    """Next to the tool: what really ran, and how it ended."""

    priority = Priority.LOWEST

    def after(self, call: Call, output: Output) -> None:
        print(f"{call.caller.agent} ran {call.spec.name}: {output.status}")


class Quiet(Extension):
    """After validation, before anyone is asked: nobody is paged at night."""

    priority = Priority.HIGH

    async def before(self, call: Call) -> Output | None:
        if call.spec.name == "page_someone":
            return Output(status="skipped", data="it is night", call_id=call.id)
        return None


@tool(effect="irreversible")
def page_someone(who: str) -> str:
    """Wake somebody up."""
    return f"{who} is awake"


async def main() -> None:
    async with Toolgate.open(extensions=[Transcript(), Quiet()]) as gate:
        gate.add(page_someone)
        night = Caller(tenant="acme", agent="watch")
        print((await gate.call("echo", {"text": "all quiet"}, caller=night)).data)
        print((await gate.call("page_someone", {"who": "ann"}, caller=night)).data)


asyncio.run(main())
