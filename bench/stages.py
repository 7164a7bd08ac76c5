"""Where the microseconds of a send through the hub go: each stage by itself, in one process, with nothing flushed.

Fifty sends share a commit here, as they do with a hundred in flight. What the hub's process uses beyond the sum of
these is the kernel's: sockets, waking threads, flushes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from accord import jsontext, operations
from accord.doors.rpc import Call, Peer
from accord.hub.writer import SharedLedger
from accord.model import new_message_id
from accord.operations.context import Context, local
from accord.services import mail
from accord.services.halt import HaltAtLook
from bench import mail_api, place, preload
from bench.processes import ENVIRONMENT
from bench.row import MICROSECONDS, Row
from bench.sizes import Sizes

GROUP = 50
PARAMS = {"sender": mail_api.SENDER, "to": mail_api.RECIPIENT, "message": "x" * 300}
REQUEST = jsontext.dumps({"jsonrpc": "2.0", "id": 1, "method": "mail.send", "params": PARAMS}).encode()


def measure(rounds: int, sizes: Sizes) -> list[Row]:
    variables = preload.environment(preload.NONE) if preload.can_build() else {}
    with place.folder() as folder:
        mail_api.create(f"{folder}/home")
        command = [sys.executable, "-m", "bench.stages", f"{folder}/home", str(rounds)]
        done = subprocess.run(
            command, cwd=place.CHECKOUT, env={**ENVIRONMENT, **variables}, capture_output=True, text=True, check=True
        )
    found: dict[str, list[float]] = jsontext.loads(done.stdout)  # type: ignore[assignment]
    total = [sum(times) for times in zip(*found.values(), strict=True)]
    return [Row(what, MICROSECONDS, times) for what, times in {**found, "all of these": total}.items()]


def _stages(context: Context, ledger: SharedLedger) -> dict[str, float]:
    """Microseconds of each, for one send."""
    store: Any = context.store
    context._opened = [ledger]  # type: ignore[list-item]
    try:
        sending, ending = _group(store, ledger, partial(operations.call, context, "mail.send", PARAMS))
        serving, _ = _group(store, ledger, partial(_serve, context))
    finally:
        context._opened = [store]
    return {
        "JSON-RPC: reading the request, writing the answer": _each(partial(_peer().receive, REQUEST)),
        "the operation: parameters, rights, HALT, an id, the time": sending - serving,
        "the send itself: who it is, who gets it, what is written": serving,
        "SQLite: its share of the commit": ending,
    }


def _serve(context: Context) -> None:
    draft = mail.Draft(new_message_id(), "x" * 300, "2026-01-01T00:00:00.000Z", [mail_api.RECIPIENT], is_new=True)
    mail.send(context.store, context.actor(mail_api.SENDER), draft, 100_000)


def _group(store: Any, ledger: SharedLedger, send: Callable[[], object]) -> tuple[float, float]:
    """Microseconds of each send in a group, and its share of the group's end."""
    with store.exclusive() as batch:
        ledger.now_on = batch
        start = time.perf_counter()
        for _ in range(GROUP):
            send()
        middle = time.perf_counter()
    return (middle - start) / GROUP * 1e6, (time.perf_counter() - middle) / GROUP * 1e6


def _peer() -> Peer:
    answer = {"message_id": new_message_id(), "durability": "power", "to": [{"identity": "bob", "state": "queued"}]}

    def serve(call: Call) -> None:
        call.answer(answer)

    return Peer(serve, lambda text: None)


def _each(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(GROUP):
        action()
    return (time.perf_counter() - start) / GROUP * 1e6


def main() -> None:
    home, rounds = sys.argv[1], int(sys.argv[2])
    context = local(os.environ, "/", home)
    context.halt = HaltAtLook(home)
    ledger = SharedLedger(context.store)
    _stages(context, ledger)
    found = [_stages(context, ledger) for _ in range(rounds)]
    print(jsontext.dumps({what: [stages[what] for stages in found] for what in found[0]}))


if __name__ == "__main__":
    main()
