"""One commit: the checks hold, `head` is put under the ETag of the one before, and then it is applied."""

import os
import time
from time import monotonic

from accord import errors
from accord.store.contract import (
    KEPT_REVISIONS,
    TRIM_EVERY,
    Append,
    Committed,
    Conflict,
    ItemIs,
    Number,
    assign_numbers,
    is_number,
    resolve,
)
from accord.store.engines.firebase import applying, keys
from accord.store.engines.firebase.rest import Ask, json_bytes
from accord.store.engines.firebase.snapshot import ask_head, ask_item, item_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.store.contract import Check, Write
    from accord.store.engines.firebase import Firebase
    from accord.store.engines.firebase.record import Head
    from accord.store.engines.firebase.rest import Reply
    from accord.store.engines.firebase.snapshot import Snapshot

_APPLY_S = 20.0  # somebody else does it later
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.2
_LOOKS = 3  # whether a commit's own writer applies it, before another does


class Commit:
    def __init__(
        self,
        store: "Firebase",
        checks: "Sequence[Check]",
        writes: "Sequence[Write]",
        snapshot: "Snapshot | None",
        timeout_s: float,
    ) -> None:
        self._store = store
        self._rest = store.rest
        self._checks = checks
        self._writes = writes
        self._timeout_s = timeout_s
        self._deadline = monotonic() + timeout_s
        self._tries = 0
        # As long as `head` is what the snapshot saw, what was read there holds.
        self._seen = snapshot.last if snapshot is not None else None
        self._snapshot = snapshot

    def run(self) -> Committed:
        head = self._seen if self._seen is not None and self._seen.etag else self._store.current()
        while True:
            found = self._try(head)
            if isinstance(found, Committed):
                return found
            if monotonic() >= self._deadline:
                raise errors.Contention(tries=self._tries, timeout_seconds=self._timeout_s)
            head = found if found is not None else self._store.current()

    def _try(self, head: "Head") -> "Committed | Head | None":
        """Done, or the newer head that was met, if it is known."""
        self._tries += 1
        if self._writes and not self._is_applied(head):
            return None
        numbers_of = self._numbered_collections()
        known = self._known(head, numbers_of)
        asked = [*self._checks] if head is not self._seen else []
        names = [name for name in numbers_of if name not in known]
        asks = [_ask(head, check) for check in asked] + [ask_head(head.data, name) for name in names]
        replies = self._rest.ask(asks) if asks else []
        if not self._holds(head, asked, replies) or not _learn(head, names, replies[len(asked) :], known):
            return None
        if not self._writes:
            return Committed(head.revision, ()) if not self._checks or self._store.current() is head else None
        numbers, lasts = assign_numbers(self._writes, known.__getitem__)
        revision = head.revision + 1
        floor = max(head.floor, revision - KEPT_REVISIONS) if revision % TRIM_EVERY == 0 else head.floor
        new = head.next(resolve(self._writes, numbers), lasts, floor)
        other = put_head(self._store, head, new, self._deadline)
        if other is not None:
            self._pause()
            return other
        self._finish(new)
        return Committed(revision, tuple(numbers))

    def _numbered_collections(self) -> "list[str]":
        """Those whose last number the writes need."""
        return list(dict.fromkeys([write.collection for write in self._writes if _needs_last(write)]))

    def _known(self, head: "Head", names: "Sequence[str]") -> "dict[str, int]":
        if self._snapshot is None or head is not self._seen:
            return {}
        found = {name: self._snapshot.known_last(name) for name in names}
        return {name: last for name, last in found.items() if last is not None}

    def _holds(self, head: "Head", checks: "Sequence[Check]", replies: "Sequence[Reply]") -> bool:
        """False when `head` has gone on meanwhile; `Conflict` when a check fails."""
        failed = False
        for check, reply in zip(checks, replies, strict=False):
            revision = _revision_of(head, check, reply)
            if revision > head.revision:
                return False
            failed |= revision != check.revision
        if failed:
            # What is missing may have been deleted by a later commit, which conflicts as well.
            raise Conflict
        return True

    def _is_applied(self, head: "Head") -> bool:
        """Its writer is most likely at it; who waited in vain does it. False: there is a newer one."""
        if self._store.is_applied(head):
            return True
        path = f"data/{head.data}/changes/{keys.change_path(head.revision)}"
        for look in range(_LOOKS):
            if self._rest.get(path).text.strip() != b"null":
                self._store.note_applied(head)
                return True
            time.sleep(_jittered(0.02 * (1 << look)))
        try:
            applying.apply(self._rest, head, monotonic() + _APPLY_S)
        except applying.Overtaken:
            return False
        self._store.note_applied(head)
        return True

    def _finish(self, new: "Head") -> None:
        """The commit is made, whatever happens now: who comes next would do the rest."""
        deadline = monotonic() + _APPLY_S
        try:
            applying.apply(self._rest, new, deadline)
            self._store.note_applied(new)
            if new.revision % TRIM_EVERY == 0:
                applying.trim(self._rest, new, deadline)
        except (errors.AccordError, applying.Overtaken):
            pass

    def _pause(self) -> None:
        """Rivals do not meet again at once."""
        longest = min(_FIRST_PAUSE_S * (1 << min(self._tries, 10)), _LONGEST_PAUSE_S)
        time.sleep(max(0.0, min(_jittered(longest), self._deadline - monotonic())))


