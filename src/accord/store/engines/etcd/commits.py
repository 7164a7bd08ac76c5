"""Commits: one txn each, which compares what was read and the last numbers, and is made again when only those moved."""

from time import monotonic

from accord import errors, jsontext
from accord.store.contract import (
    Append,
    CollectionIs,
    Committed,
    Conflict,
    Head,
    ItemIs,
    Number,
    assign_numbers,
    is_number,
    resolve,
)
from accord.store.engines.etcd import requests
from accord.store.engines.etcd.gateway import pause
from accord.store.engines.etcd.home import LOADING
from accord.store.engines.etcd.requests import found_in, mod_of, range_of, value_of
from accord.store.engines.etcd.snapshot import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.store.contract import Check, Write
    from accord.store.engines.etcd import Etcd
    from accord.store.engines.etcd.home import Home
    from accord.store.engines.etcd.requests import Message

_MOST_COMPARED_BYTES = 40_000  # of keys, so that the largest commit stays below etcd's limit of 1.5 MiB
_MOST_GUESSED_BYTES = 100_000  # of what is written, in all guesses but the first
_MOST_LEVELS = 5
_MOST_GUESSES = 1 << (_MOST_LEVELS - 1)
_AT_ONCE = 6  # tries before the first pause: who has just lost knows the newest numbers, and a pause makes them old


