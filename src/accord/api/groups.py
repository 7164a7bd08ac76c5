"""Every operation as a method. Made by `make reference`; a test compares."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.operations import results

# mypy: no-warn-return-any
# A call is of any operation; that each gives what stands here is tested in tests/operations/test_results.py.
Call = Callable[[str, Mapping[str, object]], Any]
AsyncCall = Callable[[str, Mapping[str, object]], Awaitable[Any]]


class Agent:
    def __init__(self, call: Call) -> None:
        self._call = call

    def register(
        self, *, identity: str, force: bool = False, resume: bool = False, project: str | None = None
    ) -> "results.Registered":
        """Register a name, and get the token to act under it."""
        return self._call(
            "agent.register", {"identity": identity, "force": force, "resume": resume, "project": project}
        )

    def unregister(self, *, identity: str) -> "results.Unregistered":
        """Give a name back; its inbox is kept for whoever registers it next."""
        return self._call("agent.unregister", {"identity": identity})

    def discover(self) -> "results.Everybody":
        """Show who is registered, with how much mail is waiting, as of one moment."""
        return self._call("agent.discover", {})


class Mail:
    def __init__(self, call: Call) -> None:
        self._call = call

    def send(
        self,
        *,
        sender: str,
        message: str,
        to: str | list[str] | None = None,
        channel: str | None = None,
        id: str | None = None,
        reply_to: str | None = None,
        conversation: str | None = None,
        type: str | None = None,
    ) -> "results.Sent":
        """Send a message to one or several agents, to `all`, or to a channel."""
        return self._call(
            "mail.send",
            {
                "sender": sender,
                "message": message,
                "to": to,
                "channel": channel,
                "id": id,
                "reply_to": reply_to,
                "conversation": conversation,
                "type": type,
            },
        )

    def check(self, *, identity: str, limit: int = 100, peek: bool = False, wait: float = 0) -> "results.Inbox":
        """Read the oldest unread messages; they stay unread until they are acknowledged."""
        return self._call("mail.check", {"identity": identity, "limit": limit, "peek": peek, "wait": wait})

    def ack(self, *, identity: str, ids: str | list[str]) -> "results.Acknowledged":
        """Acknowledge messages, exactly those named."""
        return self._call("mail.ack", {"identity": identity, "ids": ids})

    def hand_over(self, *, identity: str, ids: str | list[str], by: str = "push") -> "results.HandedOver":
        """Note that messages were handed over to an agent; whether it has seen them is another matter."""
        return self._call("mail.hand_over", {"identity": identity, "ids": ids, "by": by})

    def sent(self, *, sender: str, limit: int = 100) -> "results.SentMessages":
        """Show what somebody sent, newest first, and how far it got with each recipient."""
        return self._call("mail.sent", {"sender": sender, "limit": limit})

    def receipt(self, *, id: str) -> "results.Receipt":
        """Show how far a message got with each of its recipients: queued, handed over, seen, answered."""
        return self._call("mail.receipt", {"id": id})

    def thread(self, *, conversation: str, limit: int = 100) -> "results.Thread":
        """Show a conversation, named by its id or by that of one of its messages."""
        return self._call("mail.thread", {"conversation": conversation, "limit": limit})

    def search(self, *, query: str, limit: int = 20) -> "results.FoundMessages":
        """Find messages by their words."""
        return self._call("mail.search", {"query": query, "limit": limit})


class Channel:
    def __init__(self, call: Call) -> None:
        self._call = call

    def join(self, *, channel: str, identity: str) -> "results.Membership":
        """Join a channel; it is made when nobody was in it before."""
        return self._call("channel.join", {"channel": channel, "identity": identity})

    def leave(self, *, channel: str, identity: str) -> "results.Membership":
        """Leave a channel."""
        return self._call("channel.leave", {"channel": channel, "identity": identity})

    def list(self) -> "results.Channels":
        """Show the channels and who is in them."""
        return self._call("channel.list", {})


class Doc:
    def __init__(self, call: Call) -> None:
        self._call = call

    def read(self, *, name: str, revision: int | None = None) -> "results.Document":
        """Read a document, or an earlier version of it."""
        return self._call("doc.read", {"name": name, "revision": revision})

    def write(
        self,
        *,
        name: str,
        text: str,
        base: int | None = None,
        ttl: float = 0,
        keep_ttl: bool = False,
        fence: str | None = None,
    ) -> "results.Written":
        """Write a document; with a base, only if it is still at that revision."""
        return self._call(
            "doc.write", {"name": name, "text": text, "base": base, "ttl": ttl, "keep_ttl": keep_ttl, "fence": fence}
        )

    def rm(self, *, name: str, base: int | None = None, fence: str | None = None) -> "results.Removed":
        """Remove a document; it can be restored as long as its versions are kept."""
        return self._call("doc.rm", {"name": name, "base": base, "fence": fence})

    def restore(
        self, *, name: str, revision: int | None = None, ttl: float | None = None, fence: str | None = None
    ) -> "results.Written":
        """Write an earlier version again: the one before this, or the one named."""
        return self._call("doc.restore", {"name": name, "revision": revision, "ttl": ttl, "fence": fence})

    def history(self, *, name: str) -> "results.History":
        """Show the versions of a document that are kept, the newest first."""
        return self._call("doc.history", {"name": name})

    def list(self, *, prefix: str = "") -> "results.Documents":
        """Show the documents, or those whose names start so."""
        return self._call("doc.list", {"prefix": prefix})


class Lock:
    def __init__(self, call: Call) -> None:
        self._call = call

    def acquire(self, *, name: str, owner: str, ttl: float = 60, wait: float = 30) -> "results.Lock":
        """Acquire a lock, in the order in which all who want it came; it ends by itself after a time."""
        return self._call("lock.acquire", {"name": name, "owner": owner, "ttl": ttl, "wait": wait})

    def renew(self, *, name: str, owner: str, token: int, ttl: float = 60) -> "results.Lock":
        """Have a lock last longer, from now on."""
        return self._call("lock.renew", {"name": name, "owner": owner, "token": token, "ttl": ttl})

    def release(self, *, name: str, owner: str, token: int) -> "results.ReleasedLock":
        """Give a lock back; only its owner can."""
        return self._call("lock.release", {"name": name, "owner": owner, "token": token})

    def list(self) -> "results.Locks":
        """Show the locks that are held, and who waits for them."""
        return self._call("lock.list", {})


class Reserve:
    def __init__(self, call: Call) -> None:
        self._call = call

    def add(
        self,
        *,
        project: str,
        globs: str | list[str],
        owner: str,
        ttl: float = 3600,
        note: str = "",
        advisory: bool = False,
    ) -> "results.Reserved":
        """Reserve files of a project, or renew that; all of them, or none when another has reserved what overlaps."""
        return self._call(
            "reserve.add",
            {"project": project, "globs": globs, "owner": owner, "ttl": ttl, "note": note, "advisory": advisory},
        )

    def release(
        self, *, project: str, owner: str, globs: str | list[str] | None = None, all: bool = False
    ) -> "results.ReleasedGlobs":
        """Give back what one has reserved in a project: the globs that are named, or all."""
        return self._call("reserve.release", {"project": project, "owner": owner, "globs": globs, "all": all})

    def check(self, *, project: str, paths: str | list[str], owner: str | None = None) -> "results.HeldPaths":
        """Say which of these files, or folders, others have reserved."""
        return self._call("reserve.check", {"project": project, "paths": paths, "owner": owner})

    def list(self, *, project: str | None = None) -> "results.Reservations":
        """Show who has reserved what, in a project or in all of them."""
        return self._call("reserve.list", {"project": project})


class Topic:
    def __init__(self, call: Call) -> None:
        self._call = call

    def publish(self, *, channel: str, message: str) -> "results.Place":
        """Publish on a channel, for all who subscribe to it, now or later."""
        return self._call("topic.publish", {"channel": channel, "message": message})

    def read(
        self, *, channel: str, after: int | None = None, since: str = "", limit: int = 100, wait: float = 0
    ) -> "results.Topic":
        """Read what was published on a channel: after a number, since a revision, or all that is kept."""
        return self._call(
            "topic.read", {"channel": channel, "after": after, "since": since, "limit": limit, "wait": wait}
        )

    def last(self, *, channel: str) -> "results.Place":
        """Show where a channel stands: the number of what was published last."""
        return self._call("topic.last", {"channel": channel})


class Tx:
    def __init__(self, call: Call) -> None:
        self._call = call

    def run(self, *, steps: list[dict[str, Any]]) -> "results.Made":
        """Make several changes in one atomic step: writes of documents, pushes, changes of tasks."""
        return self._call("tx.run", {"steps": steps})


class Audit:
    def __init__(self, call: Call) -> None:
        self._call = call

    def list(self, *, after: int | None = None, limit: int = 100, wait: float = 0) -> "results.Audit":
        """Show what was changed, by whom and when: the last entries, or those after a number."""
        return self._call("audit.list", {"after": after, "limit": limit, "wait": wait})

    def verify(self, *, head: str = "") -> "results.Verified":
        """Compare all entries with the chain that was made of them, and with a head that was kept elsewhere."""
        return self._call("audit.verify", {"head": head})


class Queue:
    def __init__(self, call: Call) -> None:
        self._call = call

    def push(
        self,
        *,
        queue: str,
        payload: str,
        priority: str = "normal",
        delay: float = 0,
        tries: int = 5,
        fence: str | None = None,
    ) -> "results.QueuePlace":
        """Push an entry to a queue, for some worker to take."""
        return self._call(
            "queue.push",
            {"queue": queue, "payload": payload, "priority": priority, "delay": delay, "tries": tries, "fence": fence},
        )

    def pop(
        self,
        *,
        queue: str,
        visibility: float = 60,
        wait: float = 0,
        worker: str | None = None,
        fence: str | None = None,
    ) -> "results.Taken":
        """Take the first entry of a queue; it comes back unless it is done in time."""
        return self._call(
            "queue.pop", {"queue": queue, "visibility": visibility, "wait": wait, "worker": worker, "fence": fence}
        )

    def done(self, *, queue: str, receipt: str, fence: str | None = None) -> "results.QueuePlace":
        """Say that what was taken is done; it leaves the queue."""
        return self._call("queue.done", {"queue": queue, "receipt": receipt, "fence": fence})

    def fail(
        self, *, queue: str, receipt: str, reason: str = "", delay: float = 0, fence: str | None = None
    ) -> "results.Failed":
        """Give back what was taken, for another try; after its last one it is a dead letter."""
        return self._call(
            "queue.fail", {"queue": queue, "receipt": receipt, "reason": reason, "delay": delay, "fence": fence}
        )

    def retry(self, *, queue: str, sequence: int) -> "results.QueuePlace":
        """Put a dead letter back to its place in the queue, with all its tries before it."""
        return self._call("queue.retry", {"queue": queue, "sequence": sequence})

    def drop(self, *, queue: str, sequence: int) -> "results.QueuePlace":
        """Remove a dead letter for good."""
        return self._call("queue.drop", {"queue": queue, "sequence": sequence})

    def peek(self, *, queue: str, limit: int = 10) -> "results.Entries":
        """Show the next entries of a queue, in the order in which they will be taken."""
        return self._call("queue.peek", {"queue": queue, "limit": limit})

    def dead(self, *, queue: str, limit: int = 10) -> "results.DeadLetters":
        """Show the dead letters of a queue, and why they are."""
        return self._call("queue.dead", {"queue": queue, "limit": limit})

    def list(self) -> "results.Queues":
        """Show the queues, and how many entries each has."""
        return self._call("queue.list", {})


class Task:
    def __init__(self, call: Call) -> None:
        self._call = call

    def add(
        self,
        *,
        title: str,
        id: str | None = None,
        text: str = "",
        priority: str = "normal",
        after: str | list[str] | None = None,
        assignee: str | None = None,
    ) -> "results.Task":
        """Add a task to the board."""
        return self._call(
            "task.add",
            {"title": title, "id": id, "text": text, "priority": priority, "after": after, "assignee": assignee},
        )

    def depend(self, *, id: str, after: str | list[str]) -> "results.Task":
        """Have a task wait for others."""
        return self._call("task.depend", {"id": id, "after": after})

    def assign(self, *, id: str, agent: str, session: str | None = None) -> "results.Task":
        """Say which agent is to do a task; no other can take it then."""
        return self._call("task.assign", {"id": id, "agent": agent, "session": session})

    def claim(self, *, id: str, agent: str, ttl: float = 1800, session: str | None = None) -> "results.Task":
        """Take a task, for a time after which it is free again; or keep it for longer."""
        return self._call("task.claim", {"id": id, "agent": agent, "ttl": ttl, "session": session})

    def next(self, *, agent: str, ttl: float = 1800, wait: float = 0, session: str | None = None) -> "results.Task":
        """Take the best task that is ready: one assigned to the agent, then the most urgent, then the oldest."""
        return self._call("task.next", {"agent": agent, "ttl": ttl, "wait": wait, "session": session})

    def start(self, *, id: str, agent: str) -> "results.Task":
        """Say that work on a claimed task has begun; the claim lasts as long again."""
        return self._call("task.start", {"id": id, "agent": agent})

    def progress(self, *, id: str, agent: str, note: str, ttl: float | None = None) -> "results.Task":
        """Say how it goes with a claimed task; the claim lasts as long again."""
        return self._call("task.progress", {"id": id, "agent": agent, "note": note, "ttl": ttl})

    def block(self, *, id: str, reason: str, agent: str | None = None) -> "results.Task":
        """Let nobody take a task until it is unblocked; whoever has it has it no longer."""
        return self._call("task.block", {"id": id, "reason": reason, "agent": agent})

    def unblock(self, *, id: str) -> "results.Task":
        """Let a blocked task be taken again."""
        return self._call("task.unblock", {"id": id})

    def release(self, *, id: str, agent: str) -> "results.Task":
        """Give a claimed task back, for anybody to take."""
        return self._call("task.release", {"id": id, "agent": agent})

    def done(self, *, id: str, agent: str | None = None, note: str = "") -> "results.Task":
        """Say that a task is done: whoever has it, or anybody when nobody has."""
        return self._call("task.done", {"id": id, "agent": agent, "note": note})

    def show(self, *, id: str) -> "results.WholeTask":
        """Show a task with its text, what it waits for, and who had it."""
        return self._call("task.show", {"id": id})

    def list(self, *, state: str | None = None, agent: str | None = None, limit: int = 100) -> "results.Tasks":
        """Show tasks: the newest first, or those in a state, in the order in which it matters."""
        return self._call("task.list", {"state": state, "agent": agent, "limit": limit})

    def board(self, *, limit: int = 10) -> "results.Board":
        """Show the board: of each state the tasks that come first, of those done the latest."""
        return self._call("task.board", {"limit": limit})


class Hook:
    def __init__(self, call: Call) -> None:
        self._call = call

    def start(
        self, *, brain: str, session: str, project: str, process: str | None = None, reach: str | None = None
    ) -> "results.Step":
        """Begin a session of an agent: it gets the name that it had, or one after its project, and its mail."""
        return self._call(
            "hook.start", {"brain": brain, "session": session, "project": project, "process": process, "reach": reach}
        )

    def step(
        self,
        *,
        brain: str,
        session: str,
        event: str,
        process: str | None = None,
        proves: bool = False,
        said: str | None = None,
        wait: float = 0,
    ) -> "results.Step":
        """Go on in a session: what was handed over before may be seen now, and what is new is handed over."""
        return self._call(
            "hook.step",
            {
                "brain": brain,
                "session": session,
                "event": event,
                "process": process,
                "proves": proves,
                "said": said,
                "wait": wait,
            },
        )

    def given(self, *, brain: str, session: str, event: str, ids: str | list[str]) -> "results.HandOver":
        """Note that the messages of a step were handed over; a later step shows whether the model has seen them."""
        return self._call("hook.given", {"brain": brain, "session": session, "event": event, "ids": ids})

    def wait(self, *, brain: str, session: str, process: str | None = None, wait: float = 0) -> "results.Woken":
        """Wait until mail has come for which a session that is idle is to begin a turn."""
        return self._call("hook.wait", {"brain": brain, "session": session, "process": process, "wait": wait})

    def end(self, *, brain: str, session: str, process: str | None = None) -> "results.SessionEnded":
        """End a session: its agent is offline, and what it has not seen waits for the next one."""
        return self._call("hook.end", {"brain": brain, "session": session, "process": process})


class Halt:
    def __init__(self, call: Call) -> None:
        self._call = call

    def set(self, *, reason: str = "") -> "results.HaltState":
        """Halt everything, in every home of this user; anybody may."""
        return self._call("halt.set", {"reason": reason})

    def lift(self) -> "results.Lifted":
        """Lift a halt; the agents that were there wait until they are engaged."""
        return self._call("halt.lift", {})

    def engage(self, *, identities: str | list[str] | None = None, all: bool = False) -> "results.Engaged":
        """Let agents go on after a halt: those named, or all."""
        return self._call("halt.engage", {"identities": identities, "all": all})

    def status(self) -> "results.HaltState":
        """Say whether everything is halted, and why."""
        return self._call("halt.status", {})


class Config:
    def __init__(self, call: Call) -> None:
        self._call = call

    def show(self) -> "results.Settings":
        """Show every setting, its value, where that comes from, and what is `wrong` with those that cannot be read."""
        return self._call("config.show", {})

    def trust(self, *, path: str) -> "results.Trusted":
        """Let a project's accord.yml, as it is now, choose an engine and what else needs trust."""
        return self._call("config.trust", {"path": path})


