"""`behaviour_adjustment`: a rule that the agent keeps to from now on."""

from typing import Any

from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.agent.rules import LONGEST, Rule, Rules
from toolgate.tools.means import Means
from toolgate.tools.web.invisible import clean


async def behaviour_adjustment(means: Means, call: Call, *, adjustment: str) -> dict[str, Any]:
    """Keep it with the others."""
    # It stands in prompts and on terminals: nothing that steers either, or turns text around.
    text = clean(adjustment.encode("utf-8", "replace").decode()).strip()
    if not text or len(text) > LONGEST:
        raise ToolError(
            f"An adjustment is a sentence or two, of at most {LONGEST:,} characters: 'Answer in "
            "Portuguese.'"
        )
    rules = Rules(means.shelf, call.caller)
    rule = Rule(
        id=f"rule_{call.id.removeprefix('call_')}",
        text=text,
        at_ns=clock.unix_ns(),
        user=call.caller.user,
    )
    is_new = await rules.add(rule)
    # Not as `rule`: undo takes that back, and this one was there before.
    known = None if is_new else await rules.known(text)
    return {
        "rule": rule.id if is_new else "",
        "added": is_new,
        "known": "" if known is None else known.id,
        "rules": [one.told() for one in await rules.all()],
    }
