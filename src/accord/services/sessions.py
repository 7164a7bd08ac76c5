"""Sessions of agents: which conversation runs under which name, and what was handed over in it.

sessions/NAME   the newest session of an agent
session-of      the name of each session, by its brain and its id there
handed/NAME     what was handed over to an agent and not seen at once, by id, and to which session (see `mail.py`)
"""

from itertools import islice

from accord import errors, jsontext
from accord.model import HUMAN
from accord.services import agents, cursors, leases, mail, processes
from accord.store import names
from accord.store.contract import MAX_PAGE, number_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from accord.services.agents import Actor
    from accord.store.transaction import Transaction

    Record = dict[str, Any]

SESSIONS = "sessions"
NAMES = "session-of"

MOST_AT_ONCE = 20  # messages of one hand-over
MOST_BYTES = 8_192  # of their texts, with a header each
_HEADER = 320

WAKE_S = 30.0  # in which one who was woken begins a turn
HAND_OVER_S = 10.0  # from taking messages to having handed them over

_MOST_LOOKED_AT = 200  # messages, for one that is worth a turn
_MOST_AWAY = 100  # handed over and not seen yet; who does not even see these gets no more


class Session:
    """What a vendor's hook says of the conversation that it runs in."""

    def __init__(self, brain: str, id: str, project: str = "", process: str = "", reach: str = "") -> None:
        self.brain = brain
        self.id = id
        self.project = project  # the folder it works in
        self.process = process  # of the program, see processes.py; "": not known
        self.reach = reach  # how it can be woken


def find(tx: "Transaction", name: str, check: bool = True) -> "Record | None":
    item = tx.get(SESSIONS, name, check)
    return None if item is None else jsontext.loads_own(item.value)  # type: ignore[return-value]


def name_of(tx: "Transaction", session: Session) -> str:
    """Under which name a session runs, or ran last; "": it is new."""
    item = tx.get(*_key(session))
    return "" if item is None else item.value.decode()


def look(tx: "Transaction", session: Session) -> tuple[str, bool]:
    """Its name, if it has that still; and whether it is at work, has seen all that it was given, and no mail waits."""
    name = name_of(tx, session)
    record = find(tx, name) if name else None
    if record is None or not is_this(record, session):
        return "", False
    return name, record["state"] == "busy" and not record["given"] and not mail.pending(tx, name)


def number(tx: "Transaction", name: str) -> int:
    """Of the session that an agent has now; 0: it has none."""
    record = find(tx, name)
    return 0 if record is None or is_over(record) else int(record["number"])


def free_name(tx: "Transaction", session: Session, stem: str, chosen: str = "") -> tuple[str, bool, int]:
    """A name for a session, whether it is registered already, and the number of the session that has it (see `begin`).

    The one that was chosen, else its own, else one of this project whose session is over, else a new one. Names that
    people registered by themselves are left alone unless they choose them.
    """
    if chosen and not _runs_elsewhere(find(tx, chosen), session):
        return _as_found(tx, chosen)
    own = name_of(tx, session)
    candidates = [own, stem] if own else [stem]
    number = 2
    while True:
        for name in candidates:
            found = _as_found(tx, name)
            if not found[1] or _may_take(find(tx, name), session):
                return found
        candidates = [f"{stem}-{number}"]
        number += 1


def _as_found(tx: "Transaction", name: str) -> tuple[str, bool, int]:
    agent, record = agents.find(tx, name), find(tx, name)
    return name, agent is not None and not agent["gone"], record["number"] if record else 0


def begin(tx: "Transaction", name: str, session: Session, number: int, at: str) -> "Record":
    """From now on the name is this session's; what an earlier one was given and has not seen is given again.

    `number` is what the name was found free with: another may have begun with it since.
    """
    before = find(tx, name)
    if (before["number"] if before else 0) != number:
        raise errors.IdentityAlreadyRegistered(identity=name)
    goes_on = before is not None and _is_same(before, session) and before["state"] != "ended"
    record = {
        "brain": session.brain,
        "session": session.id,
        "project": session.project,
        "process": session.process,
        "reach": session.reach,
        "number": number if goes_on else number + 1,  # what was handed over to an earlier one comes again
        "given": before["given"] if before and goes_on else [],  # handed over, and not known to be seen
        "taken": [],  # about to be handed over, and until when that may take
        "until": None,
        "kept": 0,
        "woken": None,  # until when it is being woken
        "waits": None,  # until when its own hook waits for mail, at the end of a turn
        "told": None,  # of which HALT it was told
        "said": "",  # at the end of a turn, as a hash, where its program tells
        "state": "idle",
        "at": at,
    }
    if name_of(tx, session) != name:
        tx.put(*_key(session), name.encode())
    return record


