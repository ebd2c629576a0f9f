"""URIs of the house in what others send: nobody else's contents stand under them.

`focal:` and `toolgate:` name what the house says of itself. Contents of a server that claim such a
URI would be taken for its word, so they are named as what they are: that server's. Those of any
other tool are named by its call.
"""

from typing import Any, cast

from toolgate.spec.names import is_of_house
from toolgate.upstreams.message import Json


def disowned(name: str, result: Json, *, kind: str = "mcp") -> Json:
    """The same result where it claims nothing; else with those URIs behind whose they are."""
    owner = f"{kind}:{name}"
    changed: Json = {}
    for field in ("content", "contents"):
        blocks = result.get(field)
        if type(blocks) is list:
            found = _blocks(owner, cast("list[Any]", blocks))
            if found is not blocks:
                changed[field] = found
    messages = result.get("messages")
    if type(messages) is list:
        told = [_message(owner, one) for one in cast("list[Any]", messages)]
        changed["messages"] = told
    return result | changed if changed else result


def _blocks(owner: str, blocks: list[Any]) -> list[Any]:
    """Nearly all of them are texts, which name nothing."""
    if not any(type(one) is dict and ("uri" in one or "resource" in one) for one in blocks):
        return blocks
    return [_block(owner, one) for one in blocks]


def _message(owner: str, message: Any) -> Any:
    if type(message) is not dict:
        return message
    told = cast("Json", message)
    content = told.get("content")
    if type(content) is list:
        return told | {"content": _blocks(owner, cast("list[Any]", content))}
    return told | {"content": _block(owner, content)} if type(content) is dict else told


def _block(owner: str, block: Any) -> Any:
    if type(block) is not dict:
        return block
    told = cast("Json", block)
    uri, held = told.get("uri"), told.get("resource")
    if type(uri) is str and is_of_house(uri):
        told = told | {"uri": f"{owner}:{uri}"}
    if type(held) is dict:
        told = told | {"resource": _block(owner, held)}
    return told