class Firebase:
    def __init__(self, call: Call) -> None:
        self._call = call

    def rules(self, *, path: str | None = None, uid: str | None = None) -> "results.FirebaseRules":
        """Print security rules for Firebase that admit one account to one path, those of the engine unless named."""
        return self._call("firebase.rules", {"path": path, "uid": uid})


class Home:
    def __init__(self, call: Call) -> None:
        self._call = call

    def init(self, *, group: str | None = None) -> "results.Home":
        """Make the home and its store, for oneself or for a group; other operations make one too, for oneself."""
        return self._call("home.init", {"group": group})

    def doctor(self) -> "results.Health":
        """Look whether all is well, and say what to do where it is not."""
        return self._call("home.doctor", {})

    def migrate(self, *, source: str, target: str, dry_run: bool = False) -> "results.Migration":
        """Copy everything of a store into an empty one, of any engine, and compare it all."""
        return self._call("home.migrate", {"source": source, "target": target, "dry_run": dry_run})


class Hub:
    def __init__(self, call: Call) -> None:
        self._call = call

    def start(self, *, port: int | None = None, http_port: int | None = None) -> "results.StartedHub":
        """Start the hub of this home, unless it runs."""
        return self._call("hub.start", {"port": port, "http_port": http_port})

    def stop(self, *, deadline: float = 10.0) -> "results.StoppedHub":
        """Stop the hub: what it has accepted is finished, and listeners are told."""
        return self._call("hub.stop", {"deadline": deadline})

    def restart(
        self, *, deadline: float = 10.0, port: int | None = None, http_port: int | None = None
    ) -> "results.StartedHub":
        """Stop the hub, if there is one, and start it anew on the same ports."""
        return self._call("hub.restart", {"deadline": deadline, "port": port, "http_port": http_port})

    def status(self) -> "results.HubStatus":
        """Say whether the hub runs and answers, and where it is reached."""
        return self._call("hub.status", {})

    def keys_make(self, *, name: str) -> "results.MadeKey":
        """Make a key with which an agent may connect over ZeroMQ; the file at `path` holds all that it needs."""
        return self._call("hub.keys_make", {"name": name})

    def keys_list(self) -> "results.Keys":
        """List the keys that may connect over ZeroMQ."""
        return self._call("hub.keys_list", {})

    def keys_revoke(self, *, name: str) -> "results.RevokedKey":
        """Revoke a key: whoever is connected with it gets nothing any more, and cannot connect again."""
        return self._call("hub.keys_revoke", {"name": name})


