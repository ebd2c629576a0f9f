"""Which credentials an operation is sent: a choice is told, and none goes in clear text."""

from typing import Any

import pytest

from tests.sources.openapi_documents import document, real, taken, tools
from toolgate.errors import InvalidSpecs
from toolgate.providers.http.config import Unusable, plan
from toolgate.providers.http.oauth import Tokens
from toolgate.providers.http.secret import Secrets
from toolgate.settings.outward import Secret
from toolgate.sources.openapi.options import Options
from toolgate.sources.openapi.report import Imported
from toolgate.sources.openapi.selection import Selection
from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin

pytestmark = pytest.mark.req("P2")
SCHEMES = {
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "odd": {"type": "mutualTLS"},
}
GET: dict[str, Any] = {"/a": {"get": {"operationId": "see"}}}
REFUNDS = Selection(paths=["/v1/refunds"])


def secured(*security: dict[str, Any], server: str = "https://api.example.com") -> dict[str, Any]:
    return document(
        GET,
        components={"securitySchemes": SCHEMES},
        security=list(security),
        servers=[{"url": server}],
    )


def planned(found: Imported, host: str) -> None:
    """What the provider makes of its tool, when its secret may be sent there."""
    (given,) = found.tools
    spec = read_tool(given, origin=Origin("openapi", "x"))
    named = {one.name: Secret(value_env="A", hosts=(host,)) for one in found.secrets}
    unused: Any = None
    plan(spec, Secrets(named, {"A": "value-of-a-secret"}), Tokens(unused, seconds=1), most=1_000)


def offers(found: Imported) -> list[str]:
    return [one.message for one in found.notes if "it offers" in one.message]


def test_of_several_schemes_the_first_is_taken_and_another_by_option() -> None:
    found = taken(real("stripe-3.0"), Options(selection=REFUNDS))
    assert [one.name for one in found.secrets] == ["stripe_api_basicauth"]
    (told,) = offers(found)
    assert told.startswith("it offers basicAuth or bearerAuth; basicAuth is taken; ")
    assert told.endswith("another is taken with --auth bearerAuth")
    found = taken(real("stripe-3.0"), Options(selection=REFUNDS, auth=["bearerAuth"]))
    assert tools(found)["GetRefunds"]["config"]["auth"]["kind"] == "bearer"
    assert offers(found) == []


def test_a_scheme_that_there_is_none_of_is_told_with_the_nearest() -> None:
    with pytest.raises(InvalidSpecs, match=r"scheme 'barer'. Did you mean 'bearer'\?"):
        taken(secured({"bearer": []}), Options(auth=["barer"]))


@pytest.mark.parametrize(
    ("security", "secrets", "told"),
    [
        (["bearer"], ["small_bearer"], ""),
        (["", "bearer"], [], "it offers no credentials or bearer; no credentials is taken"),
        (["odd", "bearer"], ["small_bearer"], ""),
        (["basic bearer"], ["small_basic", "small_bearer"], ""),
    ],
)
def test_only_a_choice_is_told(security: list[str], secrets: list[str], told: str) -> None:
    asked = [dict.fromkeys(one.split(), "") for one in security]
    found = taken(secured(*asked))
    assert [one.name for one in found.secrets] == secrets
    assert "".join(offers(found)).partition("; another")[0] == told


def test_a_secret_in_clear_text_is_told_first_and_not_sent() -> None:
    found = taken(secured({"bearer": []}, server="http://api.example.com/v1"))
    first = found.notes[0]
    assert first.grave
    assert "--server https://api.example.com/v1" in first.message
    assert first.where == ["GET /a"]
    assert [one.hosts for one in found.secrets] == [["api.example.com"]]
    # Without the port, which only an operator adds, the provider refuses to send it.
    with pytest.raises(Unusable, match="in the clear"):
        planned(found, "api.example.com")
    planned(found, "api.example.com:80")


@pytest.mark.parametrize(
    "server", ["https://api.example.com", "http://localhost:80", "http://127.0.0.1", "http://[::1]"]
)
def test_what_nobody_can_read_on_the_way_is_not_told(server: str) -> None:
    found = taken(secured({"bearer": []}, server=server))
    assert not any(one.grave for one in found.notes)


def test_a_real_document_in_clear_text_is_flagged() -> None:
    found = taken(real("sendgrid-trap-control-char"))
    assert (found.notes[0].grave, len(found.notes[0].where)) == (True, 321)
    assert found.secrets[0].hosts == ["api.sendgrid.com"]
    (plain,) = [one for one in found.notes if "is reached in clear text" in one.message]
    assert not plain.grave


def test_of_a_place_in_both_ways_the_safe_one_is_taken() -> None:
    given = document(GET, servers=[{"url": "http://a.example"}, {"url": "https://a.example"}])
    assert tools(taken(given))["see"]["config"]["url"] == "https://a.example"
    given = document(GET, servers=[{"url": "http://a.example"}, {"url": "https://b.example"}])
    assert tools(taken(given))["see"]["config"]["url"] == "http://a.example"
