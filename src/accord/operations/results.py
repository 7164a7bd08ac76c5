"""What operations give: the shapes of their results, which are plain dicts.

For type checkers, tests and `make reference`: at run time nobody imports this, which would cost `typing`. A comment
after a field also stands in docs/operations.md. Instants are ISO 8601 in UTC.
"""

from typing import Any, NotRequired, TypedDict

_From = TypedDict("_From", {"from": str})  # which is a word of Python's own


# agent


class Registered(TypedDict):
    identity: str
    token_file: str  # its path
    revision: str  # where the store stands, to watch from


class Unregistered(TypedDict):
    identity: str


class Listener(TypedDict):
    """Who is connected to the hub and listens."""

    connected: bool
    pid: int | None  # null: not on this machine
    last_seen: str  # since when it listens


class SessionState(TypedDict):
    """A conversation of an agent with its user."""

    brain: str  # the program
    state: str  # busy, idle or ended
    project: str  # the folder it works in
    since: str


class Present(TypedDict):
    identity: str
    listener: Listener | None
    session: SessionState | None  # the newest; null: there never was one
    last_seen: str | None  # when it last acknowledged or sent anything, or registered
    pending: int  # messages that are unread
    engaged: bool  # false: it was there at a halt, and waits to be engaged


class HubState(TypedDict):
    running: bool
    pid: int | None  # null while it starts, as are those that follow
    port: int | None
    http_port: int | None
    socket: str | None
    version: str | None
    home: str
    stopping: NotRequired[bool]  # it takes nothing more


class Everybody(TypedDict):
    revision: str  # of which all this is
    identities: list[Present]
    hub: HubState | None  # null: none runs
    halted: str | None  # why; null: nothing is halted


# mail and channel


class Delivery(TypedDict):
    identity: str
    state: str  # queued, handed_over, seen or answered
    by: NotRequired[str]  # how it was handed over: push, hook, terminal


class Sent(TypedDict):
    message_id: str
    durability: str  # what it survives: power, process or none
    to: list[Delivery]


class Message(_From):
    message_id: str
    to: list[str]
    timestamp: str
    message: str
    conversation: str | None
    type: str | None
    sequence: int | None  # within the conversation
    reply_to: str | None
    channel: str | None
    verified: str | None  # how it is known who sent it


class Inbox(TypedDict):
    identity: str
    listener: Listener | None
    messages: list[Message]  # the oldest first
    message_count: int
    remaining: int  # unread after these


class Acknowledged(TypedDict):
    identity: str
    acknowledged: list[str]


class HandedOver(TypedDict):
    identity: str
    handed_over: list[str]


class SentMessage(Message):
    states: list[Delivery]


class SentMessages(TypedDict):
    identity: str
    messages: list[SentMessage]  # the newest first


class HandedOverHow(TypedDict):
    by: str  # push, terminal, or the program and its hook
    at: str


class DeliveryReceipt(TypedDict):
    identity: str
    state: str  # queued, handed_over, seen or answered
    handed_over: HandedOverHow | None  # the last time


class Receipt(_From):
    message_id: str
    timestamp: str
    to: list[DeliveryReceipt]


class Thread(TypedDict):
    conversation: str
    messages: list[Message]  # the oldest first


class FoundMessages(TypedDict):
    query: str
    messages: list[Message]  # the best first


class Membership(TypedDict):
    channel: str
    identity: str


class ChannelMembers(TypedDict):
    channel: str
    members: list[str]


class Channels(TypedDict):
    channels: list[ChannelMembers]


# doc


class Written(TypedDict):
    name: str
    revision: int
    checksum: str  # SHA-256 of the text
    size: int  # bytes
    by: str
    at: str
    expires_at: str | None


class Document(Written):
    text: str


class Removed(TypedDict):
    name: str
    revision: int


class Version(TypedDict):
    revision: int
    checksum: str
    size: int
    by: str
    at: str
    expires_at: str | None
    deleted: bool  # the document was removed then


class History(TypedDict):
    name: str
    versions: list[Version]  # the newest first


