"""What the life of an agent's session is to accord. The hooks of the agent's own program call these."""

import os

from accord import errors
from accord.model import name_like
from accord.operations import as_is, operation, waiting
from accord.services import agents, leases, mail, sessions
from accord.store.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.operations import results
    from accord.operations.context import Context
    from accord.operations.kinds import Flag, HookEvent, Label, MessageIds, Path, Seconds, SessionId, Text
    from accord.store.transaction import Transaction

_MOST_TRIES = 100  # names that others were faster to take


@operation(changes=True, beyond=True)
def start(
    context: "Context",
    *,
    brain: "Label",
    session: "SessionId",
    project: "Path",
    process: "Text | None" = None,
    reach: "Text | None" = None,
) -> "results.Step":
    """Begin a session of an agent: it gets the name that it had, or one after its project, and its mail."""
    this = sessions.Session(brain, session, os.path.abspath(project), process or "", reach or "")
    for _ in range(_MOST_TRIES):
        try:
            return _start(context, this)
        except errors.IdentityAlreadyRegistered:
            continue  # another session of this project was faster
    return _start(context, this)


def _start(context: "Context", this: sessions.Session) -> "results.Step":
    """With the name that is free for it now."""
    stem = name_like(os.path.basename(this.project))
    name, is_registered, number = transact(context.store, lambda tx: sessions.free_name(tx, this, stem, context.agent))
    if not is_registered:
        from accord.operations import agent

        agent.register(context, identity=name)
    actor = context.holder(name)
    halted = _halted(context, name)

    def work(tx: "Transaction") -> "dict[str, Any]":
        sessions.check_holder(tx, actor)
        record = sessions.begin(tx, name, this, number, context.now())
        taken = _take(tx, name, record, halted)
        sessions.keep(tx, name, record)
        return taken

    return _shown(context, name, halted, context.change(work))


@operation(changes=True)
def step(
    context: "Context",
    *,
    brain: "Label",
    session: "SessionId",
    event: "HookEvent",
    process: "Text | None" = None,
    proves: "Flag" = False,
    said: "Text | None" = None,
    wait: "Seconds" = 0,
) -> "results.Step":
    """Go on in a session: what was handed over before may be seen now, and what is new is handed over."""
    this = sessions.Session(brain, session, process=process or "")
    name, is_quiet = transact(context.store, lambda tx: sessions.look(tx, this))
    if not name:
        return {"identity": None, "halted": None, "messages": [], "remaining": 0}
    if (
        is_quiet and event == "step" and _halted(context, name) is None
    ):  # as nearly always: nobody need show who they are
        return {"identity": name, "halted": None, "messages": [], "remaining": 0}
    actor = context.holder(name)
    if event == "prompt":
        _engage(context, actor)
    halted = _halted(context, name)
    active = None if context.halt.reason() is None else context.halt.count()  # which HALT

    def work(tx: "Transaction") -> "dict[str, Any]":
        sessions.check_holder(tx, actor)
        before = sessions.find(tx, name)
        if before is None or not sessions.is_this(before, this):
            return _NOTHING
        record = {**before, "given": list(before["given"])}
        if event == "stop" and said is not None and said in ("", before["said"]):
            taken = _cancelled(record)
        else:
            if proves:
                sessions.prove(tx, name, record, context.now())
            taken = _go_on(tx, context, name, record, event, halted)
            if event == "stop":
                record["said"] = said or ""
                may_wait = wait and record["state"] == "idle" and halted is None and _may_go_on(context, record)
                record["waits"] = leases.until(tx.now(), wait) if may_wait else None
        is_told = event == "step" and active in (None, record.get("told"))
        if active is not None:
            record["told"] = active
        if record != before:
            sessions.keep(tx, name, record)
        return {**taken, "waits": record["waits"], "told": is_told}

    taken = context.change(work)
    if taken.get("waits"):
        taken = _wait_for_mail(context, name, taken["waits"], wait)
    return _shown(context, name, None if taken.get("told") else halted, taken)


@operation(changes=True)
def given(
    context: "Context", *, brain: "Label", session: "SessionId", event: "HookEvent", ids: "MessageIds"
) -> "results.HandOver":
    """Note that the messages of a step were handed over; a later step shows whether the model has seen them."""
    this = sessions.Session(brain, session)

    def work(tx: "Transaction") -> "dict[str, Any]":
        name = sessions.name_of(tx, this)
        before = sessions.find(tx, name) if name else None
        if before is None or not sessions.is_this(before, this):
            return {"identity": None, "handed_over": []}
        record = dict(before)
        taken = [id for id in ids if id in record["taken"]]
        sessions.give(tx, name, record, taken, f"{brain} {event}", context.now())
        if record != before:
            sessions.keep(tx, name, record)
        return {"identity": name, "handed_over": taken}

    return as_is(context.change(work))


