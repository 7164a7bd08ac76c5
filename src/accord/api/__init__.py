"""accord for programs: `accord.open()` gives every operation under the name it has everywhere.

with accord.open() as home:
    home.mail.send(sender="ann", to=["ben"], message="hello")
"""

import asyncio
import os
from collections.abc import Mapping
from copy import copy
from types import TracebackType
from typing import Any, Self

from accord import operations
from accord.api import groups
from accord.operations.context import Context, local


def open(home: str = "", engine: str = "", agent: str = "", token: str = "") -> "Accord":
    """A home, as the command line would find it; what is given here comes before the environment."""
    return Accord(_context(home, engine, agent, token))


def open_async(home: str = "", engine: str = "", agent: str = "", token: str = "") -> "AsyncAccord":
    """The same, for asyncio: each call runs in a thread."""
    return AsyncAccord(_context(home, engine, agent, token))


class Accord(groups.Groups):
    """A home that is open. Threads may share it; after a fork, open it anew."""

    def __init__(self, context: Context) -> None:
        self._context = context
        super().__init__(self._call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._context.close()

    def request(self, name: str) -> groups.Groups:
        """The operations, for one request: what is asked again under its name is not done again, and answered alike."""
        context = _for_request(self._context, name)
        return groups.Groups(lambda operation, params: operations.call(context, operation, params))

    def _call(self, operation: str, params: Mapping[str, object]) -> dict[str, Any]:
        return operations.call(self._context, operation, params)


class AsyncAccord(groups.AsyncGroups):
    def __init__(self, context: Context) -> None:
        self._context = context
        super().__init__(self._call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await asyncio.to_thread(self._context.close)

    def request(self, name: str) -> groups.AsyncGroups:
        """As that of `Accord`."""
        context = _for_request(self._context, name)
        return groups.AsyncGroups(
            lambda operation, params: asyncio.to_thread(operations.call, context, operation, params)
        )

    async def _call(self, operation: str, params: Mapping[str, object]) -> dict[str, Any]:
        return await asyncio.to_thread(operations.call, self._context, operation, params)


def _for_request(context: Context, name: str) -> Context:
    """The same, of a caller that has a name for what it asks."""
    other = copy(context)
    other.caller = copy(context.caller)
    other.caller.request = name
    return other


def _context(home: str, engine: str, agent: str, token: str) -> Context:
    given = {"ACCORD_AGENT": agent, "ACCORD_TOKEN": token}
    env = {**os.environ, **{name: value for name, value in given.items() if value}}
    return local(env, os.getcwd(), home, engine)
