"""The newer revision: every request stands for itself, and says so in its headers too."""

import base64
import re
from collections.abc import Mapping
from typing import Any, cast

from toolgate.caller import Caller
from toolgate.server.mcp import revision
from toolgate.server.mcp.exchange import Peer
from toolgate.server.mcp.rpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Fault,
    Message,
    meta_of,
)
from toolgate.tenancy.keys import Key

VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
PARAM = b"mcp-param-"
# What a request names, and its header repeats.
NAMED: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_ROUTING = frozenset({VERSION, METHOD, NAME})
_NONE: frozenset[bytes] = frozenset()
_WRAPPED = re.compile(rb"=\?base64\?(.*)\?=")

Headers = Mapping[bytes, bytes]


def peer_of(
    message: Message,
    headers: Headers | None,
    key: Key,
    caller: Caller,
    repeated: frozenset[bytes] = _NONE,
) -> Peer:
    """Who sent a request, by what it says itself; a `Fault` where that does not fit together.

    `headers` is `None` where there are none, on standard input; `repeated` names those of them
    that stood there more than once.
    """
    if repeated & _ROUTING:
        raise Fault(HEADER_MISMATCH, "A header that a proxy routes by stands there twice.")
    params = message.params
    meta = meta_of(params)
    if "_meta" not in params:
        raise _lacks(revision.VERSION, revision.CAPABILITIES)
    version, capabilities = meta.get(revision.VERSION), meta.get(revision.CAPABILITIES)
    if version is None or capabilities is None:
        missing = [
            name
            for name, value in (
                (revision.VERSION, version),
                (revision.CAPABILITIES, capabilities),
            )
            if value is None
        ]
        raise _lacks(*missing)
    if type(version) is not str or type(capabilities) is not dict:
        raise Fault(INVALID_PARAMS, "The version in '_meta' is a text, the capabilities an object.")
    if headers is not None:
        _compare(message, version, headers)
    if version != revision.MODERN:
        raise unsupported(version)
    return Peer(key, caller, version, cast("dict[str, Any]", capabilities), is_modern=True)


def unsupported(version: str) -> Fault:
    """A revision that is not spoken here."""
    return Fault(
        UNSUPPORTED_VERSION,
        "This revision is not spoken here.",
        {"supported": list(revision.SUPPORTED), "requested": version},
    )


def _lacks(*names: str) -> Fault:
    return Fault(INVALID_PARAMS, f"'_meta' of every request holds {' and '.join(names)}.")


def _compare(message: Message, version: str, headers: Headers) -> None:
    """A proxy decides by the headers, we by the body: they have to say the same."""
    if not _says(headers, VERSION, version):
        raise _differs("MCP-Protocol-Version", "the version in '_meta'")
    if not _says(headers, METHOD, message.method):
        raise _differs("Mcp-Method", "the method")
    named = NAMED.get(message.method)
    if named is None:
        return
    given = message.params.get(named)
    if type(given) is not str:
        return
    header = headers.get(NAME)
    is_plain = _says(headers, NAME, given) and not given.startswith("=?")
    if not is_plain and (header is None or unwrapped(header.strip()) != given):
        raise _differs("Mcp-Name", repr(named))


def _says(headers: Headers, name: bytes, what: str) -> bool:
    """Whether a header is there and says so; blanks around a value are no part of it."""
    given, value = headers.get(name), what.encode("utf-8", "replace")
    return given == value or (given is not None and given.strip() == value)


def _differs(header: str, what: str) -> Fault:
    return Fault(HEADER_MISMATCH, f"The header {header} has to be there once, and to equal {what}.")


def check_params(
    schema: Any, arguments: Mapping[str, Any], headers: Headers, repeated: frozenset[bytes]
) -> None:
    """Arguments that a schema wants repeated in headers (`x-mcp-header`) say the same there."""
    if not isinstance(schema, dict):
        return
    properties = cast("dict[str, Any]", schema).get("properties")
    if not isinstance(properties, dict):
        return
    for name, part in cast("dict[str, Any]", properties).items():
        token = cast("dict[str, Any]", part).get("x-mcp-header") if isinstance(part, dict) else None
        if not isinstance(token, str):
            continue
        header = PARAM + token.lower().encode("utf-8", "replace")
        raw, value = headers.get(header), arguments.get(name)
        if raw is None and value is None:
            continue
        said = None if raw is None else unwrapped(raw.strip())
        if header in repeated or said is None or value is None or said != _written(value):
            raise _differs(f"Mcp-Param-{token}", f"the argument {name!r}")


def unwrapped(raw: bytes) -> str | None:
    """A header's value; what no header can hold stands in it as base64. `None` where it is not."""
    found = _WRAPPED.fullmatch(raw)
    if found is None:
        return raw.decode("latin-1")
    try:
        decoded = base64.b64decode(found[1], validate=True)
        if base64.b64encode(decoded) != found[1]:
            return None
        return decoded.decode()
    except ValueError:
        return None


def _written(value: Any) -> str | None:
    if type(value) is bool:
        return "true" if value else "false"
    return str(value) if type(value) in {str, int, float} else None