def end(tx: "Transaction", name: str, session: Session, at: str) -> bool:
    """Whether the name was this session's until now."""
    record = find(tx, name)
    if record is None or not _is_same(record, session):
        return False
    keep(tx, name, {**record, "state": "ended", "given": [], "taken": [], "at": at})
    return True


def prove(tx: "Transaction", name: str, record: "Record", at: str) -> None:
    """The model has answered since: what it was given, it has seen."""
    if record["given"]:
        mail.see(tx, name, record["given"], at)
        record["given"] = []


def take(tx: "Transaction", name: str, record: "Record") -> "tuple[list[str], int]":
    """The ids of the next messages for a session, and how many more wait after them.

    Who takes them has a moment to hand them over, and then says so (`give`); else they are taken again.
    """
    waiting = mail.pending(tx, name)
    if not waiting:
        return [], 0
    now = tx.now()
    taken = _taken(record, now)
    away = {*record["given"], *taken}
    if len(away) >= _MOST_AWAY:
        return [], waiting
    found, passed = _next(tx, name, record, away)
    if found:
        record["taken"] = [*taken, *found]
        record["until"] = leases.until(now, HAND_OVER_S)
    return found, waiting - passed - len(found)


def idle(tx: "Transaction") -> "list[str]":
    """Those whose session waits for its user on this machine, and can be woken."""
    found, after = [], ""
    while page := tx.list(SESSIONS, after, MAX_PAGE, check=False):
        records: list[Any] = [jsontext.loads_own(item.value) for item in page]
        found += [item.id for item, one in zip(page, records, strict=True) if _is_idle_here(one)]
        after = page[-1].id
    return found


def _is_idle_here(record: "Record") -> bool:
    return record["state"] == "idle" and bool(record["reach"]) and processes.is_here(record["process"])


def by_process(tx: "Transaction", wanted: "set[str]") -> "dict[str, str]":
    """Whose sessions run in these."""
    found, after = {}, ""
    while page := tx.list(SESSIONS, after, MAX_PAGE, check=False):
        for item in page:
            record: Any = jsontext.loads_own(item.value)
            if record["process"] in wanted and record["state"] != "ended":
                found[record["process"]] = item.id
        after = page[-1].id
    return found


def wake(tx: "Transaction", name: str, most_kept: int, most_hops: int) -> "Record | None":
    """The session, if it is idle and mail waits for which it is to be woken. It counts as keeping the agent going."""
    record = find(tx, name)
    if record is None or record["state"] != "idle" or is_over(record):
        return None
    now = tx.now()
    is_cared_for = any(record[until] and leases.left_s(record[until], now) for until in ("woken", "waits"))
    if is_cared_for or not is_worth_a_turn(tx, name, record, most_kept, most_hops):
        return None
    record["woken"] = leases.until(now, WAKE_S)
    record["kept"] += 1
    keep(tx, name, record)
    return record


def is_worth_a_turn(tx: "Transaction", name: str, record: "Record", most_kept: int, most_hops: int) -> bool:
    """Whether mail waits for which its agent is to go on: a person's, where any does, or other agents'.

    Theirs does so a number of times only, and not in threads in which they have long answered nobody but each other.
    """
    if not most_kept:
        return False
    away = {*record["given"], *_taken(record, tx.now())}
    storms: set[str] = set()
    for id in islice(_unread(tx, name, record, away), _MOST_LOOKED_AT):
        message = mail.shown(tx, id)
        if message["from"] == HUMAN:
            return True
        is_storm = message["conversation"] in storms and message["sequence"] >= most_hops
        if is_storm or record["kept"] >= most_kept:
            continue
        if _hops(tx, message, most_hops) < most_hops:
            return True
        storms.add(message["conversation"])
    return False


def _taken(record: "Record", now: "Any") -> "list[str]":
    """What is being handed over at this moment."""
    return record["taken"] if record["until"] and leases.left_s(record["until"], now) else []


