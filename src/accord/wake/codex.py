"""Codex at a terminal looks every ten seconds at a queue of its own: a table in its home, which `codex queue` fills.

We do it ourselves: to run a program would mean one that an agent could name, or put in the way of the hub's PATH.
"""

import fcntl
import json
import os
import stat
import time
import uuid
from typing import Any

from accord import place

_TIMEOUT_MS = 2000
_KNOWN = 2  # how often Codex has changed its tables, as far as we know them

_PUT = """
INSERT INTO queued_items (id, thread_id, payload_json, queue_order, created_at_ms, updated_at_ms)
SELECT :id, :thread, :payload, coalesce(max(queue_order), -1) + 1, :now, :now FROM queued_items
WHERE thread_id = :thread HAVING count(*) = 0
"""


def wake(session: "dict[str, Any]", text: str) -> bool:
    folder, thread = session["reach"], session["session"]
    queue = f"{folder}/queue_1.sqlite"
    if not _is_own(folder) or not _is_id(thread) or not _is_mine(queue):
        return False
    return _is_open(f"{folder}/thread-writer-locks/{thread}.lock") and _put(queue, thread, text)


def _is_own(folder: str) -> bool:
    """Whether it is the folder that this user's Codex has: an agent could have named any other."""
    own = os.environ.get("CODEX_HOME") or f"{place.user_home(os.environ)}/.codex"
    return os.path.realpath(folder) == os.path.realpath(own)


def _is_id(thread: str) -> bool:
    try:
        return str(uuid.UUID(thread)) == thread
    except ValueError:
        return False


def _is_mine(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _is_open(lock: str) -> bool:
    """Whether some Codex has the thread open: it holds the lock. What nobody takes would be said at the next start."""
    if not _is_mine(lock):
        return False
    file = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _put(queue: str, thread: str, text: str) -> bool:
    """Whether the text is in the queue; one thing there is enough to have a turn begin."""
    import apsw

    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    try:
        connection = apsw.Connection(queue, flags=flags)
        try:
            connection.set_busy_timeout(_TIMEOUT_MS)
            known = connection.execute("SELECT max(version) FROM _sqlx_migrations").fetchone()
            if known != (_KNOWN,):
                return False
            given = {"id": str(uuid.uuid4()), "thread": thread, "payload": _payload(text), "now": _now_ms()}
            connection.execute(_PUT, given)
        finally:
            connection.close()
    except apsw.Error as error:
        raise OSError(f"the queue of Codex cannot be written: {error}") from None
    return True


def _payload(text: str) -> str:
    content = [{"type": "text", "text": text, "text_elements": []}]
    return json.dumps({"UserInput": {"content": content, "client_id": str(uuid.uuid4())}})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