class Groups:
    def __init__(self, call: Call) -> None:
        self.agent = Agent(call)
        self.mail = Mail(call)
        self.channel = Channel(call)
        self.doc = Doc(call)
        self.lock = Lock(call)
        self.reserve = Reserve(call)
        self.topic = Topic(call)
        self.tx = Tx(call)
        self.audit = Audit(call)
        self.queue = Queue(call)
        self.task = Task(call)
        self.hook = Hook(call)
        self.halt = Halt(call)
        self.config = Config(call)
        self.firebase = Firebase(call)
        self.home = Home(call)
        self.hub = Hub(call)


class AsyncAgent:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def register(
        self, *, identity: str, force: bool = False, resume: bool = False, project: str | None = None
    ) -> "results.Registered":
        """Register a name, and get the token to act under it."""
        return await self._call(
            "agent.register", {"identity": identity, "force": force, "resume": resume, "project": project}
        )

    async def unregister(self, *, identity: str) -> "results.Unregistered":
        """Give a name back; its inbox is kept for whoever registers it next."""
        return await self._call("agent.unregister", {"identity": identity})

    async def discover(self) -> "results.Everybody":
        """Show who is registered, with how much mail is waiting, as of one moment."""
        return await self._call("agent.discover", {})


class AsyncMail:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def send(
        self,
        *,
        sender: str,
        message: str,
        to: str | list[str] | None = None,
        channel: str | None = None,
        id: str | None = None,
        reply_to: str | None = None,
        conversation: str | None = None,
        type: str | None = None,
    ) -> "results.Sent":
        """Send a message to one or several agents, to `all`, or to a channel."""
        return await self._call(
            "mail.send",
            {
                "sender": sender,
                "message": message,
                "to": to,
                "channel": channel,
                "id": id,
                "reply_to": reply_to,
                "conversation": conversation,
                "type": type,
            },
        )

    async def check(self, *, identity: str, limit: int = 100, peek: bool = False, wait: float = 0) -> "results.Inbox":
        """Read the oldest unread messages; they stay unread until they are acknowledged."""
        return await self._call("mail.check", {"identity": identity, "limit": limit, "peek": peek, "wait": wait})

    async def ack(self, *, identity: str, ids: str | list[str]) -> "results.Acknowledged":
        """Acknowledge messages, exactly those named."""
        return await self._call("mail.ack", {"identity": identity, "ids": ids})

    async def hand_over(self, *, identity: str, ids: str | list[str], by: str = "push") -> "results.HandedOver":
        """Note that messages were handed over to an agent; whether it has seen them is another matter."""
        return await self._call("mail.hand_over", {"identity": identity, "ids": ids, "by": by})

    async def sent(self, *, sender: str, limit: int = 100) -> "results.SentMessages":
        """Show what somebody sent, newest first, and how far it got with each recipient."""
        return await self._call("mail.sent", {"sender": sender, "limit": limit})

    async def receipt(self, *, id: str) -> "results.Receipt":
        """Show how far a message got with each of its recipients: queued, handed over, seen, answered."""
        return await self._call("mail.receipt", {"id": id})

    async def thread(self, *, conversation: str, limit: int = 100) -> "results.Thread":
        """Show a conversation, named by its id or by that of one of its messages."""
        return await self._call("mail.thread", {"conversation": conversation, "limit": limit})

    async def search(self, *, query: str, limit: int = 20) -> "results.FoundMessages":
        """Find messages by their words."""
        return await self._call("mail.search", {"query": query, "limit": limit})


