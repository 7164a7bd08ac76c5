"""Room for connections. Each is an open file, whatever its door, and some are kept for the rest of the hub's work.

The machine gives the lowest number that is free: a connection with a high one says how many are open.
"""

import resource

KEPT = 40  # and as many again for the unix socket, whose callers are known


def is_there_for(fd: int, known: bool = False) -> bool:
    """Whether a connection that was just accepted may stay."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    kept = max(KEPT, most // 8)
    return most == resource.RLIM_INFINITY or fd < most - kept * (1 if known else 2)
