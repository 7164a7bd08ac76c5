"""shellenv, shell: functions for agents that are shell scripts."""

import os
import shlex
import subprocess
import sys
import time

from accord import errors, platform
from accord.cli import texts
from accord.cli.shells import Shell, is_pid, owner_of
from accord.cli.terminal import safe
from accord.cli.words import Verb
from accord.operations.context import engine_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from accord.cli.run import Line

LOCK_S = 30.0  # that a lock lasts unless it is renewed, as it is while the shell lives
_WAIT_S = 30.0
_PAUSE_S = 1.0  # after a try to renew it that failed
_PASSED_ON = ("--home", "--engine", "--hub-port")

# What takes a text as its second word. It comes through a pipe: a system call takes no word above 128 KiB.
_WITH_TEXT = ("write", "safe-write", "add", "enqueue")
_MOST_TEXT_BYTES = 1 << 20  # each operation has a bound of its own, below it

# Each function of the shell, and what it does here.
_FUNCTIONS = {
    "communication_backend_init": "init",
    "communication_backend_read": "read",
    "communication_backend_write": "write",
    "communication_backend_lock": "lock",
    "communication_backend_unlock": "unlock",
    "communication_backend_transaction_begin": "begin",
    "communication_backend_transaction_commit": "commit",
    "communication_backend_transaction_rollback": "rollback",
    "acquire_file_lock": "lock",
    "acquire_atomic_lock": "lock",
    "release_file_lock": "unlock",
    "begin_file_transaction": "begin",
    "add_to_transaction": "add",
    "commit_file_transaction": "commit",
    "safe_read_memory_file": "read",
    "safe_write_memory_file": "safe-write",
    "enqueue_command": "enqueue",
    "dequeue_command": "dequeue",
    "update_task_assignments": "assign",
    "health_check_communication": "health",
    "migrate_data_from_backend": "migrate",
}


def shellenv(line: "Line", words: "dict[str, Any]") -> None:
    command = " ".join(shlex.quote(word) for word in [*_myself(), *_options(line)])
    text = "".join(_function(name, do, command) for name, do in _FUNCTIONS.items())
    line.answer({"text": text}, lambda: text)


def _function(name: str, do: str, command: str) -> str:
    """In a shell's own words. What else goes wrong, such as a command that is gone, is a failure too."""
    call = f'command {command} shell {do} "$$" -- '
    if do in _WITH_TEXT:
        call = f'printf %s "${{2-}}" | {call}"$#" "${{1-}}" ${{3+"$3"}}'
    else:
        call += '"$@"'
    return f"{name}() {{ {call} || case $? in 2) return 2 ;; *) return 1 ;; esac; }}\n"


def _myself() -> list[str]:
    """The command that this is, wherever a shell is when it calls it."""
    path = os.path.abspath(sys.argv[0])
    # -P: and no modules in the working directory.
    return [sys.executable, "-P", "-m", "accord"] if path.endswith("/__main__.py") else [path]


def _options(line: "Line") -> list[str]:
    """The global options that say where everything is, with paths that count in any working directory."""
    given = {name: value for name, value in line.words.globals.items() if name in _PASSED_ON}
    if "--home" in given:
        given["--home"] = line.context.home.path
    if "--engine" in given:
        given["--engine"] = line.context.settings["engine"]
    return [f"{name}={value}" for name, value in given.items()]


def shell(line: "Line", words: "dict[str, Any]") -> int:
    """Its exit codes are those of the functions: 1 for failure or nothing there, 2 for a conflict."""
    what, pid, given = words.get("do", ""), words.get("pid", ""), words.get("words", [])
    if what not in _DO or not is_pid(pid):
        raise line.words.wrong(f"It takes one of {', '.join(_DO)} and the number of a process")
    do, least, most = _DO[what]
    try:
        count = int(given[0]) if what in _WITH_TEXT and given and is_pid(given[0]) else len(given)
        if not least <= count <= most:
            raise line.words.wrong(f"{what} takes {least} to {most} words, and got {count}")
        if what in _WITH_TEXT:
            given = [given[1], _text(line), *given[2:]]
        if do in (_lock, _keep, _migrate):  # they take long, and must not hold up the shell's other functions
            return do(line, int(pid), *given) or 0
        with Shell(line.context, int(pid)) as there:
            return do(line, there, *given) or 0
    except errors.Empty:
        return 1
    except errors.AccordError as error:
        line.io.err(f"accord: {safe(str(error))} [{error.code}]\n")
        return 2 if isinstance(error, errors.Conflict) else 1


