"""A change in the words of the audit log: its name, whose it is, and what it said."""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from toolgate.spec.cost import plain
from toolgate.tenancy.changes import (
    AddKey,
    Change,
    MarkRelations,
    PinTools,
    SetBudget,
    SetPolicyModule,
    SetRelations,
    SetServer,
    SetToolFile,
)

_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def name_of(change: Change) -> str:
    """`SetToolFlag` is `set_tool_flag`."""
    return _WORD.sub("_", type(change).__name__).lower()


def tenant_of(change: Change) -> str:
    """The tenant that the change itself names; empty where it names none."""
    if isinstance(change, AddKey):
        return change.key.tenant
    return getattr(change, "tenant", "")


def details_of(change: Change) -> dict[str, Any]:
    """The change's fields as JSON values: no digest, and the fingerprint of a text in its place."""
    match change:
        case AddKey(key):
            shown = _json(key)
            del shown["digest"]
            return {"key": shown}
        case SetPolicyModule(name, str(text)) | SetToolFile(name, str(text)):
            encoded = text.encode("utf-8", "backslashreplace")
            return {
                "name": name,
                "length": len(text),
                "sha256": hashlib.sha256(encoded).hexdigest(),
            }
        case SetServer(name, Mapping() as settings):
            # Of its variables the names: a value can be a secret, whatever it was said to be.
            named = {"env": sorted(settings["env"])} if "env" in settings else {}
            return {"name": name, "settings": {**_json(dict(settings)), **named}}
        case PinTools(server, tools, first):
            pins = {name: pin.fingerprint for name, pin in tools.items()}
            return {"server": server, "tools": pins, "first": first}
        case SetBudget(tenant, metric, int(most)):
            return {"tenant": tenant, "metric": metric, "most": plain(most)}
        case SetRelations() | MarkRelations():
            fields: Mapping[str, Any] = msgspec.structs.asdict(change)
            listed = {part: [str(one) for one in fields[part]] for part in ("add", "remove")}
            if isinstance(change, SetRelations):
                return {**fields, **listed}
            told = {"tenant": change.tenant, "token": change.token, **listed}
            # A token says that it was done.
            return told if change.token else {**told, "outcome": change.outcome}
        case _:
            return _json(change)


def _json(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_plain))


def _plain(value: object) -> object:
    if isinstance(value, MappingProxyType):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    # So msgspec is told that it cannot be encoded.
    raise NotImplementedError
