"""Petstore's tools, called through the gate and the real HTTP provider on a server of its own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.house import ME
from tests.sources.openapi_documents import real
from toolgate import Toolgate, importing
from toolgate.errors import InvalidArguments, InvalidSpecs
from toolgate.importing import Fetched, Options, Remembered, fetched, imported, written
from toolgate.net.errors import NotAllowed
from toolgate.net.guard import Guard
from toolgate.settings.outward import HttpTools, Net, OpenApi, Providers, Secret
from toolgate.settings.settings import Settings, Tools

pytestmark = pytest.mark.req("P2", "C2")
Seen = list[tuple[str, str, dict[str, str], bytes]]
SMALL = b"""
openapi: 3.1.0
info: {title: Shop, version: "1"}
servers: [{url: /v1}]
paths:
  /items/{id}:
    get:
      operationId: getItem
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
"""


@asynccontextmanager
async def service(seen: Seen, document: bytes = b"") -> AsyncGenerator[str]:
    """Tells what it was sent; at /openapi.yaml it has a document."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/openapi.yaml":
            if request.headers.get("If-None-Match") == '"1"':
                return web.Response(status=304)
            return web.Response(body=document, headers={"ETag": '"1"'})
        body = await request.read()
        seen.append((request.method, request.raw_path, dict(request.headers), body))
        return web.json_response({"id": 7, "name": "Rex", "photoUrls": []})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def settings(root: Path, base: str, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Settings:
    place = base.removeprefix("http://")
    monkeypatch.setenv("PETS", "a-secret-of-pets")
    secret = Secret(value_env="PETS", hosts=(place,))
    secrets = {"pets_petstore_auth": secret, "pets_api_key": secret}
    return Settings(
        root=root,
        net=Net(allow=(place,)),
        providers=Providers(http=HttpTools(secrets=secrets)),
        **more,
    )


async def call(gate: Toolgate, tool: str, args: dict[str, Any]) -> Any:
    return await gate.call(tool, args, caller=ME)


async def test_petstore_is_called_with_path_query_header_and_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Seen = []
    async with service(seen) as base:
        options = Options(name="pets", server=f"{base}/api/v3")
        found = imported(Fetched(real("petstore-3.0"), "petstore.yaml"), options)
        file = written(found, Remembered(name="pets"), where="petstore.yaml")
        (tmp_path / "tools").mkdir()
        (tmp_path / "tools" / file.name).write_bytes(file.text)
        assert file.name == "pets.openapi.yaml"
        # DELETE is destructive, which a person would be asked about.
        text = file.text.replace(b"  destructive: true\n", b"")
        (tmp_path / "tools" / file.name).write_bytes(text)
        async with Toolgate.open(settings(tmp_path, base, monkeypatch)) as gate:
            assert "getPetById" not in gate.catalog.current.unusable
            got = await call(gate, "getPetById", {"petId": 7})
            assert got.data == {"id": 7, "name": "Rex", "photoUrls": []}
            await call(gate, "findPetsByTags", {"tags": ["a b", "c&d"]})
            await call(gate, "addPet", {"name": "Rex", "photoUrls": []})
            await call(gate, "deletePet", {"petId": 7, "api_key": "k"})
            await call(gate, "getUserByName", {"username": "a b?"})
            with pytest.raises(InvalidArguments):
                await call(gate, "getUserByName", {"username": "../../admin"})
            with pytest.raises(InvalidArguments):
                await call(gate, "getPetById", {"petId": "../../admin"})
    sent = [(method, path) for method, path, _headers, _body in seen]
    assert sent == [
        ("GET", "/api/v3/pet/7"),
        ("GET", "/api/v3/pet/findByTags?tags=a%20b&tags=c%26d"),
        ("POST", "/api/v3/pet"),
        ("DELETE", "/api/v3/pet/7"),
        ("GET", "/api/v3/user/a%20b%3F"),
    ]
    assert seen[2][3] == b'{"name":"Rex","photoUrls":[]}'
    assert seen[2][2]["Authorization"] == "Bearer a-secret-of-pets"
    assert seen[3][2]["api_key"] == "k"


async def test_a_document_in_the_settings_is_read_at_the_start_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Seen = []
    (tmp_path / "shop.yaml").write_bytes(SMALL)
    async with service(seen, SMALL) as base:
        documents = {
            "near": OpenApi(document="shop.yaml", prefix="near_", server=base),
            "far": OpenApi(document=f"{base}/openapi.yaml", prefix="far_"),
        }
        given = settings(tmp_path, base, monkeypatch, tools=Tools(openapi=documents))
        async with Toolgate.open(given) as gate:
            assert {"near_getItem", "far_getItem"} <= gate.catalog.current.specs.keys()
            await call(gate, "far_getItem", {"id": "1"})
            revision = gate.catalog.current.revision
            await gate.catalog.reload()
            assert gate.catalog.current.revision == revision
            await asyncio.to_thread(
                (tmp_path / "shop.yaml").write_bytes, SMALL.replace(b"getItem", b"findItem")
            )
            await gate.catalog.reload()
            assert "near_findItem" in gate.catalog.current.specs
    assert [path for _method, path, _headers, _body in seen] == ["/v1/items/1"]


async def test_an_overlay_of_a_document_in_the_settings_is_read_again_too(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_bytes(SMALL)
    word = tmp_path / "word.yaml"
    word.write_text("tools: {getItem: {timeout: 5}}", "utf-8")
    shop = OpenApi(
        document="shop.yaml", server="https://a.example", overlay="word.yaml", tags=("itms",)
    )
    every = shop.model_copy(update={"tags": ()})
    async with Toolgate.open(Settings(root=tmp_path, tools=Tools(openapi={"s": every}))) as gate:
        assert gate.catalog.current.specs["getItem"].timeout == 5
        word.write_text("tools: {getItem: {timeout: 6}}", "utf-8")
        await gate.catalog.reload()
        assert gate.catalog.current.specs["getItem"].timeout == 6
        word.write_text("tools: {getItem: {timeot: 6}}", "utf-8")
        await gate.catalog.reload()
        (health,) = [one for one in gate.catalog.health() if one.source == "openapi s"]
        assert "word.yaml:1: getItem.timeot" in health.problem
        assert gate.catalog.current.specs["getItem"].timeout == 6
    word.write_text("tools: {}", "utf-8")
    async with Toolgate.open(Settings(root=tmp_path, tools=Tools(openapi={"s": shop}))) as gate:
        (health,) = [one for one in gate.catalog.health() if one.source == "openapi s"]
        assert health.problem.startswith("No operation has the tag 'itms'.")


async def test_a_document_that_is_missing_stops_the_start(tmp_path: Path) -> None:
    tools = Tools(openapi={"near": OpenApi(document="nowhere.yaml")})
    with pytest.raises(InvalidSpecs, match=r"nowhere\.yaml"):
        async with Toolgate.open(Settings(root=tmp_path, tools=tools)):
            pass


async def test_a_document_in_a_private_network_is_fetched_only_where_the_settings_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Seen = []
    async with service(asked, SMALL) as base:
        with pytest.raises(NotAllowed):
            await fetched(Settings(root=tmp_path), f"{base}/nothing.yaml")
        assert asked == []
        allowed = Settings(root=tmp_path, net=Net(allow=(base.removeprefix("http://"),)))
        found = await fetched(allowed, f"{base}/openapi.yaml")
        assert (found.raw, found.address) == (SMALL, f"{base}/openapi.yaml")
        (tool,) = imported(found, Options(address=found.address)).tools
        assert tool["config"]["url"] == f"{base}/v1"

        # Without the guard the first request does get there.
        def open_to_all(_allow: object) -> Guard:
            return Guard(("127.0.0.0/8",))

        monkeypatch.setattr(importing, "Guard", open_to_all)
        await fetched(Settings(root=tmp_path), f"{base}/nothing.yaml")
        assert [path for _method, path, _headers, _body in asked] == ["/nothing.yaml"]