class AsyncChannel:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def join(self, *, channel: str, identity: str) -> "results.Membership":
        """Join a channel; it is made when nobody was in it before."""
        return await self._call("channel.join", {"channel": channel, "identity": identity})

    async def leave(self, *, channel: str, identity: str) -> "results.Membership":
        """Leave a channel."""
        return await self._call("channel.leave", {"channel": channel, "identity": identity})

    async def list(self) -> "results.Channels":
        """Show the channels and who is in them."""
        return await self._call("channel.list", {})


class AsyncDoc:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def read(self, *, name: str, revision: int | None = None) -> "results.Document":
        """Read a document, or an earlier version of it."""
        return await self._call("doc.read", {"name": name, "revision": revision})

    async def write(
        self,
        *,
        name: str,
        text: str,
        base: int | None = None,
        ttl: float = 0,
        keep_ttl: bool = False,
        fence: str | None = None,
    ) -> "results.Written":
        """Write a document; with a base, only if it is still at that revision."""
        return await self._call(
            "doc.write", {"name": name, "text": text, "base": base, "ttl": ttl, "keep_ttl": keep_ttl, "fence": fence}
        )

    async def rm(self, *, name: str, base: int | None = None, fence: str | None = None) -> "results.Removed":
        """Remove a document; it can be restored as long as its versions are kept."""
        return await self._call("doc.rm", {"name": name, "base": base, "fence": fence})

    async def restore(
        self, *, name: str, revision: int | None = None, ttl: float | None = None, fence: str | None = None
    ) -> "results.Written":
        """Write an earlier version again: the one before this, or the one named."""
        return await self._call("doc.restore", {"name": name, "revision": revision, "ttl": ttl, "fence": fence})

    async def history(self, *, name: str) -> "results.History":
        """Show the versions of a document that are kept, the newest first."""
        return await self._call("doc.history", {"name": name})

    async def list(self, *, prefix: str = "") -> "results.Documents":
        """Show the documents, or those whose names start so."""
        return await self._call("doc.list", {"prefix": prefix})


