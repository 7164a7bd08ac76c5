"""accord for programs: `accord.open()` gives every operation under the name it has everywhere.

with accord.open() as home:
    home.mail.send(sender="ann", to=["ben"], message="hello")
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from types import TracebackType
from typing import Any, Self, TypeVar

from accord import operations
from accord.api import groups
from accord.operations.context import Context, local

T = TypeVar("T")

_MOST_THREADS = 100_000  # none: a call that waits must not keep another from starting, as in the small pool of asyncio


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
    """A home that is open, for asyncio. It has threads of its own, as many as calls are made at once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "accord")
        super().__init__(self._call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        try:
            await self._in_thread(self._context.close)
        finally:
            self._threads.shutdown(wait=False)

    def request(self, name: str) -> groups.AsyncGroups:
        """As that of `Accord`."""
        context = _for_request(self._context, name)
        return groups.AsyncGroups(
            lambda operation, params: self._in_thread(lambda: operations.call(context, operation, params))
        )

    async def _call(self, operation: str, params: Mapping[str, object]) -> dict[str, Any]:
        return await self._in_thread(lambda: operations.call(self._context, operation, params))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


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
