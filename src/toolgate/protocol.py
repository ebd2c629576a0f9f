"""The words of MCP that a server and a client both use: revisions, keys of `_meta`, fault codes."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
# What an `initialize` can agree on: they differ from the newest of them in nothing that is used.
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

# Blocks that a result consists of, as far as they are known here.
BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})

# Who we say we are, to servers and to clients.
INFO: Mapping[str, Any] = {"name": "toolgate", "title": "toolgate", "version": version("toolgate")}

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# Of the older revision only.
RESOURCE_NOT_FOUND = -32002
# Of the newer one.
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