class AsyncLock:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def acquire(self, *, name: str, owner: str, ttl: float = 60, wait: float = 30) -> "results.Lock":
        """Acquire a lock, in the order in which all who want it came; it ends by itself after a time."""
        return await self._call("lock.acquire", {"name": name, "owner": owner, "ttl": ttl, "wait": wait})

    async def renew(self, *, name: str, owner: str, token: int, ttl: float = 60) -> "results.Lock":
        """Have a lock last longer, from now on."""
        return await self._call("lock.renew", {"name": name, "owner": owner, "token": token, "ttl": ttl})

    async def release(self, *, name: str, owner: str, token: int) -> "results.ReleasedLock":
        """Give a lock back; only its owner can."""
        return await self._call("lock.release", {"name": name, "owner": owner, "token": token})

    async def list(self) -> "results.Locks":
        """Show the locks that are held, and who waits for them."""
        return await self._call("lock.list", {})


class AsyncReserve:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def add(
        self,
        *,
        project: str,
        globs: str | list[str],
        owner: str,
        ttl: float = 3600,
        note: str = "",
        advisory: bool = False,
    ) -> "results.Reserved":
        """Reserve files of a project, or renew that; all of them, or none when another has reserved what overlaps."""
        return await self._call(
            "reserve.add",
            {"project": project, "globs": globs, "owner": owner, "ttl": ttl, "note": note, "advisory": advisory},
        )

    async def release(
        self, *, project: str, owner: str, globs: str | list[str] | None = None, all: bool = False
    ) -> "results.ReleasedGlobs":
        """Give back what one has reserved in a project: the globs that are named, or all."""
        return await self._call("reserve.release", {"project": project, "owner": owner, "globs": globs, "all": all})

    async def check(self, *, project: str, paths: str | list[str], owner: str | None = None) -> "results.HeldPaths":
        """Say which of these files, or folders, others have reserved."""
        return await self._call("reserve.check", {"project": project, "paths": paths, "owner": owner})

    async def list(self, *, project: str | None = None) -> "results.Reservations":
        """Show who has reserved what, in a project or in all of them."""
        return await self._call("reserve.list", {"project": project})


