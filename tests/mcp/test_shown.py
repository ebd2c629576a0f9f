"""What is there to be looked at reaches clients as such: plots as text, pictures as pictures."""

import base64
import struct
import zlib
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


# A curve, drawn by what every Python has: 1 bit a pixel, white on black.
PLOT = """
import struct, zlib

def chunk(kind, content):
    body = kind + content
    return struct.pack("!I", len(content)) + body + struct.pack("!I", zlib.crc32(body))

rows = [bytearray(8) for _ in range(64)]
for x in range(64):
    rows[63 - x * x // 63][x // 8] |= 128 >> x % 8
head = struct.pack("!IIBBBBB", 64, 64, 1, 0, 0, 0, 0)
content = zlib.compress(b"".join(b"\\0" + row for row in rows))
picture = chunk(b"IHDR", head) + chunk(b"IDAT", content) + chunk(b"IEND", b"")
size = open("plot.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + picture)
"""


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


@pytest.mark.req("T3")
@pytest.mark.parametrize("mode", MODES)
async def test_a_plot_that_code_has_drawn_is_a_picture(house: House, mode: str) -> None:
    async with house.client(mode) as client:
        found = await client.call_tool("code_execute", {"code": PLOT})
    said, shown = found.content
    assert isinstance(said, TextContent)
    assert isinstance(shown, ImageContent)
    assert shown.mime_type == "image/png"
    assert _pixels(base64.b64decode(shown.data)) == {(x, 63 - x * x // 63) for x in range(64)}
    assert shown.data not in said.text
    assert orjson.loads(said.text)["files"][0]["path"] == "plot.png"


def _pixels(png: bytes) -> set[tuple[int, int]]:
    """Those that are white; every checksum of the file is looked at."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        body = png[at + 4 : at + 8 + size]
        assert zlib.crc32(body) == int.from_bytes(png[at + 8 + size : at + 12 + size], "big")
        chunks[body[:4]] = body[4:]
        at += 12 + size
    rows = zlib.decompress(chunks[b"IDAT"])
    width, height = struct.unpack("!II", chunks[b"IHDR"][:8])
    return {
        (x, y)
        for y in range(height)
        for x in range(width)
        if rows[y * (width // 8 + 1) + 1 + x // 8] & (128 >> x % 8)
    }