def give(tx: "Transaction", name: str, record: "Record", ids: "Sequence[str]", by: str, at: str) -> None:
    """What was taken is handed over."""
    for id in ids:
        mail.note_handed(tx, name, id, {"by": by, "at": at, "number": record["number"]})
    record["taken"] = [id for id in record["taken"] if id not in ids]
    record["given"] = [*record["given"], *ids]


def is_this(record: "Record | None", session: Session) -> bool:
    """Whether a session is the one that has the name: what an earlier process of it still does counts no more."""
    return record is not None and _is_same(record, session) and record["state"] != "ended"


def is_over(record: "Record") -> bool:
    """Known by evidence: it said so, or its process is gone."""
    return record["state"] == "ended" or not processes.is_alive(record["process"])


def shown(record: "Record") -> "dict[str, Any]":
    """What others are told of it."""
    state = "ended" if is_over(record) else record["state"]
    return {"brain": record["brain"], "state": state, "project": record["project"], "since": record["at"]}


def keep(tx: "Transaction", name: str, record: "Record") -> None:
    tx.put(SESSIONS, name, jsontext.dumps(record).encode())


def _next(tx: "Transaction", name: str, record: "Record", away: "set[str]") -> "tuple[list[str], int]":
    """The oldest unread messages that are not away, as many as one hand-over has room for; and how many are away.

    Away is also what the agent was shown when it asked by a tool, until it says itself that it has seen it.
    """
    found: list[str] = []
    room = MOST_BYTES
    passed: list[str] = []
    for id in _unread(tx, name, record, away, passed):
        room -= _HEADER + len(mail.shown(tx, id)["message"].encode())
        if found and (room < 0 or len(found) == MOST_AT_ONCE):
            break
        found.append(id)
    return found, len(passed)


def _unread(
    tx: "Transaction", name: str, record: "Record", away: "set[str]", passed: "list[str] | None" = None
) -> "Iterator[str]":
    """Ids of the unread messages that are not away, the oldest first. Those that are away go to `passed`."""
    cursor = cursors.read(tx, name)
    after = number_id(cursor.upto) if cursor.upto else ""
    while page := tx.list(f"mail/{name}", after, MOST_AT_ONCE + len(away)):
        for id in [item.value.decode() for item in page if not cursor.has(int(item.id))]:
            if id not in away and not _was_handed(tx, name, record, id):
                yield id
            elif passed is not None:
                passed.append(id)
        after = page[-1].id


def _was_handed(tx: "Transaction", name: str, record: "Record", id: str) -> bool:
    last = mail.handed(tx, name, id)
    return last is not None and last["number"] == record["number"]


def _hops(tx: "Transaction", message: "dict[str, Any]", most: int) -> int:
    """How many of the newest messages of its thread come from agents, one after another; no more are counted."""
    if (message["sequence"] or 0) < most:
        return 0
    pointers = tx.list(mail.thread_of(message["conversation"]), limit=most, reverse=True, check=False)
    senders = [record["from"] for item in pointers if (record := mail.find(tx, item.value.decode(), check=False))]
    return senders.index(HUMAN) if HUMAN in senders else len(senders)


def _may_take(record: "Record | None", session: Session) -> bool:
    """Whether a name that is registered may become this session's."""
    if record is None or record["brain"] != session.brain:
        return False
    return _is_own(record, session) or (record["project"] == session.project and is_over(record))


def _runs_elsewhere(record: "Record | None", session: Session) -> bool:
    """Whether a name is another session's by evidence. What an agent starts inherits what it was told to be called."""
    if record is None or not record["process"] or record["process"] == session.process:
        return False
    return not (record["brain"] == session.brain and _is_own(record, session)) and not is_over(record)


def _is_own(record: "Record", session: Session) -> bool:
    return bool(record["session"] == session.id)


def _is_same(record: "Record", session: Session) -> bool:
    same = record["brain"] == session.brain and record["session"] == session.id
    return same and (not session.process or not record["process"] or record["process"] == session.process)


def _key(session: Session) -> tuple[str, str]:
    return names.to_key(NAMES, f"{session.brain}:{session.id}")


def check_holder(tx: "Transaction", actor: "Actor") -> None:
    """A session whose name another took over gets nothing any more."""
    agents.check_token(tx, actor)
