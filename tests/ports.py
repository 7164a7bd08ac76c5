"""Ports of loopback that nobody listens on."""

import socket
from contextlib import ExitStack, closing


def free_ports(count: int) -> list[int]:
    """So many, each another; bound, and not listened on, they can be had again at once."""
    with ExitStack() as stack:
        found = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in found]


def free_port() -> int:
    return free_ports(1)[0]
