"""`not` around what may be missing: refused, since the engines would decide differently."""

import aiohttp
import pytest

from tests.engines.questions import asked
from tests.servers.opa import Opa as Server
from toolgate.caller import Action
from toolgate.engines.modules import build
from toolgate.engines.rego import Rego
from toolgate.errors import InvalidPolicy

RULES = (
    "limit := 3 if input.args.q\n\n_ok if input.args.x in [1]\n\nodd contains 1 if input.args.o\n"
)
SAME = [
    "not input.args.ok",
    "not input.args.x == 1",
    "not input.args.x == input.args.y",
    "not limit",
    "not limit == 3",
    "not _ok",
    'not input.caller.persona in {"guest"}',
    'not startswith(input.tool.name, "a")',
    'some tag in ["a"]\n\tnot startswith(tag, "b")',
    "not count([x | some x in input.args]) == 1",
    "not 2 in odd",
    "x := input.args.x\n\tnot x in [1]",
]
DIFFERENT = [
    'not input.args.x in ["a"]',
    "not input.args.x in odd",
    'not startswith(input.args.x, "a")',
    "not abs(input.args.x) == 1",
    "not input.args.x > 3",
    "not odd[input.args.x]",
    "not limit in [3]",
    "not [input.args.x] == [1]",
    "not 1 in data.absent",
]


def module(body: str) -> str:
    return f'package toolgate\n\ndeny contains "x" if {{\n\t{body}\n}}\n\n{RULES}'


async def on_the_server(opa: Server, text: str) -> bool:
    """Whether OPA's own reading of this one rule refuses; nothing of ours is asked."""
    place = f"{opa.url}/v1/policies/negation"
    async with aiohttp.ClientSession() as session:
        async with session.put(place, data=text.replace("toolgate", "negation")) as put:
            assert put.status == 200, await put.text()
        question = {"input": asked(Action.REQUEST)}
        async with session.post(f"{opa.url}/v1/data/negation/deny", json=question) as got:
            return bool((await got.json())["result"])


@pytest.mark.req("G7")
@pytest.mark.parametrize("body", SAME)
async def test_what_both_read_alike_is_taken(opa: Server, body: str) -> None:
    policy = Rego(build({"a.rego": module(body)}, {}))
    refused = not await policy.allows(asked(Action.REQUEST))
    assert refused is await on_the_server(opa, module(body))


@pytest.mark.req("G7")
@pytest.mark.parametrize("body", DIFFERENT)
async def test_what_only_one_of_them_would_refuse_is_not_taken(opa: Server, body: str) -> None:
    with pytest.raises(InvalidPolicy, match=r"a\.rego:4: `not` around"):
        build({"a.rego": module(body)}, {})
    # The reason for it: the server drops the rule, although the same policy refuses in process.
    assert not await on_the_server(opa, module(body))
    moved = f"not _moved\n}}\n\n_moved if {{\n\t{body.removeprefix('not ')}"
    policy = Rego(build({"a.rego": module(moved)}, {}))
    assert not await policy.allows(asked(Action.REQUEST))
    assert await on_the_server(opa, module(moved))
