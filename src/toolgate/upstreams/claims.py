"""URIs of the house in what a server sends: nobody else's contents stand under them.

`focal:` and `toolgate:` name what the house says of itself. Contents of a server that claim such a
URI would be taken for its word, so they are named as what they are: that server's.
"""

from typing import Any, cast

from toolgate.spec.names import is_of_house
from toolgate.upstreams.message import Json


def disowned(server: str, result: Json) -> Json:
    """The same result where it claims nothing; else with those URIs behind the server's name."""
    changed: Json = {}
    for field in ("content", "contents"):
        blocks = result.get(field)
        if type(blocks) is list:
            found = _blocks(server, cast("list[Any]", blocks))
            if found is not blocks:
                changed[field] = found
    messages = result.get("messages")
    if type(messages) is list:
        told = [_message(server, one) for one in cast("list[Any]", messages)]
        changed["messages"] = told
    return result | changed if changed else result


def _blocks(server: str, blocks: list[Any]) -> list[Any]:
    """Nearly all of them are texts, which name nothing."""
    if not any(type(one) is dict and ("uri" in one or "resource" in one) for one in blocks):
        return blocks
    return [_block(server, one) for one in blocks]


def _message(server: str, message: Any) -> Any:
    if type(message) is not dict:
        return message
    told = cast("Json", message)
    content = told.get("content")
    if type(content) is list:
        return told | {"content": _blocks(server, cast("list[Any]", content))}
    return told | {"content": _block(server, content)} if type(content) is dict else told


def _block(server: str, block: Any) -> Any:
    if type(block) is not dict:
        return block
    told = cast("Json", block)
    uri, held = told.get("uri"), told.get("resource")
    if type(uri) is str and is_of_house(uri):
        told = told | {"uri": f"mcp:{server}:{uri}"}
    if type(held) is dict:
        told = told | {"resource": _block(server, held)}
    return told
