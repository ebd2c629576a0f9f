"""What is there to be looked at reaches clients as such: plots as text, pictures as pictures."""

import base64
from typing import Any

import orjson
import pytest
from mcp.types import ImageContent, TextContent

from tests.mcp.house import MODES, House
from toolgate import tool

pytestmark = pytest.mark.req("V1")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
FILE = {"type": "object", "properties": {"media_type": {"type": "string"}}}
FILES = {"type": "object", "properties": {"files": {"type": "array", "items": FILE}}}


def picture(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "media_type": "image/png", "encoding": "base64", "content": PNG} | more


@tool(name="draw", effect="pure", output_schema=FILES)
def draw() -> dict[str, Any]:
    """Give files, some of which are pictures."""
    return {
        "stdout": "done",
        "files": [
            picture("plot.png"),
            picture("notes.txt", media_type="text/plain", encoding="utf-8", content="hi"),
            # What is kept elsewhere, or is no picture that clients know, stays as it is.
            {"path": "large.png", "media_type": "image/png", "reference": "toolgate-output:1"},
            picture("odd.svg", media_type="image/svg+xml"),
        ],
    }


@pytest.mark.parametrize("mode", MODES)
async def test_a_plot_is_a_text_and_what_is_known_of_it_another(house: House, mode: str) -> None:
    async with house.client(mode) as client:
        found = await client.call_tool("plot_function", {"expression": "x^2", "height": 5})
    drawn, rest = (one.text for one in found.content if one.type == "text")
    assert found.structured_content is not None
    assert drawn == found.structured_content["text"]
    assert "\n" in drawn
    assert "┤" in drawn
    assert orjson.loads(rest).keys() == found.structured_content.keys() - {"text"}


async def test_a_formula_is_a_text(house: House) -> None:
    async with house.client() as client:
        found = await client.call_tool("render_math", {"latex": "\\frac{a}{b}"})
    assert found.content[0].type == "text"
    assert found.content[0].text.split() == ["a", "─", "b"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_picture_is_one_and_its_bytes_stand_in_no_text(house: House, mode: str) -> None:
    house.gate.add(draw)
    async with house.client(mode) as client:
        found = await client.call_tool("draw", {})
    said, *shown = found.content
    assert isinstance(said, TextContent)
    assert shown == [ImageContent(type="image", data=PNG, mime_type="image/png")]
    told = orjson.loads(said.text)
    assert (told["stdout"], "content" in told["files"][0]) == ("done", False)
    assert told["files"][1:] == draw()["files"][1:]
    # What programs read is the whole of it.
    assert found.structured_content == draw()