def _text(line: "Line") -> str:
    return texts.take(line, {"stdin": True}, "text", "file", _MOST_TEXT_BYTES, "The text")


def _init(line: "Line", there: Shell) -> None:
    line.call("home.init", {})


def _read(line: "Line", there: Shell, path: str, *ignored: str) -> None:
    """Retries and pauses, which the function takes, are not needed: what is read is never half-written."""
    name = _name(path)
    text = there.staged(name)
    if text is None:
        found = line.call("doc.read", {"name": name})
        there.revisions[name], text = found["revision"], found["text"]
    line.io.out(text if text.endswith("\n") else f"{text}\n")


def _write(line: "Line", there: Shell, path: str, text: str, ttl: str = "0") -> None:
    name = _name(path)
    if there.steps is not None:
        _stage(there, name, text, ttl)
    else:
        there.revisions[name] = line.call("doc.write", {"name": name, "text": text, "ttl": ttl})["revision"]


def _safe_write(line: "Line", there: Shell, path: str, text: str, check: str = "true") -> None:
    """Refused when somebody else wrote since this shell last read or wrote it."""
    name = _name(path)
    if there.steps is not None:
        _stage(there, name, text)
        return
    base = there.revisions.get(name) if check == "true" else None
    there.revisions[name] = line.call("doc.write", {"name": name, "text": text, "base": base})["revision"]


def _begin(line: "Line", there: Shell) -> None:
    if there.steps is not None:
        raise line.words.wrong("This shell has begun a transaction already")
    there.steps = []


def _add(line: "Line", there: Shell, path: str, text: str) -> None:
    if there.steps is None:
        raise line.words.wrong("This shell has begun no transaction")
    _stage(there, _name(path), text)


def _stage(there: Shell, name: str, text: str, ttl: str = "0") -> None:
    """A document has one text in a transaction: the last."""
    step: dict[str, Any] = {"operation": "doc.write", "name": name, "text": text, "ttl": ttl}
    if name in there.revisions:
        step["base"] = there.revisions[name]
    there.steps = [other for other in there.steps or [] if other["name"] != name] + [step]


def _commit(line: "Line", there: Shell) -> None:
    """A transaction that meets a conflict is over, and nothing of it was done."""
    if there.steps is None:
        raise line.words.wrong("This shell has begun no transaction")
    steps, there.steps = there.steps, None
    for step in steps:
        there.revisions.pop(step["name"], None)  # to be read again, if this fails
    results = line.call("tx.run", {"steps": steps})["results"] if steps else []
    there.revisions.update({result["name"]: result["revision"] for result in results})


def _rollback(line: "Line", there: Shell) -> None:
    there.steps = None


def _lock(line: "Line", pid: int, name: str, timeout: str = str(_WAIT_S)) -> None:
    shell = Shell(line.context, pid)
    shell.patience_s = min(shell.patience_s, LOCK_S / 3)  # nobody renews it before it is noted
    lock: dict[str, Any] = {"name": _name(name), "owner": shell.owner}
    lock["token"] = line.call("lock.acquire", {**lock, "ttl": LOCK_S, "wait": timeout})["token"]
    try:
        with shell as there:
            there.locks[lock["name"]] = lock["token"]
        _start_keeper(line, pid, lock)
    except BaseException:
        _give_back(line, lock)
        raise


def _give_back(line: "Line", lock: "dict[str, Any]") -> None:
    """What else went wrong is told already; if this fails too, the lock ends by itself."""
    try:
        line.call("lock.release", lock)
    except errors.AccordError:
        pass