class ListedDocument(TypedDict):
    name: str
    revision: int | None  # null where there is a problem, as are those that follow
    checksum: str | None
    size: int | None
    by: str | None
    at: str | None
    expires_at: str | None
    problem: str | None  # the code of the error that reading it gives


class Documents(TypedDict):
    documents: list[ListedDocument]


# lock and reserve


class Lock(TypedDict):
    name: str
    owner: str
    token: int  # grows with every grant
    expires_at: str | None  # null: it is over


class ReleasedLock(TypedDict):
    name: str
    released: bool


class LockWaiter(TypedDict):
    owner: str
    since: str


class HeldLock(Lock):
    since: str
    waiting: list[LockWaiter]  # in their order


class Locks(TypedDict):
    locks: list[HeldLock]


class Reservation(TypedDict):
    glob: str
    owner: str
    advisory: bool  # it keeps nobody out
    note: str
    since: str
    expires_at: str


class Overlap(Reservation):
    wanted: str  # the glob that it overlaps with


class Reserved(TypedDict):
    project: str
    owner: str
    globs: list[str]
    advisory: bool
    expires_at: str
    overlaps: list[Overlap]  # what others have reserved of it


class ReleasedGlobs(TypedDict):
    project: str
    owner: str
    released: list[str]


class HeldPath(Reservation):
    path: str


class HeldPaths(TypedDict):
    project: str
    held: list[HeldPath]


class ProjectReservation(Reservation):
    project: str


class Reservations(TypedDict):
    reservations: list[ProjectReservation]


# topic, tx and audit


class Place(TypedDict):
    channel: str
    sequence: int  # of what was published last; 0: nothing


class Published(_From):
    sequence: int
    revision: str
    timestamp: str
    message: str


class Topic(TypedDict):
    channel: str
    entries: list[Published]  # the oldest first
    missed: int  # that are no longer kept


class Made(TypedDict):
    results: list[dict[str, Any]]  # of each step, as its operation gives it


class AuditEntry(TypedDict):
    number: int
    at: str
    who: str
    uid: int
    operation: str
    items: list[str]  # the keys that were changed, or what was asked for


class Audit(TypedDict):
    entries: list[AuditEntry]  # the oldest first


class Verified(TypedDict):
    entries: int
    compared: int  # that had a place in the chain already
    head: str  # where the audit ends, as NUMBER:HASH
    kept: bool  # whether a head was given, and is in the chain


# queue


class QueuePlace(TypedDict):
    queue: str
    sequence: int


class Taken(QueuePlace):
    priority: str
    tries: int  # with this one
    receipt: str  # for `done` or `fail`
    payload: str


class Failed(QueuePlace):
    dead: bool  # it has no tries left


class Entry(TypedDict):
    sequence: int
    priority: str
    tries: int  # that it had
    by: str
    pushed_at: str
    size: int  # bytes of the payload
    payload: str  # how it starts


class DeadLetter(Entry):
    reason: str
    worker: str
    at: str | None  # when it became one; null: nobody has looked since


class Entries(TypedDict):
    queue: str
    entries: list[Entry]


class DeadLetters(TypedDict):
    queue: str
    entries: list[DeadLetter]


class Ready(TypedDict):
    high: int
    normal: int
    low: int


class Queue(TypedDict):
    queue: str
    ready: Ready
    in_flight: int
    delayed: int
    dead: int
    length: int  # of all together


class Queues(TypedDict):
    queues: list[Queue]


# task


class Task(TypedDict):
    id: str
    title: str
    state: str  # ready, waiting, claimed, started, blocked or done
    priority: str
    assignee: str | None
    agent: str | None  # who has it, or has done it
    session: str | None  # of that agent
    token: int | None  # of the claim, grows with every one
    expires_at: str | None  # when the claim is over
    after: list[str]  # the tasks that must be done before
    reason: str | None  # why it is blocked
    note: str | None
    created_at: str
    done_at: str | None


class Assignment(TypedDict):
    agent: str
    session: str
    status: str  # assigned, claimed, started, done, released, blocked, expired or reassigned
    assigned_at: str
    completed_at: str | None