@operation(changes=True)
def wait(
    context: "Context",
    *,
    brain: "Label",
    session: "SessionId",
    process: "Text | None" = None,
    wait: "Seconds" = 0,
) -> "results.Woken":
    """Wait until mail has come for which a session that is idle is to begin a turn."""
    this = sessions.Session(brain, session, process=process or "")
    name = transact(context.store, lambda tx: sessions.name_of(tx, this))
    if not name:
        return {"identity": None, "woken": False}
    actor = context.holder(name)
    most_kept, most_hops = context.settings["keep_going_limit"], context.settings["thread_hops_limit"]

    def work(tx: "Transaction", is_halted: bool) -> "results.Woken | None":
        sessions.check_holder(tx, actor)
        record = sessions.find(tx, name)
        if record is None or not sessions.is_this(record, this) or sessions.is_over(record):
            return {"identity": None, "woken": False}
        woken = not is_halted and sessions.wake(tx, name, most_kept, most_hops)
        return {"identity": name, "woken": True} if woken else None

    def look() -> "results.Woken | None":
        is_halted = _halted(context, name) is not None
        return transact(context.store, lambda tx: work(tx, is_halted))

    return waiting.until(context, [f"mail/{name}"], wait, look) or {"identity": name, "woken": False}


@operation(changes=True)
def end(
    context: "Context", *, brain: "Label", session: "SessionId", process: "Text | None" = None
) -> "results.SessionEnded":
    """End a session: its agent is offline, and what it has not seen waits for the next one."""
    this = sessions.Session(brain, session, process=process or "")

    def work(tx: "Transaction") -> "str | None":
        name = sessions.name_of(tx, this)
        return name if name and sessions.end(tx, name, this, context.now()) else None

    return {"identity": context.change(work)}


_NOTHING: "dict[str, Any]" = {"ids": [], "remaining": 0}


def _go_on(
    tx: "Transaction", context: "Context", name: str, record: "dict[str, Any]", event: str, halted: "str | None"
) -> "dict[str, Any]":
    """Whatever happens in a session, its agent works until its turn ends."""
    if event == "prompt":
        record["kept"] = 0
        record["said"] = ""
    record["state"] = "busy"
    record["waits"] = None
    if event != "stop":
        return _take(tx, name, record, halted)
    record["state"] = "idle"
    return _keep_going(tx, context, name, record, halted)


def _keep_going(
    tx: "Transaction", context: "Context", name: str, record: "dict[str, Any]", halted: "str | None"
) -> "dict[str, Any]":
    """At the end of a turn new mail keeps the agent going; not for ever, if no person asks for more."""
    most_kept, most_hops = context.settings["keep_going_limit"], context.settings["thread_hops_limit"]
    if halted is not None or not sessions.is_worth_a_turn(tx, name, record, most_kept, most_hops):
        return _NOTHING  # what waits does so until something else has the agent go on
    taken = _take(tx, name, record, halted)
    if taken["ids"]:
        record["kept"] += 1
        record["state"] = "busy"
    return taken


def _may_go_on(context: "Context", record: "dict[str, Any]") -> bool:
    return bool(record["kept"] < context.settings["keep_going_limit"])


def _cancelled(record: "dict[str, Any]") -> "dict[str, Any]":
    """The model has said nothing in the turn, or what it had said before it: what it was given comes again."""
    record.update(state="idle", given=[], waits=None, number=record["number"] + 1)
    return _NOTHING


def _wait_for_mail(context: "Context", name: str, until: "list[object]", wait_s: float) -> "dict[str, Any]":
    """What comes in time, while the turn does not end for that; nothing once the session goes on otherwise."""

    def mine(tx: "Transaction") -> "dict[str, Any] | None":
        record = sessions.find(tx, name)
        return record if record and record["waits"] == until and not sessions.is_over(record) else None

    def work(tx: "Transaction") -> "dict[str, Any] | None":
        record = mine(tx)
        if record is None:
            return _NOTHING
        taken = _keep_going(tx, context, name, record, None)
        if not taken["ids"]:
            return None
        sessions.keep(tx, name, {**record, "waits": None})
        return taken

    def no_more(tx: "Transaction") -> None:
        record = mine(tx)
        if record is not None:
            sessions.keep(tx, name, {**record, "waits": None})

    def look() -> "dict[str, Any] | None":
        return transact(context.store, work) if _halted(context, name) is None else _NOTHING

    found = waiting.until(context, [f"mail/{name}"], wait_s, look) or _NOTHING
    if not found["ids"]:
        transact(context.store, no_more)
    return found


def _take(tx: "Transaction", name: str, record: "dict[str, Any]", halted: "str | None") -> "dict[str, Any]":
    if halted is not None:
        return _NOTHING
    ids, remaining = sessions.take(tx, name, record)
    return {"ids": ids, "remaining": remaining}


def _shown(context: "Context", name: str, halted: "str | None", taken: "dict[str, Any]") -> "results.Step":
    """The messages are read afterwards: they never change, and would be too much to keep as the answer to a request."""
    messages = transact(context.store, lambda tx: [mail.shown(tx, id) for id in taken["ids"]])
    return as_is({"identity": name, "halted": halted, "messages": messages, "remaining": taken["remaining"]})


def _halted(context: "Context", name: str) -> "str | None":
    """Why nothing is handed over now; None: it is."""
    reason = context.halt.reason()
    if reason is not None:
        return reason
    halts = context.halt.count()
    record = transact(context.store, lambda tx: agents.find(tx, name)) if halts else None
    return "lifted, and a person has not engaged you yet" if record and record["engaged"] < halts else None


def _engage(context: "Context", actor: agents.Actor) -> None:
    """A person's own prompt lets an agent go on that was there when everything was halted."""
    halts = context.halt.count()
    if halts and context.halt.reason() is None:
        transact(context.store, lambda tx: sessions.check_holder(tx, actor))
        agents.engage(context.store, [actor.name], halts)
