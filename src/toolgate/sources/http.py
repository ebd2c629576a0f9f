"""Specs from an endpoint that answers with a tool file."""

import asyncio
from collections.abc import Sequence

from toolgate.errors import SourceUnavailable
from toolgate.net.address import authorization, shown, without_user
from toolgate.net.client import HttpClient
from toolgate.sources.remote import data_only
from toolgate.sources.text import parse
from toolgate.spec.reader import read_tools
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.text.document import MAX_BYTES


class HttpSource:
    """One endpoint. An answer that has not changed (ETag) is not read again."""

    required = False

    def __init__(self, url: str, client: HttpClient) -> None:
        # The address can hold a password; its name is for everyone.
        self.name = shown(url)
        self._url = without_user(url)
        self._headers = {"Accept": "application/json, application/yaml", **authorization(url)}
        self._client = client
        self._etag = ""
        self._last: list[ToolSpec] = []

    async def load(self) -> Sequence[ToolSpec]:
        """Fetch and read, or keep what an unchanged answer had."""
        headers = self._headers
        if self._etag:
            headers = {**headers, "If-None-Match": self._etag}
        response = await self._client.get(self._url, headers=headers, most=MAX_BYTES)
        if response.status == 304 and self._etag:
            return self._last
        if response.status != 200:
            raise SourceUnavailable(
                f"{self.name} answered {response.status} instead of 200 with a tool file."
            )
        # A large answer takes a while to read; calls go on meanwhile.
        self._last = await asyncio.to_thread(self._read, response.body)
        self._etag = response.headers.get("ETag", "")
        return self._last

    def _read(self, body: bytes) -> list[ToolSpec]:
        text = parse(body, file=self.name)
        origin = Origin("http", self.name)
        specs = read_tools(text.value, file=self.name, origin=origin, line_of=text.line_of)
        return data_only(specs, file=self.name)
