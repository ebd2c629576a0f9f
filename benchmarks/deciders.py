"""What others take for a decision: a policy engine as a library, and real servers on loopback."""

import os
from contextlib import AsyncExitStack
from importlib import import_module

from benchmarks.measure import Call, Row
from tests.servers.opa import Opa
from tests.servers.process import AbsentError
from tests.servers.spicedb import SpiceDB
from toolgate.settings.gate import Policy, Relations

TOKEN = "TOOLGATE_BENCH_SPICEDB_TOKEN"  # noqa: S105  a variable's name
CEDAR = "Cedar in process, ten rules"
_RULES = "permit(principal, action, resource);\n" + "\n".join(
    f'forbid(principal == User::"user-{number}", action, resource == Tool::"tool-{number}");'
    for number in range(9)
)


def cedar() -> Call:
    """Its answer is a decision alone: no caller's flags, no relations, no record."""
    cedarpy = import_module("cedarpy")
    asked: dict[str, object] = {
        "principal": 'User::"ann"',
        "action": 'Action::"call"',
        "resource": 'Tool::"add"',
        "context": {},
    }

    async def decide() -> object:
        return cedarpy.is_authorized(asked, _RULES, [])

    if not cedarpy.is_authorized(asked, _RULES, []).allowed:
        raise ValueError("wrong answer")
    return decide


def deciders() -> tuple[dict[str, Call], list[Row]]:
    """Those that are here, and rows for those that are not."""
    try:
        return {CEDAR: cedar()}, []
    except Exception as error:  # noqa: BLE001  whatever it is, its row says so
        return {}, [Row(name=CEDAR, note=f"{type(error).__name__}: {error}")]


def loopback(stack: AsyncExitStack) -> tuple[Policy, Relations]:
    """Settings for an OPA server and a SpiceDB that run until the stack ends."""
    try:
        opa, spicedb = stack.enter_context(Opa()), stack.enter_context(SpiceDB())
    except AbsentError as error:
        raise LookupError(str(error)) from None
    os.environ[TOKEN] = spicedb.token
    stack.callback(os.environ.pop, TOKEN, None)
    return (
        Policy(engine="opa", url=opa.url),
        Relations(engine="spicedb", url=f"grpc://{spicedb.address}", token_env=TOKEN),
    )