def put_head(store: "Firebase", head: "Head", new: "Head", deadline: float) -> "Head | None":
    """Commit `new` over `head`; what is there instead if it cannot be, and certainly is not."""
    ask = Ask("head", json_bytes(new.node), head.etag)
    is_open = False  # one that was sent may have been taken, or may be yet
    try:
        while True:
            reply = store.rest.ask([ask], max(deadline, monotonic() + 1.0))[0]
            if reply.is_done:
                return None
            is_open |= reply.is_lost
            if is_open and monotonic() >= deadline:
                break
            other = store.head_of(reply) if reply.status == 412 else store.current()
            if other.id == new.id:
                return None
            if other.revision != head.revision or other.data != head.data:
                return None if is_open and _was_made(store, new, other) else other
            ask.etag = other.etag
            time.sleep(_jittered(_FIRST_PAUSE_S))
    except errors.AccordError as error:
        if is_open and not isinstance(error, errors.OutcomeUnknown):
            raise errors.OutcomeUnknown(path=store.rest.shown, reason=str(error)) from None
        raise
    raise errors.OutcomeUnknown(path=store.rest.shown, reason="no answer came to the commit")


def _was_made(store: "Firebase", new: "Head", other: "Head") -> bool:
    """Whether it was, under one of the commits that came after it: only its own revision can tell."""
    if other.revision <= new.revision:
        return False
    path = f"data/{new.data}/changes/{keys.change_path(new.revision)}"
    change = store.rest.get(path).value
    if change is None or other.data != new.data:
        raise errors.OutcomeUnknown(path=store.rest.shown, reason="its revision is no longer kept")
    return bool(change["i"] == new.id)


def _needs_last(write: "Write") -> bool:
    return isinstance(write, Append) or isinstance(write.id, Number) or is_number(write.id)


def _ask(head: "Head", check: "Check") -> Ask:
    if isinstance(check, ItemIs):
        return ask_item(head.data, check.collection, check.id)
    return ask_head(head.data, check.collection)


def _revision_of(head: "Head", check: "Check", reply: "Reply") -> int:
    if isinstance(check, ItemIs):
        if (check.collection, check.id) in head.values:
            return head.revision if head.values[check.collection, check.id] is not None else 0
        item = item_of(check.id, reply.value)
        return item.revision if item else 0
    if check.collection in head.collections:
        return head.revision
    node = reply.value
    return node["r"] if node else 0


def _learn(head: "Head", names: "Sequence[str]", replies: "Sequence[Reply]", known: "dict[str, int]") -> bool:
    """The last numbers of collections; False when `head` has gone on meanwhile."""
    for name, reply in zip(names, replies, strict=True):
        node = reply.value
        if node and node["r"] > head.revision:
            return False
        known[name] = head.lasts.get(name, node["n"] if node else 0)
    return True


def _jittered(seconds: float) -> float:
    return seconds * (0.5 + int.from_bytes(os.urandom(2)) / 131070)
