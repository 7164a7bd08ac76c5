"""The database's time, on which all processes of a machine agree to the microsecond.

Once per start of a machine somebody notes in the tree the server's time beside the machine's own. From then on the time
is the machine's clock, which nobody can set, and that difference. Each answer's `Date` tells when they drifted apart.
"""

from accord import platform
from accord.store.contract import Instant
from accord.store.engines.firebase.rest import NULL_ETAG, Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.store.engines.firebase.rest import Reply, Rest

_MOST_DRIFT_S = 5.0  # `Date` has whole seconds, and answers take their time
_MOST_TRIES = 4
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Clock:
    def __init__(self, rest: "Rest") -> None:
        self._rest = rest
        self._path = "clocks/k" + "".join([letter if letter.isalnum() else "-" for letter in platform.boot_id()])
        self._ahead_s: float | None = None  # of the machine's own
        self._heard: tuple[float, float] | None = None  # the last `Date`, and when that came
        rest.heard_date = self._hear

    def now(self) -> Instant:
        ahead_s = self._ahead_s
        if ahead_s is None:
            ahead_s = self.learn(self._rest.get(self._path, "?"))
        return Instant("firebase", platform.boot_seconds() + ahead_s)

    def ask(self) -> "Ask | None":
        """What to ask with the first of all questions."""
        return Ask(self._path, None, "?") if self._ahead_s is None else None

    def learn(self, reply: "Reply") -> float:
        """Take the difference that stands there, and set it first where there is none or it is wrong."""
        tries = 0
        while True:
            node: Any = reply.value
            ahead_s: float | None = None if node is None else (node["t"] - node["b"]) / 1000
            if ahead_s is not None and (tries == _MOST_TRIES or not self._has_drifted(ahead_s)):
                self._ahead_s = ahead_s
                return ahead_s
            tries += 1
            mine = {"b": int(platform.boot_seconds() * 1000), "t": {".sv": "timestamp"}}
            self._heard = None
            self._rest.put(self._path, mine, reply.etag or NULL_ETAG)
            reply = self._rest.get(self._path, "?")

    def _hear(self, date: str) -> None:
        try:
            self._heard = _seconds_of(date), platform.boot_seconds()
        except (ValueError, IndexError):
            return
        if self._ahead_s is not None and self._has_drifted(self._ahead_s):
            self._ahead_s = None

    def _has_drifted(self, ahead_s: float) -> bool:
        if self._heard is None:
            return False
        date, then = self._heard
        return abs(date - then - ahead_s) > _MOST_DRIFT_S


def _seconds_of(date: str) -> float:
    """Of `Sun, 06 Nov 1994 08:49:37 GMT`, since 1970."""
    _, day, month, year, clock, _ = date.split()
    hours, minutes, seconds = clock.split(":")
    number = _MONTHS.index(month) + 1
    # Days from 1970 to a day, counted in years that begin in March.
    years = int(year) - (number <= 2)
    days = 365 * years + years // 4 - years // 100 + years // 400
    days += (153 * ((number + 9) % 12) + 2) // 5 + int(day) - 719_469
    return days * 86400.0 + int(hours) * 3600 + int(minutes) * 60 + int(seconds)
