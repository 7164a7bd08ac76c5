"""`make demo`: three agents share out a list of work by messages; one is killed in the middle, and nothing is lost."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from accord import api, place
from accord.api import Accord

if TYPE_CHECKING:
    from accord.operations.results import Message

WORKERS = ("ann", "ben")
TASKS = (
    "count the words",
    "find the longest line",
    "sort the names",
    "sum the prices",
    "list the links",
    "check dates",
)
WORK_S = 0.2  # how long a worker works on each
PATIENCE_S = 20.0

NEXT = """\
Now you:
  accord register me                                   take a name
  accord send --from me --to me --message "hello"      write to yourself
  accord check me                                      read it
  accord discover                                      see who is there
  accord --help                                        see what else there is
"""


def main() -> dict[str, Any]:
    """What came of it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="accord-demo-") as folder:
        # A home and a HALT of its own: whatever is going on in yours is not touched.
        os.environ["HOME"] = folder
        for variable in [name for name in os.environ if name.startswith("ACCORD_") or name in place.ENGINE_VARIABLES]:
            del os.environ[variable]
        found = show(f"{folder}/home")
    took_s = round(time.monotonic() - started, 1)
    print(f"All of it took {took_s} s, with no server running.\n\n{NEXT}", end="")
    return {**found, "took_s": took_s}


def show(home: str) -> dict[str, Any]:
    workers: dict[str, subprocess.Popen[bytes]] = {}
    try:
        with api.open(home) as lead:
            return talk(home, lead, workers)
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()


def talk(home: str, lead: Accord, workers: "dict[str, subprocess.Popen[bytes]]") -> dict[str, Any]:
    lead.agent.register(identity="lead")
    workers |= {name: start(home, name) for name in WORKERS}
    wait_until(lambda: {found["identity"] for found in lead.agent.discover()["identities"]} >= set(WORKERS))
    print("lead, ann and ben are registered; ann and ben are processes of their own.\n")
    sent = {}
    for number, task in enumerate(TASKS):
        name = WORKERS[number % len(WORKERS)]
        sent[lead.mail.send(sender="lead", to=name, message=task, type="request")["message_id"]] = (name, task)
    print(f"lead sends {len(TASKS)} tasks, in turn to ann and ben, and waits for the answers.")
    answers = collect(lead, 2)
    workers["ann"].send_signal(signal.SIGKILL)
    workers["ann"].wait()
    print("ann is killed with kill -9 in the middle of her work.")
    workers["ann"] = start(home, "ann")
    print("ann comes back, and finds what she had not acknowledged waiting for her.\n")
    answers += collect(lead, len(TASKS) - len(answers))
    return report(sent, answers)


def collect(lead: Accord, count: int) -> "list[Message]":
    """The next answers."""
    found: list[Message] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        new = lead.mail.check(identity="lead", limit=count - len(found), wait=1)["messages"]
        if new:
            lead.mail.ack(identity="lead", ids=[message["message_id"] for message in new])
        found += new
    return found


def report(sent: dict[str, tuple[str, str]], answers: "list[Message]") -> dict[str, Any]:
    ids = {answer["reply_to"]: answer["message_id"] for answer in answers}
    for question, (name, task) in sent.items():
        print(f"  {name}  {task:24} answered by {ids.get(question, 'nobody')}")
    answered = [str(answer["reply_to"]) for answer in answers]
    is_once = sorted(answered) == sorted(sent)
    print(f"\n{len(set(answered))} of {len(sent)} tasks are answered, {'' if is_once else 'NOT '}each exactly once.")
    return {"tasks": len(sent), "answered": len(set(answered)), "each_once": is_once}


def work(home: str, name: str) -> None:
    """A worker: does what it is asked, answers, and only then acknowledges.

    Killed before that, it is asked again. The answer's id is made from the question's, so answering twice sends once.
    """
    with api.open(home) as me:
        me.agent.register(identity=name, force=True)
        while True:
            for task in me.mail.check(identity=name, wait=5)["messages"]:
                time.sleep(WORK_S)
                me.mail.send(
                    sender=name,
                    to=task["from"],
                    message=f"done: {task['message']}",
                    type="complete",
                    reply_to=task["message_id"],
                    id=f"{task['message_id']}-done",
                )
                me.mail.ack(identity=name, ids=task["message_id"])


def start(home: str, name: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "accord.demo", home, name], stdout=subprocess.DEVNULL)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit("the workers did not start")
        time.sleep(0.01)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(*sys.argv[1:])
    else:
        main()
