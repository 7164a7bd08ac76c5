"""Claude Code gives every session a socket: a line with its token, and one with a prompt. Nothing is answered."""

import json
import os
import socket
import stat
from typing import Any

from accord.services import processes

_TIMEOUT_S = 2.0


def wake(session: "dict[str, Any]", text: str) -> bool:
    token, _, path = session["reach"].partition(" ")
    if not _is_its_own(path, processes.pid_of(session["process"])):
        return False
    lines = [
        {"type": "auth", "token": token},
        {"type": "user", "message": {"role": "user", "content": text}},
    ]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(path)
        connection.sendall(b"".join([json.dumps(line).encode() + b"\n" for line in lines]))
    return True


def _is_its_own(path: str, pid: str) -> bool:
    """Whether a socket is one of Claude Code's for that process: an agent could have named any other."""
    if not pid or os.path.basename(path) != f"{pid}.sock" or os.path.basename(os.path.dirname(path)) != "cc-socks":
        return False
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()
