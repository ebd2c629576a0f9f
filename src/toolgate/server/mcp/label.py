"""The label of what others wrote, in `_meta` of a result; and that nobody but us writes there."""

from typing import Any, cast

from toolgate.call import Output
from toolgate.upstreams.upstream import Json

UNTRUSTED = "toolgate/untrusted"
_OURS = "toolgate/"
_META = "_meta"


def labelled(result: Json, output: Output) -> Json:
    """A result of something else than a tool: with the label of the call that it comes from."""
    if not output.untrusted:
        return result
    meta = result.get(_META)
    told = cast("Json", meta) if type(meta) is dict else {}
    return result | {_META: told | {UNTRUSTED: True}}


def theirs(meta: Json) -> Json:
    """What others may say in `_meta`: nothing under our own prefix."""
    return {name: one for name, one in meta.items() if not name.startswith(_OURS)}


def disclaimed(value: Any) -> Any:
    """A block of others' contents, or what holds one, without anything in our name."""
    if type(value) is not dict:
        return value
    told = cast("Json", value)
    meta = told.get(_META)
    if type(meta) is dict and any(name.startswith(_OURS) for name in cast("Json", meta)):
        told = told | {_META: theirs(cast("Json", meta))}
    for field in ("resource", "content"):
        held = told.get(field)
        if type(held) is dict:
            told = told | {field: disclaimed(held)}
        elif type(held) is list:
            told = told | {field: [disclaimed(one) for one in cast("list[Any]", held)]}
    return told