def _start_keeper(line: "Line", pid: int, lock: "dict[str, Any]") -> None:
    """It finds the same home and the same settings as this command."""
    words = ["shell", "keep", str(pid), "--", lock["name"], str(lock["token"]), lock["owner"]]
    try:
        subprocess.Popen(
            [sys.executable, "-P", "-m", "accord", *_options(line), *words],
            env=dict(line.io.env),
            cwd=line.io.cwd or "/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise errors.CommandNotFound(command=sys.executable, reason=error.strerror) from None


def _unlock(line: "Line", there: Shell, name: str) -> None:
    token = there.locks.pop(_name(name), 0)
    if not token:
        raise line.words.wrong(f"This shell does not hold {name[:100]!r}")
    line.call("lock.release", {"name": _name(name), "owner": there.owner, "token": token})


def _keep(line: "Line", pid: int, name: str, token: str, owner: str) -> None:
    """Renew a lock while the shell lives and holds it; give it back when the shell is gone."""
    params = {"name": name, "owner": owner, "token": token}
    pause_s = LOCK_S / 3
    try:
        while owner_of(pid) == owner and not platform.wait_for_end(pid, pause_s):
            pause_s = LOCK_S / 3 if _try(line, "lock.renew", {**params, "ttl": LOCK_S}) else _PAUSE_S
        until = platform.boot_seconds() + LOCK_S  # when it has ended by itself
        while not _try(line, "lock.release", params) and platform.boot_seconds() < until:
            time.sleep(_PAUSE_S)
    except errors.LockLost:
        pass


def _try(line: "Line", operation: str, params: "dict[str, Any]") -> bool:
    """Whether a lock was renewed or released; what fails now may not a moment later."""
    try:
        line.call(operation, params)
    except errors.LockLost:
        raise
    except errors.AccordError:
        return False
    return True


def _enqueue(line: "Line", there: Shell, agent: str, command: str, priority: str = "normal") -> None:
    found = line.call("queue.push", {"queue": agent, "payload": command, "priority": priority})
    line.io.out(f"Command enqueued with sequence {found['sequence']}\n")


def _dequeue(line: "Line", there: Shell, agent: str) -> None:
    """The command is out of the queue before it is printed: it is done once, or, if this is killed now, not at all."""
    found = line.call("queue.pop", {"queue": agent})
    line.call("queue.done", {"queue": agent, "receipt": found["receipt"]})
    line.io.out(f"{found['payload']}\n")


def _assign(line: "Line", there: Shell, agent: str, task: str, session: str) -> None:
    try:
        line.call("task.add", {"title": task, "id": task})
    except errors.TaskExists:
        pass
    line.call("task.assign", {"id": task, "agent": agent, "session": session})


def _health(line: "Line", there: Shell) -> int:
    found = line.call("home.doctor", {})
    if found["healthy"]:
        line.io.out(f"OK: {safe(found['engine'])}, {len(found['checks'])} checks passed\n")
        return 0
    for check in found["checks"]:
        if not check["ok"]:
            line.io.err(f"CRITICAL: {check['check']}: {safe(check['found'])}\n")
    return 1


def _migrate(line: "Line", pid: int, backend: str) -> None:
    """From the engine that is named, as `COMMUNICATION_BACKEND` names it or by its URL, to the one in force."""
    home, settings = line.context.home, line.context.settings
    source = backend if ":" in backend else engine_of(home, settings.of_backend(backend))
    line.call("home.migrate", {"source": source, "target": engine_of(home, settings)})


def _name(path: str) -> str:
    """The document, or the lock, that a path stands for."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


# How many words each takes, at least and at most.
_DO: "dict[str, tuple[Callable[..., int | None], int, int]]" = {
    "init": (_init, 0, 0),
    "read": (_read, 1, 3),
    "write": (_write, 2, 3),
    "safe-write": (_safe_write, 2, 3),
    "begin": (_begin, 0, 0),
    "add": (_add, 2, 2),
    "commit": (_commit, 0, 0),
    "rollback": (_rollback, 0, 0),
    "lock": (_lock, 1, 2),
    "unlock": (_unlock, 1, 1),
    "keep": (_keep, 3, 3),
    "enqueue": (_enqueue, 2, 3),
    "dequeue": (_dequeue, 1, 1),
    "assign": (_assign, 3, 3),
    "health": (_health, 0, 0),
    "migrate": (_migrate, 1, 1),
}

VERBS = {
    "shellenv": Verb(shellenv, help='Print functions for a shell; use them with: eval "$(accord shellenv)"'),
    "shell": Verb(
        shell,
        positional=("do", "pid", "words"),
        extra={"do": "Text", "pid": "Text", "words": "Words"},
        notes={
            "do": "what the function does",
            "pid": "the shell",
            "words": "the function's own words",
        },
        help="Do what a function of `accord shellenv` is for.",
    ),
}
