"""A process that sends messages one after another, in one of several ways, and says how it went."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import bare, hub_mail, mail_api, mail_send, place, plain_loop, preload, queue_api
from bench.processes import answer, run_together, wait_for_start

PLAIN = "plain loop"
SQLITE = "sqlite"
SQLITE_BATCHES = "sqlite, a hundred sends in one commit"
FILES = "files"
MEMORY = "memory"
MAIL = "accord.open().mail.send"
QUEUE = "queue push and pop"
QUEUE_WHOLE = "queue push, pop and done"
HUB = "through the hub"
HUB_FLIGHT = "through the hub, a hundred in flight"


@dataclass(frozen=True)
class Sent:
    """What one process did."""

    messages: int
    took_s: float  # from the common start to its last message
    worst_wait_s: float  # of one message, or of one batch
    cpu_s: float


@dataclass(frozen=True)
class Run:
    sent: list[Sent]  # one of each process
    lost: int  # messages that were acknowledged and are not there
    wal_bytes: int  # of SQLite, at the end
    hub_cpu_s: float = 0.0
    commits: int = 0  # of the hub


def run(way: str, processes: int, calls: int, seconds: float = 3600.0, flush: str = "") -> Run:
    """Let processes send `calls` times each, or for `seconds`, with flushes as they are or as `preload` has them."""
    variables = preload.environment(flush) if flush else {}
    if way in (HUB, HUB_FLIGHT):
        return _run_hub(way, processes, calls, seconds, variables)
    with place.folder() as folder:
        target = _create(way, f"{folder}/store")
        commands = [["bench.sender", way, target, str(calls), str(seconds), f"p{n}"] for n in range(processes)]
        sent = [Sent(*reply) for reply in run_together(commands, variables)]
        messages = sum(one.messages for one in sent)
        wal = Path(folder, "store-wal")
        wal_bytes = wal.stat().st_size if wal.exists() else 0
        return Run(sent, messages - _count(way, target, messages), wal_bytes)


def _run_hub(way: str, processes: int, calls: int, seconds: float, variables: dict[str, str]) -> Run:
    """The clients flush nothing: it is the hub that does, as `variables` say."""
    with place.folder() as folder:
        home = f"{folder}/home"
        pid = hub_mail.start(home, variables)
        try:
            cpu_s, commits = hub_mail.cpu_s(pid), hub_mail.commits(home)
            commands = [["bench.sender", way, home, str(calls), str(seconds), f"p{n}"] for n in range(processes)]
            sent = [Sent(*reply) for reply in run_together(commands, {})]
            messages = sum(one.messages for one in sent)
            used_s, made = hub_mail.cpu_s(pid) - cpu_s, hub_mail.commits(home) - commits
            return Run(sent, messages - mail_api.count(home), 0, used_s, made)
        finally:
            hub_mail.stop(home)


def run_one(way: str, calls: int, flush: str = "") -> Sent:
    return run(way, 1, calls, flush=flush).sent[0]


def rate(sent: Sequence[Sent]) -> float:
    """Messages per second of all processes together, until the last was done."""
    return sum(one.messages for one in sent) / max(one.took_s for one in sent)


def _create(way: str, path: str) -> str:
    """Make what is to be sent to; its path or URL."""
    if way == PLAIN:
        plain_loop.create(path)
        return path
    if way == MAIL:
        mail_api.create(path)
        return path
    if way in (QUEUE, QUEUE_WHOLE):
        queue_api.create(path)
        return path
    if way == MEMORY:
        return "memory:"
    url = f"{way.partition(',')[0]}:{path}"
    mail_send.create(url)
    return url


def _count(way: str, target: str, sent: int) -> int:
    if way == PLAIN:
        return plain_loop.count(target)
    if way == MAIL:
        return mail_api.count(target)
    if way in (QUEUE, QUEUE_WHOLE):
        return queue_api.count(target, way == QUEUE_WHOLE)
    # What was in memory went with its process.
    return sent if way == MEMORY else mail_send.count(target)


def _open(way: str, target: str, name: str) -> tuple[Callable[[int], None], int]:
    """What sends, and how many messages each call of it sends."""
    if way == PLAIN:
        return plain_loop.open_sender(target), 1
    if way == MAIL:
        return mail_api.open_sender(target), 1
    if way in (QUEUE, QUEUE_WHOLE):
        whole = way == QUEUE_WHOLE
        return queue_api.open_worker(target, whole), queue_api.PER_WHOLE_CALL if whole else queue_api.PER_CALL
    if way in bare.WAYS:
        return bare.WAYS[way](target, name), 1
    if way == HUB:
        return hub_mail.open_sender(target), 1
    if way == HUB_FLIGHT:
        return hub_mail.open_flight_sender(target), hub_mail.PER_CALL
    if way == SQLITE_BATCHES:
        return mail_send.open_batch_sender(target, name), mail_send.BATCH
    return mail_send.open_sender(target, name), 1


def main() -> None:
    way, target, calls, seconds, name = sys.argv[1:]
    send, messages_per_call = _open(way, target, name)
    most = int(calls)
    start_at = wait_for_start()
    end_at = start_at + float(seconds)
    cpu_s = time.process_time()
    done = 0
    worst_wait_s = 0.0
    now = time.monotonic()
    while done < most and now < end_at:
        before = now
        send(done)
        done += 1
        now = time.monotonic()
        worst_wait_s = max(worst_wait_s, now - before)
    answer([done * messages_per_call, now - start_at, worst_wait_s, time.process_time() - cpu_s])


if __name__ == "__main__":
    main()
