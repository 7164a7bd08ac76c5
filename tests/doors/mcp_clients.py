"""MCP clients for tests: the official SDK's, which knows nothing of accord, over HTTP and through `accord mcp`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.users import ACCORD, User
from tests.hubs import Hub

TIMEOUT_S = 20.0
BEFORE, NOW = "legacy", "2026-07-28"  # how the SDK calls the revisions until 2025-11-25, and the one since


class Home:
    """A home with a hub and the agents ann and ben."""

    def __init__(self, user: User) -> None:
        self.user = user
        for name in ("ann", "ben"):
            user.json("register", name)
        self.hub = Hub(user.home, user.env)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.hub.status()['http_port']}/mcp"

    def token(self, name: str) -> str:
        return next((self.user.home / "agents").rglob(f"{name}.token")).read_text().strip()

    def headers(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(name)}", "Accord-Agent": name}

    def environment(self, name: str = "") -> dict[str, str]:
        return {**self.user.env, **({"ACCORD_AGENT": name} if name else {})}

    @asynccontextmanager
    async def client(self, way: str, revision: str, name: str = "ben", **more: Any) -> AsyncIterator[Client]:
        """By "http", or by "stdio"."""
        self.hub.start()
        if way == "http":
            async with self.http(revision, self.headers(name), **more) as client:
                yield client
            return
        pipe = StdioServerParameters(command=ACCORD, args=["mcp"], env=self.environment(name))
        async with Client(stdio_client(pipe), mode=revision, **more) as client:
            yield client

    @asynccontextmanager
    async def http(self, revision: str, headers: Mapping[str, str], **more: Any) -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(headers=dict(headers), timeout=TIMEOUT_S) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=revision, **more) as client,
        ):
            yield client


def run(work: Any) -> Any:
    """Run a test's coroutine to its end, or fail it when that takes too long."""

    async def limited() -> Any:
        async with asyncio.timeout(60):
            return await work

    return asyncio.run(limited())


def said(result: Any) -> str:
    """The text of a result that went well."""
    assert not result.is_error, result
    (content,) = result.content
    return str(content.text)


async def text_of(client: Client, uri: str) -> str:
    """What a resource holds."""
    found: Any = await client.read_resource(uri)
    (content,) = found.contents
    return str(content.text)


def refused(result: Any) -> str:
    """The code of the error that a result tells of, with what an error always has."""
    assert result.is_error, result
    assert set(result.structured_content) == {"status", "error_code", "error_message", "details"}
    assert result.structured_content["error_message"] in result.content[0].text
    return str(result.structured_content["error_code"])
