"""What happened in the hub, as JSON lines with `timestamp`, `level` and `event`: no bodies and no secrets."""

import os
import threading
import time

from accord import errors, jsontext
from accord.model import timestamp
from accord.store.local import folder

MOST_BYTES = 10 << 20  # of one file; then it is put aside
KEPT = 5  # files that were put aside


class Log:
    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._fd = -1
        self._size = 0

    def info(self, event: str, **fields: object) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write("error", event, fields)

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1

    def _write(self, level: str, event: str, fields: "dict[str, object]") -> None:
        record = {"timestamp": timestamp(time.time()), "level": level, "event": event, **fields}
        line = jsontext.dumps(record).encode() + b"\n"
        with self._lock:
            try:
                self._make_room(len(line))
                os.write(self._fd, line)
                self._size += len(line)
            except (OSError, errors.AccordError):
                pass  # a full disk is no reason to stop working

    def _make_room(self, size: int) -> None:
        if self._fd >= 0 and self._size + size > MOST_BYTES:
            os.close(self._fd)
            self._fd = -1
            for number in range(KEPT - 1, 0, -1):
                if os.path.exists(f"{self._path}.{number}"):
                    os.rename(f"{self._path}.{number}", f"{self._path}.{number + 1}")
            os.rename(self._path, f"{self._path}.1")
        if self._fd < 0:
            self._fd = folder.open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._size = os.fstat(self._fd).st_size
