"""Layers and delegation: each step can only take tools away, and a refusal says which one did."""

import asyncio

from toolgate import Caller, Context, Toolgate, tool
from toolgate.settings.settings import Settings, Tools
from toolgate.tenancy.layer import Layer, Permissions


@tool(effect="pure", category="data")
async def read_report(name: str) -> str:
    """Read a report."""
    return f"the report {name}"


@tool(effect="pure", category="data", permissions=["network"])
async def fetch_rates(currency: str) -> float:
    """Today's rate, from the web."""
    return 1.08


@tool(effect="irreversible", category="mail")
async def send_mail(to: str) -> None:
    """Send a mail."""


async def main() -> None:
    settings = Settings(tools=Tools(builtin=("echo",)))
    async with Toolgate.open(settings) as gate:
        gate.add(read_report, fetch_rates, send_mail)
        operator = gate.tenancy.by("ops:ann", "quarterly review")
        await operator.set_layer("freeze", Layer(deny=("echo",), reason="not needed"))
        await operator.set_role(
            "analyst", Permissions(allowed_categories=("data", "mail"), web_access=True)
        )
        planner = Caller(tenant="acme", agent="planner", user="ann", roles=("analyst",))
        reader = planner.delegate("reader", deny=["send_mail"])
        # Asking for what the step before did not hand on gives nothing back.
        helper = reader.delegate("helper", allow=["read_report", "send_mail"])
        offline = Caller(
            tenant="acme", agent="planner", roles=("analyst",), context=Context(no_web=True)
        )
        guest = Caller(tenant="acme", agent="planner", roles=("guest",))

        for name, caller in (
            ("planner", planner),
            ("reader for planner", reader),
            ("helper for reader for planner", helper),
            ("planner without the web", offline),
            ("planner with a role nobody knows", guest),
        ):
            print(f"{name}:", *(spec.name for spec in await gate.discover(caller)))
        for caller, tool_name in (
            (planner, "echo"),
            (helper, "send_mail"),
            (offline, "fetch_rates"),
            (guest, "read_report"),
        ):
            verdict = (await gate.explain(tool_name, caller=caller)).deciding
            print(f"{tool_name}: [{verdict.rule}] {verdict.reason}")
            print(f"  {verdict.remedy}")


asyncio.run(main())
