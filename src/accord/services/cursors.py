"""How far an inbox was acknowledged: everything up to a number, and ranges beyond it."""

from accord import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from accord.store.transaction import Transaction

CURSORS = "cursor"


class Cursor:
    def __init__(self, upto: int = 0, beyond: "list[list[int]] | None" = None, at: str = "") -> None:
        self.upto = upto  # every message up to this number is acknowledged
        self.beyond = beyond or []  # and those in these ranges, ends included, in order, apart from each other
        self.at = at  # when that last changed

    @property
    def count(self) -> int:
        """How many are acknowledged."""
        return self.upto + sum(last - first + 1 for first, last in self.beyond)

    def has(self, number: int) -> bool:
        return number <= self.upto or any(first <= number <= last for first, last in self.beyond)

    def add(self, numbers: "Iterable[int]") -> bool:
        """Acknowledge more; whether that changed anything."""
        before = self.count
        ranges = [*self.beyond, *[[number, number] for number in numbers if not self.has(number)]]
        self.beyond = []
        for first, last in sorted(ranges):
            if first <= self.upto + 1:
                self.upto = max(self.upto, last)
            elif self.beyond and first <= self.beyond[-1][1] + 1:
                self.beyond[-1][1] = max(self.beyond[-1][1], last)
            else:
                self.beyond.append([first, last])
        return self.count > before


def read(tx: "Transaction", name: str, check: bool = True) -> Cursor:
    item = tx.get(CURSORS, name, check=check)
    if item is None:
        return Cursor()
    record: Any = jsontext.loads_own(item.value)
    return Cursor(record["upto"], record["beyond"], record["at"])


def write(tx: "Transaction", name: str, cursor: Cursor) -> None:
    record = {"upto": cursor.upto, "beyond": cursor.beyond, "at": cursor.at}
    tx.put(CURSORS, name, jsontext.dumps(record).encode())