class Commit:
    """One commit, tried until its own checks fail or the deadline passes."""

    def __init__(
        self,
        store: "Etcd",
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: Snapshot | None,
        timeout_s: float,
    ) -> None:
        self._store = store
        self._keys = store.keys
        self._checks = checks
        self._writes = writes
        self._snapshot = snapshot if snapshot is not None and snapshot.is_fixed else None
        self._deadline = monotonic() + timeout_s
        self._counted = _counted(writes)
        self._lasts: dict[str, int] = {}  # of the collections that are counted, as far as is known
        self._sure = False  # whether they were read for this commit
        self._moved: set[str] = set()  # those that rivals count on meanwhile
        self._misses = 0
        self._looked = False  # whether the collections that are checked were as they should be when it began

    def run(self) -> Committed:
        tries = 0
        while True:
            done = self._try(self._open_home())
            if done is not None:
                return done
            if monotonic() >= self._deadline:
                raise Conflict
            if tries >= _AT_ONCE:
                pause(tries - _AT_ONCE)
            tries += 1

    def _open_home(self) -> "Home":
        home = self._snapshot.home if self._snapshot else self._store.home()
        if home.state == LOADING:
            # Whoever loads will be told, and may begin again; it may also have died long ago.
            self._store.clear(home)
            if self._snapshot is not None:
                raise Conflict
            home = self._store.home()
        return home

    def _try(self, home: "Home") -> Committed | None:
        """None where only others' numbers moved."""
        compare = [home.is_same, *self._compare_checks(home)]
        if self._is_too_much(compare):
            return self._try_alone()
        self._know_heads()
        try:
            guesses = self._guesses(len(compare))
        except errors.InvalidKey:
            self._verify(home, compare)
            raise
        if not self._writes:
            return self._verify(home, compare)
        first, *more = guesses
        otherwise = [range_of(self._keys.epoch, keys_only=True)]
        if first.changed:
            # Not all guesses side by side: etcd's quota counts only what is put at the top.
            otherwise.append(requests.nested(compare, [self._nested(more)] if more else self._ranges_of_lasts(), []))
        answer = self._write([*compare, *first.compare], first.operations, otherwise)
        right = first if answer.get("succeeded") else self._learn(home, more, answer["responses"])
        return self._done(home, answer, right) if right else None

    def _try_alone(self) -> Committed | None:
        """More than one txn compares: it is looked at here, and compared is that nobody has committed since."""
        with Snapshot(self._store) as now:
            now.expect([(check.collection, check.id if isinstance(check, ItemIs) else "") for check in self._checks])
            now.expect([(collection, "") for collection in self._counted])
            self._must_be(all(_holds(now, check) for check in self._checks))
            self._must_be(self._snapshot is None or now.home.guard == self._snapshot.home.guard)
            self._lasts = {collection: now.head(collection).last for collection in self._counted}
            guess = self._guess(self._lasts)
            if not self._writes:
                return Committed(now.revision, ())
            log = self._keys.log
            unmoved = requests.is_of(log, now.log_mod) if now.log_mod else requests.is_absent(log)
            answer = self._write([now.home.is_same, unmoved], guess.operations, [])
            return self._done(now.home, answer, guess) if answer.get("succeeded") else None

    def _is_too_much(self, compare: "list[Message]") -> bool:
        size = sum(len(one["key"]) + len(one.get("range_end", "")) for one in compare)
        return size > _MOST_COMPARED_BYTES or self._size_of_txn(len(compare)) > requests.MOST

    def _size_of_txn(self, compared: int, guesses: int = 1) -> int:
        """As etcd counts it: on the longest way, of each level the most of its comparisons and operations."""
        made = len(self._writes) + len({write.collection for write in self._writes}) + 1
        outside = max(compared + len(self._counted), made)
        inside = max(compared, len(self._counted)) if self._counted else 0
        return outside + inside + (_MOST_LEVELS + made if guesses > 1 else 0)

    def _know_heads(self) -> None:
        """Of collections that are counted the last number, and once of those that are checked whether they are so."""
        known = self._snapshot.known_head if self._snapshot else _nothing_known
        unknown = set()
        for check in () if self._looked else self._checks:
            if isinstance(check, CollectionIs):
                head = known(check.collection)
                self._must_be(head is None or head.revision == check.revision)
                if head is None:
                    unknown.add(check.collection)
        for collection in self._counted:
            if collection not in self._lasts:
                head = known(collection)
                last = head.last if head else self._store.likely_last(collection)
                if last is None:
                    unknown.add(collection)
                else:
                    self._lasts[collection] = last
        if unknown:
            self._read_heads(unknown)
        self._looked = True

    def _read_heads(self, unknown: set[str]) -> None:
        with Snapshot(self._store) as now:
            now.expect([(collection, "") for collection in unknown])
            for collection in self._counted:
                if collection in unknown:
                    self._lasts[collection] = now.head(collection).last
            for check in self._checks:
                self._must_be(check.collection not in unknown or isinstance(check, ItemIs) or _holds(now, check))

    def _guesses(self, compared: int) -> "list[_Guess]":
        """What is written, for the last numbers that are known; and where rivals move them, for those to come."""
        if not self._sure and self._is_beyond():
            self._read_heads(set(self._counted))
            self._sure = True
        first = self._guess(self._lasts)
        if not self._misses:
            self._moved = {name for name in self._counted if self._store.rivals(name)}
        if not self._moved or self._size_of_txn(compared, 2) > requests.MOST:
            return [first]
        wanted = max(1 << min(self._misses, _MOST_LEVELS), *(1 + self._store.rivals(name) for name in self._moved))
        count = min(wanted, _MOST_GUESSES, _MOST_GUESSED_BYTES // _size(first.operations), self._room(first))
        return [first, *(self._guess(self._lasts_after(more)) for more in range(1, count))]

    def _nested(self, guesses: "list[_Guess]") -> "Message":
        """The right one is searched for by halves: etcd's gateway takes long for what is nested deeply."""
        if len(guesses) == 1:
            return requests.nested(guesses[0].compare, guesses[0].operations, self._ranges_of_lasts())
        half = len(guesses) // 2
        pivot = self._pivot(guesses[0])
        is_less = requests.has_less(self._keys.last(pivot), b"%d" % guesses[half].lasts[pivot])
        return requests.nested([is_less], [self._nested(guesses[:half])], [self._nested(guesses[half:])])

    def _ranges_of_lasts(self) -> "list[Message]":
        return [range_of(self._keys.last(collection)) for collection in self._counted]

    def _pivot(self, guess: "_Guess") -> str:
        """A collection whose last number tells which guess is right."""
        return next((name for name in guess.changed if name in self._moved and guess.lasts[name]), "")

    def _room(self, first: "_Guess") -> int:
        """For how many guesses: those with as many digits are in order as text."""
        last = first.lasts.get(self._pivot(first), 0)
        return int("1" + "0" * len(str(last))) - last if last else 1

    def _lasts_after(self, more: int) -> dict[str, int]:
        return {name: last + more if name in self._moved else last for name, last in self._lasts.items()}

    def _guess(self, lasts: dict[str, int]) -> "_Guess":
        numbers, found = assign_numbers(self._writes, lambda collection: lasts[collection])
        changed = {name: last for name, last in found.items() if last != lasts[name]}
        compare = [self._compare_last(name, lasts[name]) for name in changed]
        return _Guess(lasts, numbers, changed, compare, self._operations(resolve(self._writes, numbers), changed))

    def _is_beyond(self) -> bool:
        """Whether a number is written that, for all that is known, no append gave: one may have since."""
        return any(
            not isinstance(write, Append)
            and isinstance(write.id, str)
            and is_number(write.id)
            and int(write.id) > self._lasts[write.collection]
            for write in self._writes
        )

    def _write(self, compare: "list[Message]", made: "list[Message]", otherwise: "list[Message]") -> "Message":
        before = self._store.gateway.revision
        try:
            return self._store.gateway.txn(compare, made, otherwise, self._left_s(), safe=False)
        except errors.StorageFull:
            self._be_sure_that_nobody_wrote(before)
            raise

    def _be_sure_that_nobody_wrote(self, before: int) -> None:
        """What takes the last room is made, and etcd says the same of it as of what it refuses."""
        answer = self._store.gateway.txn([], [range_of(self._keys.log, keys_only=True)])
        found = found_in(answer["responses"][0])
        if found and mod_of(found[0]) > before:
            raise errors.OutcomeUnknown(path=self._store.path, reason="it has no more room")

    def _done(self, home: "Home", answer: "Message", guess: "_Guess") -> Committed:
        if answer["header"]["cluster_id"] != home.cluster:
            self._store.forget_home()  # put back from a copy meanwhile
        for collection, last in {**self._lasts, **guess.changed}.items():
            self._store.remember_last(collection, last)
        for collection, last in self._lasts.items():
            self._store.remember_rivals(collection, guess.lasts[collection] - last)
        return Committed(home.revision(int(answer["header"]["revision"])), tuple(guess.numbers))

    def _compare_checks(self, home: "Home") -> "list[Message]":
        compare = []
        for check in self._checks:
            if isinstance(check, ItemIs):
                key = self._keys.item(check.collection, check.id)
                compare += _compare_item(home, key, check.revision)
            elif check.revision:
                start, end = self._keys.heads(check.collection)
                compare.append(requests.is_before(start, home.mod_of(check.revision) + 1, end))
            else:
                compare.append(requests.is_absent(*self._keys.heads(check.collection)))
        return compare

    def _compare_last(self, collection: str, last: int) -> "Message":
        key = self._keys.last(collection)
        return requests.has_value(key, b"%d" % last) if last else requests.is_absent(key)

    def _operations(self, values: "dict[tuple[str, str], bytes | None]", changed: "dict[str, int]") -> "list[Message]":
        made = []
        for (collection, id), value in values.items():
            key = self._keys.item(collection, id)
            made.append(requests.delete(key) if value is None else requests.put(key, value))
        for collection in dict.fromkeys(collection for collection, _ in values):
            if collection in changed:
                made.append(requests.put(self._keys.last(collection), b"%d" % changed[collection]))
            else:
                made.append(requests.put(self._keys.touched(collection), b""))
        keys = jsontext.dumps([[collection, id] for collection, id in values])
        return [*made, requests.put(self._keys.log, keys.encode())]

    def _learn(self, home: "Home", guesses: "list[_Guess]", responses: "list[Message]") -> "_Guess | None":
        """Which other guess was made; None: none, and the last numbers are known now; or why nothing was."""
        epoch = found_in(responses[0])
        if not epoch or mod_of(epoch[0]) != home.guard:
            self._store.forget_home()
            self._must_be(self._snapshot is None and not self._checks)
            self._lasts = {}
            return None
        nested = responses[1]["response_txn"] if len(responses) > 1 else {}
        self._must_be(bool(nested.get("succeeded")))
        if guesses:
            nested = nested["responses"][0]["response_txn"]
            while len(guesses) > 1:
                half = len(guesses) // 2
                guesses = guesses[:half] if nested.get("succeeded") else guesses[half:]
                nested = nested["responses"][0]["response_txn"]
            if nested.get("succeeded"):
                return guesses[0]
        self._learn_lasts(nested["responses"])
        return None

    def _learn_lasts(self, responses: "list[Message]") -> None:
        self._misses += 1
        for collection, response in zip(self._counted, responses, strict=True):
            found = found_in(response)
            last = int(value_of(found[0])) if found else 0
            if last != self._lasts[collection]:
                self._moved.add(collection)
                self._lasts[collection] = last
        self._sure = True

    def _verify(self, home: "Home", compare: "list[Message]") -> Committed:
        answer = self._store.gateway.txn(compare, [range_of(self._keys.log, keys_only=True)], [], self._left_s())
        self._must_be(bool(answer.get("succeeded")))
        found = found_in(answer["responses"][0])
        return Committed(home.revision(mod_of(found[0]) if found else 0), ())

    def _must_be(self, holds: bool) -> None:
        if not holds:
            raise Conflict

    def _left_s(self) -> float:
        return max(0.1, self._deadline - monotonic())


class _Guess:
    """What to write where the last numbers are these."""

    __slots__ = ("changed", "compare", "lasts", "numbers", "operations")

    def __init__(
        self,
        lasts: dict[str, int],
        numbers: "list[int]",
        changed: dict[str, int],
        compare: "list[Message]",
        operations: "list[Message]",
    ) -> None:
        self.lasts = lasts
        self.numbers = numbers
        self.changed = changed
        self.compare = compare
        self.operations = operations


def _size(operations: "list[Message]") -> int:
    puts = [one["request_put"] for one in operations if "request_put" in one]
    return sum(len(put["key"]) + len(put["value"]) for put in puts)


def _counted(writes: "Sequence[Write]") -> "list[str]":
    """The collections whose last number matters."""
    return [
        *dict.fromkeys(
            write.collection
            for write in writes
            if isinstance(write, Append) or isinstance(write.id, Number) or is_number(write.id)
        )
    ]


def _compare_item(home: "Home", key: bytes, revision: int) -> "list[Message]":
    if not revision:
        return [requests.is_absent(key)]
    if revision == home.floor:
        # All that was loaded has this one.
        return [requests.is_there(key), requests.is_before(key, home.mod + 1)]
    return [requests.is_of(key, home.mod_of(revision))]


def _holds(now: Snapshot, check: "Check") -> bool:
    if isinstance(check, CollectionIs):
        return now.head(check.collection).revision == check.revision
    item = now.get(check.collection, check.id)
    return (item.revision if item else 0) == check.revision


def _nothing_known(collection: str) -> Head | None:
    return None
