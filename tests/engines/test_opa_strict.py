"""A built-in function that fails on the server is no answer, as in process; not a rule less."""

import pytest

from tests.engines.questions import asked
from tests.engines.test_opa import client, engine
from tests.servers.opa import Opa as Server
from toolgate.caller import Action
from toolgate.engines import opa_server
from toolgate.engines.modules import build
from toolgate.engines.rego import Rego
from toolgate.errors import PolicyUnavailable
from toolgate.net.client import HttpClient

__all__ = ["client"]
INSIDE = (
    'package toolgate\n\nrestrict contains "inside" if '
    'net.cidr_contains("10.0.0.0/8", input.args.host)\n'
)


@pytest.mark.req("G7")
async def test_a_function_that_fails_is_no_answer_on_either_engine(
    opa: Server, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = build({"a.rego": INSIDE}, {})
    policy = engine(client, opa.url, bundle)
    await policy.start()
    odd = asked(Action.REQUEST, args={"host": "localhost"})
    for each in (Rego(bundle), policy):
        assert await each.allows(asked(Action.REQUEST, args={"host": "192.0.2.1"}))
        assert not await each.allows(asked(Action.REQUEST, args={"host": "10.0.0.1"}))
        with pytest.raises(PolicyUnavailable):
            await each.allows(odd)
    # The guard-off control: the server drops the rule, and the call is allowed.
    monkeypatch.setattr(opa_server, "_STRICT", "")
    assert await policy.allows(odd)
