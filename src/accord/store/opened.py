"""What every engine refuses: use after close, and use in a child that was forked after opening."""

import os

from accord import errors


class Opened:
    def __init__(self, path: str) -> None:
        self.path = path
        self.closed = False
        self._pid = os.getpid()

    def check(self) -> None:
        if self.closed:
            raise errors.StoreClosed(path=self.path)
        if os.getpid() != self._pid:
            raise errors.StoreForked(path=self.path, opened_by=self._pid, used_by=os.getpid())
