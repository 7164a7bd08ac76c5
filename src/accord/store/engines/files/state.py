"""How far the commits of the journal are laid out in the items' files, in a small file that readers look at.

It lets readers do without the lock: what is read between two equal looks at a settled state belongs to that
state. The file is never flushed; after a restart of the machine the journal is laid out anew.
"""

import os
from binascii import crc32

from accord import platform
from accord.store.local import folder

_FORMAT = "%s %s %016d %016d %016d %016d %s"
_BYTES = 200


class State:
    __slots__ = ("base", "end", "epoch", "floor", "revision", "settled")

    def __init__(self, epoch: str, revision: int, floor: int, base: int, end: int, settled: bool) -> None:
        self.epoch = epoch
        self.revision = revision  # everything up to it is laid out, if settled
        self.floor = floor  # changes up to it are forgotten
        self.base = base  # of the journal, which tells one journal from the next
        self.end = end  # of the last record in the journal that is laid out
        self.settled = settled  # False while a commit is being laid out

    def encode(self) -> bytes:
        phase = "settled" if self.settled else "changing"
        text = _FORMAT % (phase, self.epoch, self.revision, self.floor, self.base, self.end, platform.boot_id())
        return f"{text} {crc32(text.encode()):08x}\n".encode()


class StateFile:
    def __init__(self, path: str) -> None:
        self._fd = folder.open_private(path)

    def look(self) -> bytes:
        return os.pread(self._fd, _BYTES, 0)

    def write(self, state: State) -> None:
        os.pwrite(self._fd, state.encode().ljust(_BYTES), 0)

    def close(self) -> None:
        os.close(self._fd)


def decode(seen: bytes) -> State | None:
    """The state in what was seen, if it is whole and of this boot; else only the journal can tell."""
    text, _, check = seen.rstrip().rpartition(b" ")
    words = text.decode("ascii", "replace").split(" ")
    if len(words) != 7 or check != b"%08x" % crc32(text) or words[6] != platform.boot_id():
        return None
    revision, floor, base, end = (int(word) for word in words[2:6])
    return State(words[1], revision, floor, base, end, words[0] == "settled")
