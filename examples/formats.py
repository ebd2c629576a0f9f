"""The same tools in the words of each model's API. Planners never see a provider's config."""

import asyncio
import json
from typing import Annotated, Literal

from toolgate import Caller, Toolgate, Turn, tool
from toolgate.settings.settings import Settings, Tools


@tool(effect="pure", category="weather")
async def forecast(
    city: Annotated[str, "The city's name"], unit: Literal["c", "f"] = "c"
) -> dict[str, float]:
    """Tomorrow's temperature in a city."""
    return {"temperature": 21.5 if unit == "c" else 70.7}


async def main() -> None:
    settings = Settings(tools=Tools(builtin=("echo",)))
    async with Toolgate.open(settings) as gate:
        gate.add(forecast)
        box = gate.toolbox(Caller(tenant="acme", agent="guide"), turn=Turn(group="t-1"))
        first = next(one for one in box.tools("openai") if one["function"]["name"] == "forecast")
        print(json.dumps(first, indent=2))
        print(box.tools("prompt"))
        print((await box.call("forecast", {"city": "Bern"})).to_human())


asyncio.run(main())