class AsyncTopic:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def publish(self, *, channel: str, message: str) -> "results.Place":
        """Publish on a channel, for all who subscribe to it, now or later."""
        return await self._call("topic.publish", {"channel": channel, "message": message})

    async def read(
        self, *, channel: str, after: int | None = None, since: str = "", limit: int = 100, wait: float = 0
    ) -> "results.Topic":
        """Read what was published on a channel: after a number, since a revision, or all that is kept."""
        return await self._call(
            "topic.read", {"channel": channel, "after": after, "since": since, "limit": limit, "wait": wait}
        )

    async def last(self, *, channel: str) -> "results.Place":
        """Show where a channel stands: the number of what was published last."""
        return await self._call("topic.last", {"channel": channel})


class AsyncTx:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def run(self, *, steps: list[dict[str, Any]]) -> "results.Made":
        """Make several changes in one atomic step: writes of documents, pushes, changes of tasks."""
        return await self._call("tx.run", {"steps": steps})


class AsyncAudit:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def list(self, *, after: int | None = None, limit: int = 100, wait: float = 0) -> "results.Audit":
        """Show what was changed, by whom and when: the last entries, or those after a number."""
        return await self._call("audit.list", {"after": after, "limit": limit, "wait": wait})

    async def verify(self, *, head: str = "") -> "results.Verified":
        """Compare all entries with the chain that was made of them, and with a head that was kept elsewhere."""
        return await self._call("audit.verify", {"head": head})


class AsyncQueue:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def push(
        self,
        *,
        queue: str,
        payload: str,
        priority: str = "normal",
        delay: float = 0,
        tries: int = 5,
        fence: str | None = None,
    ) -> "results.QueuePlace":
        """Push an entry to a queue, for some worker to take."""
        return await self._call(
            "queue.push",
            {"queue": queue, "payload": payload, "priority": priority, "delay": delay, "tries": tries, "fence": fence},
        )

    async def pop(
        self,
        *,
        queue: str,
        visibility: float = 60,
        wait: float = 0,
        worker: str | None = None,
        fence: str | None = None,
    ) -> "results.Taken":
        """Take the first entry of a queue; it comes back unless it is done in time."""
        return await self._call(
            "queue.pop", {"queue": queue, "visibility": visibility, "wait": wait, "worker": worker, "fence": fence}
        )

    async def done(self, *, queue: str, receipt: str, fence: str | None = None) -> "results.QueuePlace":
        """Say that what was taken is done; it leaves the queue."""
        return await self._call("queue.done", {"queue": queue, "receipt": receipt, "fence": fence})

    async def fail(
        self, *, queue: str, receipt: str, reason: str = "", delay: float = 0, fence: str | None = None
    ) -> "results.Failed":
        """Give back what was taken, for another try; after its last one it is a dead letter."""
        return await self._call(
            "queue.fail", {"queue": queue, "receipt": receipt, "reason": reason, "delay": delay, "fence": fence}
        )

    async def retry(self, *, queue: str, sequence: int) -> "results.QueuePlace":
        """Put a dead letter back to its place in the queue, with all its tries before it."""
        return await self._call("queue.retry", {"queue": queue, "sequence": sequence})

    async def drop(self, *, queue: str, sequence: int) -> "results.QueuePlace":
        """Remove a dead letter for good."""
        return await self._call("queue.drop", {"queue": queue, "sequence": sequence})

    async def peek(self, *, queue: str, limit: int = 10) -> "results.Entries":
        """Show the next entries of a queue, in the order in which they will be taken."""
        return await self._call("queue.peek", {"queue": queue, "limit": limit})

    async def dead(self, *, queue: str, limit: int = 10) -> "results.DeadLetters":
        """Show the dead letters of a queue, and why they are."""
        return await self._call("queue.dead", {"queue": queue, "limit": limit})

    async def list(self) -> "results.Queues":
        """Show the queues, and how many entries each has."""
        return await self._call("queue.list", {})


