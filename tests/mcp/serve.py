"""A hub whose MCP has the fixtures of the conformance suite besides its own: python -m tests.mcp.serve AGENT HOME ...

The suite knows of no tokens. So what comes without one gets an agent's here, in front of the door, which looks at
everything else as ever.
"""

import os
import sys
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from accord import daemon
from accord.doors import http_routes
from accord.doors.mcp import server
from tests.mcp.fixtures import Fixtures


class WithToken:
    def __init__(self, app: ASGIApp, agent: str, token: str) -> None:
        self._app = app
        self._headers = [(b"authorization", f"Bearer {token}".encode()), (b"accord-agent", agent.encode())]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "headers": [*scope["headers"], *self._headers]}, receive, send)


def main(agent: str, words: list[str]) -> int:
    token = next((Path(words[0]) / "agents").rglob(f"{agent}.token")).read_text().strip()
    real = http_routes.Routes.application
    http_routes.Routes.application = lambda self: WithToken(real(self), agent, token)  # type: ignore[method-assign,assignment,return-value]
    server.HubServer = Fixtures  # type: ignore[misc]
    return daemon.main(words)


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    os._exit(code)