class WholeTask(Task):
    text: str
    waits_for: list[str]  # those of `after` that are not done
    assignments: list[Assignment]


class Tasks(TypedDict):
    tasks: list[Task]


class Board(TypedDict):
    ready: list[Task]
    waiting: list[Task]
    started: list[Task]
    claimed: list[Task]
    blocked: list[Task]
    done: list[Task]
    more: list[str]  # the states of which there are more tasks than these


# hook


class Step(TypedDict):
    identity: str | None  # the agent whose session it is; null: nobody's that is known
    halted: str | None  # why nothing is handed over; null: it is, or this was told at an earlier step
    messages: list[Message]  # to be handed over now, the oldest first
    remaining: int  # unread after these


class HandOver(TypedDict):
    identity: str | None
    handed_over: list[str]  # the messages


class Woken(TypedDict):
    identity: str | None  # whose session it is; null: it is over, or was nobody's
    woken: bool  # whether its program is to begin a turn now


class SessionEnded(TypedDict):
    identity: str | None  # who is offline now; null: it was nobody's session any more


# halt, config and home


class HaltState(TypedDict):
    halted: str | None  # why; null: nothing is halted
    path: str


class Lifted(TypedDict):
    lifted: bool  # whether there was anything to lift


class Engaged(TypedDict):
    engaged: list[str]


class Part(TypedDict):
    name: str
    value: str | int
    source: str


class Setting(TypedDict):
    name: str
    value: str | int | bool
    source: str  # flag, $VARIABLE, a file or default
    help: str
    parts: NotRequired[list[Part]]  # of an engine that is put together from several values


class Settings(TypedDict):
    home: str
    settings: list[Setting]  # those that can be read
    unused: list[Part]  # what files say of the engine, to no effect
    wrong: list[dict[str, Any]]  # errors, as JSON-RPC has them: why the others cannot


class Trusted(TypedDict):
    path: str
    settings: list[str]  # that the file sets


class FirebaseRules(TypedDict):
    rules: dict[str, Any]  # as the database takes them
    path: str  # in the database, below which all is the store
    uid: str  # who is let in


class Home(TypedDict):
    home: str
    durability: str  # what a commit survives: power, process or none
    revision: str
    group: str | None  # that shares it
    closed_above: str | None  # a folder on the way to it that the group may not go through


class CheckedWaiter(TypedDict):
    owner: str
    waited_s: float


class CheckedLock(TypedDict):
    name: str
    owner: str
    held_s: float
    left_s: float
    waiting: list[CheckedWaiter]


class Check(TypedDict):
    check: str
    ok: bool
    found: str
    error_code: NotRequired[str]  # where it is not ok
    locks: NotRequired[list[CheckedLock]]  # of the check of locks


class Health(TypedDict):
    healthy: bool
    engine: str | None  # the URL of the store, without what logs a user in there; null: the settings cannot be read
    checks: list[Check]


class Problem(TypedDict):
    error_code: str
    error_message: str


class Migration(TypedDict):
    source: str
    target: str
    how: str  # copied, resumed, compared, or counted in a dry run
    collections: int
    items: int
    bytes: int  # of the values
    checksum: str  # of all of it, the same on every engine
    revision: str | None  # of the source, that the copy is as of; null in a dry run
    copied_to: str | None  # where the copy stands, in its own history
    mended: int  # writes that made the same what was not when it was compared
    tokens: int  # that agents have in this home, and now have for the copy
    problems: list[Problem]  # that keep it from being done, where it was only asked for


# hub


class HubStatus(HubState):
    answers: bool


class StartedHub(HubState):
    started: bool  # false: it ran already


class StoppedHub(TypedDict):
    stopped: bool  # false: there was none


class MadeKey(TypedDict):
    name: str
    server: str  # the hub's public key
    public: str
    endpoint: str
    path: str  # the file with all this and the secret key


class Key(TypedDict):
    name: str
    public: str
    made_at: str


class Keys(TypedDict):
    keys: list[Key]


class RevokedKey(TypedDict):
    name: str
