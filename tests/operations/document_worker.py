"""What processes and threads do to documents at once: some are killed, and what they did is put in order afterwards."""

import json
import os
import sys
import time
from random import Random

from accord import errors
from accord.errors import AccordError
from accord.model import new_request
from accord.operations import call
from accord.operations.context import local
from accord.store.open import open_store
from accord.store.wrap.faulty import chance, faulty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from accord.operations.context import Context
    from accord.store.protocols import Store

NAMES = ("plan", "notes")


def context_on(store: "Store", engine: str) -> "Context":
    """A caller who meets this store."""
    context = local(os.environ, engine=engine)
    context._open = lambda: store
    return context


def add_lines(context: "Context", name: str, who: str, times: int) -> None:
    """Read, change, write on the base that was read; who comes second takes what the conflict tells."""
    for n in range(times):
        context.caller.request = new_request()
        found = _read(context, name)
        while True:
            try:
                params = {"name": name, "text": f"{found['text']}{who} {n}\n", "base": found["revision"]}
                ask(context, "doc.write", params)
                break
            except errors.Conflict as conflict:
                found = {word: conflict.details[word] for word in ("text", "revision")}
                found["text"] = found["text"] or ""
                context.caller.request = new_request()


def ask(context: "Context", operation: str, params: "dict[str, Any]") -> "dict[str, Any]":
    """The answer, asked for again with the same request until it is known."""
    while True:
        try:
            return call(context, operation, params)
        except errors.OutcomeUnknown:
            assert context.caller.request


def _read(context: "Context", name: str) -> "dict[str, Any]":
    try:
        return call(context, "doc.read", {"name": name})
    except errors.DocumentNotFound:
        return {"text": "", "revision": 0}


def crowd(processes: str, times: str) -> None:
    """Fork processes that add lines to one document all at once."""
    here, start = os.pipe()
    for n in range(int(processes)):
        if os.fork() == 0:
            os.close(start)
            os.read(here, 1)  # returns when all are there
            add_lines(local(os.environ), NAMES[0], f"w{n}", int(times))
            os._exit(0)
    os.close(start)
    codes = [os.wait()[1] for _ in range(int(processes))]
    sys.exit(any(codes))


class Operator:
    """Reads and changes documents at random, no text twice, and writes down each call before it is made."""

    def __init__(self, context: "Context", who: str, seed: int, history: str) -> None:
        self._context = context
        self._who = who
        self._random = Random(seed)
        self._file = os.open(history, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._known: dict[str, tuple[Any, Any]] = dict.fromkeys(
            NAMES, (0, None)
        )  # the revision and text that each was last seen with
        self._count = 0

    def operate(self) -> None:
        """One operation, and what came of it."""
        self._count += 1
        name = self._random.choice(NAMES)
        base, text = self._known[name]
        # With a request the outcome is found out; without one, the caller is left in doubt.
        self._context.caller.request = new_request() if self._random.random() < 0.5 else ""
        kind = self._random.choice(["read", "write", "write", "write", "blind", "rm"])
        new = None if kind == "rm" else f"{self._who}.{self._count}"
        params = {"name": name, **({"text": new} if new and kind != "read" else {})}
        params |= {"base": base} if kind in ("write", "rm") else {}
        self._note(kind=kind, name=name, expects=params.get("base"), writes=new)
        self._known[name] = self._outcome("doc.write" if kind == "blind" else f"doc.{kind}", params, (base, text), new)

    def _outcome(
        self, operation: str, params: "dict[str, Any]", known: "tuple[Any, Any]", new: "str | None"
    ) -> "tuple[Any, Any]":
        try:
            found = call(self._context, operation, params)
            seen = (found["revision"], found["text"] if operation == "doc.read" else new)
            self._note(outcome="ok", revision=seen[0], text=seen[1])
            return (0, None) if operation == "doc.rm" else seen
        except errors.DocumentNotFound:
            self._note(outcome="seen", revision=0, text=None)
            return 0, None
        except errors.Conflict as conflict:
            seen = (conflict.details["revision"], conflict.details["text"])
            self._note(outcome="seen", revision=seen[0], text=seen[1])
            return seen
        except AccordError as error:
            self._note(outcome=error.code)
            return known

    def _note(self, **facts: object) -> None:
        moment = "returned" if "outcome" in facts else "called"
        line = {"who": self._who, "id": f"{self._who}.{self._count}", moment: time.monotonic_ns(), **facts}
        os.write(self._file, json.dumps(line).encode() + b"\n")


def operate(engine: str, who: str, seed: str, history: str, *faults: str) -> None:
    """Go on until killed; a line for each thing done."""
    store = open_store(engine)
    if faults:
        store = faulty(store, chance(int(seed), lost=0.03, never=0.03, conflict=0.1))
    operator = Operator(context_on(store, engine), who, int(seed), history)
    while True:
        operator.operate()
        os.write(1, b".")


WORK: "dict[str, Callable[..., None]]" = {"crowd": crowd, "operate": operate}

if __name__ == "__main__":
    WORK[sys.argv[1]](*sys.argv[2:])
