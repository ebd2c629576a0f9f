"""What of a document is taken with care: its names, its servers, its word on effects."""

import pytest

from toolgate.sources.openapi.naming import tool_names
from toolgate.sources.openapi.servers import NoServer, base

pytestmark = pytest.mark.req("P2")


@pytest.mark.parametrize("given", ["mcp:good:fine", "toolgate:x", "focal:x", ":mcp:a:b"])
def test_no_operation_has_a_name_with_a_colon(given: str) -> None:
    assert ":" not in tool_names("")(given, "get", "/x")


@pytest.mark.parametrize("path", ["/v1/../admin", "/.", "/%2e%2e/x", "/%252e%252e/x"])
def test_a_server_whose_path_leads_up_is_none(path: str) -> None:
    with pytest.raises(NoServer):
        base(f"https://api.example.com{path}")
    assert base("https://api.example.com/v1..2") == "https://api.example.com/v1..2"