class AsyncTask:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def add(
        self,
        *,
        title: str,
        id: str | None = None,
        text: str = "",
        priority: str = "normal",
        after: str | list[str] | None = None,
        assignee: str | None = None,
    ) -> "results.Task":
        """Add a task to the board."""
        return await self._call(
            "task.add",
            {"title": title, "id": id, "text": text, "priority": priority, "after": after, "assignee": assignee},
        )

    async def depend(self, *, id: str, after: str | list[str]) -> "results.Task":
        """Have a task wait for others."""
        return await self._call("task.depend", {"id": id, "after": after})

    async def assign(self, *, id: str, agent: str, session: str | None = None) -> "results.Task":
        """Say which agent is to do a task; no other can take it then."""
        return await self._call("task.assign", {"id": id, "agent": agent, "session": session})

    async def claim(self, *, id: str, agent: str, ttl: float = 1800, session: str | None = None) -> "results.Task":
        """Take a task, for a time after which it is free again; or keep it for longer."""
        return await self._call("task.claim", {"id": id, "agent": agent, "ttl": ttl, "session": session})

    async def next(
        self, *, agent: str, ttl: float = 1800, wait: float = 0, session: str | None = None
    ) -> "results.Task":
        """Take the best task that is ready: one assigned to the agent, then the most urgent, then the oldest."""
        return await self._call("task.next", {"agent": agent, "ttl": ttl, "wait": wait, "session": session})

    async def start(self, *, id: str, agent: str) -> "results.Task":
        """Say that work on a claimed task has begun; the claim lasts as long again."""
        return await self._call("task.start", {"id": id, "agent": agent})

    async def progress(self, *, id: str, agent: str, note: str, ttl: float | None = None) -> "results.Task":
        """Say how it goes with a claimed task; the claim lasts as long again."""
        return await self._call("task.progress", {"id": id, "agent": agent, "note": note, "ttl": ttl})

    async def block(self, *, id: str, reason: str, agent: str | None = None) -> "results.Task":
        """Let nobody take a task until it is unblocked; whoever has it has it no longer."""
        return await self._call("task.block", {"id": id, "reason": reason, "agent": agent})

    async def unblock(self, *, id: str) -> "results.Task":
        """Let a blocked task be taken again."""
        return await self._call("task.unblock", {"id": id})

    async def release(self, *, id: str, agent: str) -> "results.Task":
        """Give a claimed task back, for anybody to take."""
        return await self._call("task.release", {"id": id, "agent": agent})

    async def done(self, *, id: str, agent: str | None = None, note: str = "") -> "results.Task":
        """Say that a task is done: whoever has it, or anybody when nobody has."""
        return await self._call("task.done", {"id": id, "agent": agent, "note": note})

    async def show(self, *, id: str) -> "results.WholeTask":
        """Show a task with its text, what it waits for, and who had it."""
        return await self._call("task.show", {"id": id})

    async def list(self, *, state: str | None = None, agent: str | None = None, limit: int = 100) -> "results.Tasks":
        """Show tasks: the newest first, or those in a state, in the order in which it matters."""
        return await self._call("task.list", {"state": state, "agent": agent, "limit": limit})

    async def board(self, *, limit: int = 10) -> "results.Board":
        """Show the board: of each state the tasks that come first, of those done the latest."""
        return await self._call("task.board", {"limit": limit})


