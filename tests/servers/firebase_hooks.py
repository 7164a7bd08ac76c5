"""What a test has the server do to requests at the worst moments."""

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.servers import firebase_tree as tree

LONG_S = 60.0

# What may happen to a request:
#   fail    it is refused with `status`
#   drop    the connection ends, and nothing is done
#   lose    it is done, and the connection ends without an answer
#   late    the connection ends, and it is done when `land` is said
#   hold    it waits until `release` is said, and is then done unless nobody waits for it any more
#   stop    it is done, and its answer waits until `release` is said
#   rival   `writes` are made just before it is done
KINDS = ("fail", "drop", "lose", "late", "hold", "stop", "rival")


@dataclass
class Hook:
    kind: str
    method: str = ""  # any
    path: str = ""  # what the path begins with, without a slash
    holding: str = ""  # what the path or the body has in it
    skip: int = 0  # so many such requests go by first
    times: int = 1
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)
    writes: list[tuple[str, Any]] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    landed: threading.Event = field(default_factory=threading.Event)

    def names(self, method: str, path: str, body: bytes) -> bool:
        return (
            self.method in ("", method)
            and path.startswith(self.path)
            and (not self.holding or self.holding in path or self.holding.encode() in body)
        )


class Hooks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hooks: dict[int, Hook] = {}
        self._count = 0

    def add(self, facts: dict[str, Any]) -> int:
        hook = Hook(**facts)
        if hook.kind not in KINDS:
            raise tree.Wrong(f"no hook {hook.kind}")
        with self._lock:
            self._count += 1
            self._hooks[self._count] = hook
            return self._count

    def find(self, number: int) -> Hook:
        return self._hooks[number]

    def clear(self) -> None:
        with self._lock:
            for hook in self._hooks.values():
                hook.times = 0
                hook.released.set()

    def next_for(self, method: str, path: str, body: bytes) -> Hook | None:
        """The first hook that now takes hold of this request."""
        with self._lock:
            for hook in self._hooks.values():
                if hook.times > 0 and hook.names(method, path, body):
                    if hook.skip:
                        hook.skip -= 1
                        continue
                    hook.times -= 1
                    return hook
        return None