class AsyncHook:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def start(
        self, *, brain: str, session: str, project: str, process: str | None = None, reach: str | None = None
    ) -> "results.Step":
        """Begin a session of an agent: it gets the name that it had, or one after its project, and its mail."""
        return await self._call(
            "hook.start", {"brain": brain, "session": session, "project": project, "process": process, "reach": reach}
        )

    async def step(
        self,
        *,
        brain: str,
        session: str,
        event: str,
        process: str | None = None,
        proves: bool = False,
        said: str | None = None,
        wait: float = 0,
    ) -> "results.Step":
        """Go on in a session: what was handed over before may be seen now, and what is new is handed over."""
        return await self._call(
            "hook.step",
            {
                "brain": brain,
                "session": session,
                "event": event,
                "process": process,
                "proves": proves,
                "said": said,
                "wait": wait,
            },
        )

    async def given(self, *, brain: str, session: str, event: str, ids: str | list[str]) -> "results.HandOver":
        """Note that the messages of a step were handed over; a later step shows whether the model has seen them."""
        return await self._call("hook.given", {"brain": brain, "session": session, "event": event, "ids": ids})

    async def wait(self, *, brain: str, session: str, process: str | None = None, wait: float = 0) -> "results.Woken":
        """Wait until mail has come for which a session that is idle is to begin a turn."""
        return await self._call("hook.wait", {"brain": brain, "session": session, "process": process, "wait": wait})

    async def end(self, *, brain: str, session: str, process: str | None = None) -> "results.SessionEnded":
        """End a session: its agent is offline, and what it has not seen waits for the next one."""
        return await self._call("hook.end", {"brain": brain, "session": session, "process": process})


class AsyncHalt:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def set(self, *, reason: str = "") -> "results.HaltState":
        """Halt everything, in every home of this user; anybody may."""
        return await self._call("halt.set", {"reason": reason})

    async def lift(self) -> "results.Lifted":
        """Lift a halt; the agents that were there wait until they are engaged."""
        return await self._call("halt.lift", {})

    async def engage(self, *, identities: str | list[str] | None = None, all: bool = False) -> "results.Engaged":
        """Let agents go on after a halt: those named, or all."""
        return await self._call("halt.engage", {"identities": identities, "all": all})

    async def status(self) -> "results.HaltState":
        """Say whether everything is halted, and why."""
        return await self._call("halt.status", {})


class AsyncConfig:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def show(self) -> "results.Settings":
        """Show every setting, its value, where that comes from, and what is `wrong` with those that cannot be read."""
        return await self._call("config.show", {})

    async def trust(self, *, path: str) -> "results.Trusted":
        """Let a project's accord.yml, as it is now, choose an engine and what else needs trust."""
        return await self._call("config.trust", {"path": path})


class AsyncFirebase:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def rules(self, *, path: str | None = None, uid: str | None = None) -> "results.FirebaseRules":
        """Print security rules for Firebase that admit one account to one path, those of the engine unless named."""
        return await self._call("firebase.rules", {"path": path, "uid": uid})


class AsyncHome:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def init(self, *, group: str | None = None) -> "results.Home":
        """Make the home and its store, for oneself or for a group; other operations make one too, for oneself."""
        return await self._call("home.init", {"group": group})

    async def doctor(self) -> "results.Health":
        """Look whether all is well, and say what to do where it is not."""
        return await self._call("home.doctor", {})

    async def migrate(self, *, source: str, target: str, dry_run: bool = False) -> "results.Migration":
        """Copy everything of a store into an empty one, of any engine, and compare it all."""
        return await self._call("home.migrate", {"source": source, "target": target, "dry_run": dry_run})


class AsyncHub:
    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def start(self, *, port: int | None = None, http_port: int | None = None) -> "results.StartedHub":
        """Start the hub of this home, unless it runs."""
        return await self._call("hub.start", {"port": port, "http_port": http_port})

    async def stop(self, *, deadline: float = 10.0) -> "results.StoppedHub":
        """Stop the hub: what it has accepted is finished, and listeners are told."""
        return await self._call("hub.stop", {"deadline": deadline})

    async def restart(
        self, *, deadline: float = 10.0, port: int | None = None, http_port: int | None = None
    ) -> "results.StartedHub":
        """Stop the hub, if there is one, and start it anew on the same ports."""
        return await self._call("hub.restart", {"deadline": deadline, "port": port, "http_port": http_port})

    async def status(self) -> "results.HubStatus":
        """Say whether the hub runs and answers, and where it is reached."""
        return await self._call("hub.status", {})

    async def keys_make(self, *, name: str) -> "results.MadeKey":
        """Make a key with which an agent may connect over ZeroMQ; the file at `path` holds all that it needs."""
        return await self._call("hub.keys_make", {"name": name})

    async def keys_list(self) -> "results.Keys":
        """List the keys that may connect over ZeroMQ."""
        return await self._call("hub.keys_list", {})

    async def keys_revoke(self, *, name: str) -> "results.RevokedKey":
        """Revoke a key: whoever is connected with it gets nothing any more, and cannot connect again."""
        return await self._call("hub.keys_revoke", {"name": name})


class AsyncGroups:
    def __init__(self, call: AsyncCall) -> None:
        self.agent = AsyncAgent(call)
        self.mail = AsyncMail(call)
        self.channel = AsyncChannel(call)
        self.doc = AsyncDoc(call)
        self.lock = AsyncLock(call)
        self.reserve = AsyncReserve(call)
        self.topic = AsyncTopic(call)
        self.tx = AsyncTx(call)
        self.audit = AsyncAudit(call)
        self.queue = AsyncQueue(call)
        self.task = AsyncTask(call)
        self.hook = AsyncHook(call)
        self.halt = AsyncHalt(call)
        self.config = AsyncConfig(call)
        self.firebase = AsyncFirebase(call)
        self.home = AsyncHome(call)
        self.hub = AsyncHub(call)
