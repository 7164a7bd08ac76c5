"""The functions of `accord shellenv`, in the shells that people have, several at once, and killed in the middle."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accord.cli.shells import owner_of
from accord.cli.verbs.shell import LOCK_S
from accord.store.local.gate import Gate

pytestmark = pytest.mark.covers("S16")

TIMEOUT_S = 60.0
FUNCTIONS = [
    "communication_backend_init",
    "communication_backend_read",
    "communication_backend_write",
    "communication_backend_lock",
    "communication_backend_unlock",
    "communication_backend_transaction_begin",
    "communication_backend_transaction_commit",
    "communication_backend_transaction_rollback",
    "acquire_file_lock",
    "release_file_lock",
    "acquire_atomic_lock",
    "begin_file_transaction",
    "add_to_transaction",
    "commit_file_transaction",
    "safe_read_memory_file",
    "safe_write_memory_file",
    "enqueue_command",
    "dequeue_command",
    "update_task_assignments",
    "health_check_communication",
    "migrate_data_from_backend",
]


class Shells:
    def __init__(self, home: Path, name: str = "bash", **env: str) -> None:
        self.name = name
        self.command = "accord"
        self.options = ""
        self.home = home
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        self._env = {"HOME": str(home), "ACCORD_HOME": str(home / "accord"), "PATH": path, **env}

    def start(self, script: str) -> "subprocess.Popen[str]":
        words = [self.name, "-c", f'eval "$({self.command} {self.options} shellenv)"\n{script}']
        pipe = subprocess.PIPE
        return subprocess.Popen(words, env=self._env, cwd=self.home, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, script: str) -> list[str]:
        """What it prints, line by line; errors are not shown."""
        return self.start(script).communicate(timeout=TIMEOUT_S)[0].splitlines()


@pytest.fixture(params=["sh", "bash", "zsh"])
def shells(request: pytest.FixtureRequest, tmp_path: Path) -> Shells:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return Shells(tmp_path, request.param)


@pytest.fixture
def bash(tmp_path: Path) -> Shells:
    return Shells(tmp_path)


def test_every_function_is_there(shells: Shells) -> None:
    names = " ".join(FUNCTIONS)
    assert shells.run(f"for f in {names}; do type $f >/dev/null 2>&1 || echo $f; done") == []


def test_documents(shells: Shells) -> None:
    assert shells.run("""
        communication_backend_init && echo ready
        communication_backend_write ./memory/a.md "-n it's \\"quoted\\" \\$HOME"
        communication_backend_read /memory/a.md
        communication_backend_read nothing || echo $?
        seen=$(safe_read_memory_file memory/a.md)
        communication_backend_write memory/b.md x
        safe_write_memory_file memory/a.md mine && safe_write_memory_file memory/a.md again && echo written
        accord doc write memory/a.md --text other >/dev/null
        safe_write_memory_file memory/a.md late || echo $?
        safe_write_memory_file memory/a.md forced false && echo $?
        safe_read_memory_file memory/a.md
        communication_backend_read || echo $?
        communication_backend_write ../x y || echo $?
    """) == ["ready", '-n it\'s "quoted" $HOME', "1", "written", "2", "0", "forced", "1", "1"]


def test_transactions(shells: Shells) -> None:
    assert shells.run("""
        commit_file_transaction || echo $?
        add_to_transaction a 1 || echo $?
        begin_file_transaction
        add_to_transaction a 1
        add_to_transaction a 2
        communication_backend_write b 1
        safe_read_memory_file a
        accord doc list
        commit_file_transaction && safe_read_memory_file a && safe_read_memory_file b
        communication_backend_transaction_begin
        add_to_transaction a 3
        communication_backend_transaction_rollback
        safe_read_memory_file a
        begin_file_transaction
        add_to_transaction a 4
        add_to_transaction c 4
        accord doc write a --text other >/dev/null
        commit_file_transaction || echo conflict $?
        safe_read_memory_file c || echo $?
        begin_file_transaction && begin_file_transaction || echo $?
    """) == ["1", "1", "2", "no documents", "2", "1", "2", "conflict 2", "1", "1"]


def test_queues_and_tasks(shells: Shells) -> None:
    assert shells.run("""
        dequeue_command worker || echo $?
        enqueue_command worker "make test"
        enqueue_command worker "make check" high
        dequeue_command worker
        dequeue_command worker
        dequeue_command worker || echo $?
        update_task_assignments ann build "session 1" && update_task_assignments ann build "session 1" && echo assigned
        health_check_communication >/dev/null && echo healthy
    """) == [
        "1",
        "Command enqueued with sequence 1",
        "Command enqueued with sequence 2",
        "make check",
        "make test",
        "1",
        "assigned",
        "healthy",
    ]


def test_health_says_what_is_wrong(shells: Shells) -> None:
    good, bad, code = shells.run("""
        health_check_communication
        accord halt stop >/dev/null
        health_check_communication 2>&1 || echo $?
    """)
    assert good.startswith("OK: sqlite:")
    assert bad.startswith("CRITICAL: halt: Everything is halted")
    assert code == "1"


def test_they_go_on_with_what_shellenv_was_told(shells: Shells) -> None:
    shells.options = '--home "my home" --engine="files:a store"'
    assert shells.run("cd /; communication_backend_write a 1; safe_read_memory_file a; accord doc list") == [
        "1",
        "no documents",
    ]
    assert (shells.home / "my home").is_dir()
    assert (shells.home / "a store").is_dir()


def test_they_know_where_accord_is(shells: Shells) -> None:
    assert shells.run("""
        PATH=/usr/bin:/bin
        communication_backend_write a 1 && safe_read_memory_file a
        accord=accord; command -v accord
    """) == ["1"]


def test_accord_may_be_a_module(tmp_path: Path) -> None:
    (tmp_path / "accord.py").write_text("raise SystemExit('of the working directory')")
    bash = Shells(tmp_path)
    bash.command = f"{sys.executable} -P -m accord"
    assert bash.run("communication_backend_write a 1 && safe_read_memory_file a") == ["1"]


def test_an_accord_that_is_gone_is_a_failure(shells: Shells, tmp_path: Path) -> None:
    (tmp_path / "accord-here").symlink_to(Path(sys.executable).parent / "accord")
    shells.command = "./accord-here"
    assert shells.run("rm accord-here; dequeue_command a || echo $?; communication_backend_write a 1 || echo $?") == [
        "1",
        "1",
    ]


def test_texts_that_no_argument_can_be(shells: Shells) -> None:
    assert shells.run("""
        set -eu
        text=$(head -c 300000 /dev/zero | tr '\\0' 'x')
        communication_backend_write a "$text"
        safe_write_memory_file a "$text%s" true
        begin_file_transaction; add_to_transaction b "$text"; commit_file_transaction
        enqueue_command q "$text" high
        for name in a b; do safe_read_memory_file $name | wc -c; done
        dequeue_command q | wc -c
        safe_read_memory_file a | tail -c 4
        communication_backend_write a "$text" 60 more || echo $?
        communication_backend_write a || echo $?
        communication_backend_write || echo $?
        enqueue_command || echo $?
        safe_write_memory_file a "" && safe_read_memory_file a
        communication_backend_write a "$text$text" || echo $?
    """) == [
        "Command enqueued with sequence 1",
        "300003",
        "300001",
        "300001",
        "x%s",
        *["1"] * 4,
        "",
        "1",
    ]


def test_locks_between_shells(bash: Shells) -> None:
    holder = bash.start("acquire_file_lock res 5 && echo held; read word; release_file_lock res; echo $?; read word")
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    assert bash.run("acquire_file_lock res 0.2 || echo $?; release_file_lock res || echo $?") == ["1", "1"]
    waiter = bash.start("acquire_atomic_lock res 30; echo $?")
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "0\n"
    assert waiter.communicate(timeout=TIMEOUT_S)[0] == "0\n"
    holder.communicate(timeout=TIMEOUT_S)


def test_a_killed_shell_leaves_neither_its_lock_nor_half_a_transaction(bash: Shells) -> None:
    killed = bash.start("begin_file_transaction; add_to_transaction a 1; acquire_file_lock res; echo ready; read word")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "ready\n"
    other = bash.start("begin_file_transaction; add_to_transaction b 1; echo ready; read word; commit_file_transaction")
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=TIMEOUT_S)
    began = time.monotonic()
    assert bash.run("acquire_file_lock res 20; echo $?") == ["0"]
    assert time.monotonic() - began < LOCK_S / 2
    other.communicate("\n", timeout=TIMEOUT_S)
    assert [line.split()[0] for line in bash.run("accord doc list")] == ["document", "b"]


def test_what_cannot_be_written_leaves_what_was_there(bash: Shells) -> None:
    found = bash.run("""
        begin_file_transaction
        add_to_transaction a 1
        (ulimit -f 0; add_to_transaction a 2 2>&1) || echo $?
        commit_file_transaction
        safe_read_memory_file a
    """)
    assert found[0].endswith("[DATA_DIR_ERROR]")
    assert found[1:] == ["1", "1"]


@pytest.mark.parametrize("lock", ["acquire_file_lock", "accord --home=other --engine=files:there shell lock $$ --"])
def test_whoever_keeps_a_lock_finds_what_the_shell_finds(tmp_path: Path, lock: str) -> None:
    (tmp_path / "accord.py").write_text("raise SystemExit('of the working directory')")
    bash = Shells(tmp_path, ACCORD_HOME="relative")
    killed = bash.start(f"{lock} res; echo ready; read word")
    assert killed.stdout is not None
    assert killed.stdout.readline() == "ready\n"
    killed.kill()
    killed.communicate(timeout=TIMEOUT_S)
    assert bash.run(f"{lock} res {LOCK_S / 2}; echo $?") == ["0"]


def test_a_shell_that_waits_for_a_lock_can_release_another(bash: Shells) -> None:
    holder = bash.start("acquire_file_lock res && echo held; read word")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert bash.run("""
        acquire_file_lock mine
        (acquire_file_lock res 4 || echo late) &
        until accord lock list --json | grep -q '"waiting":.{'; do :; done
        release_file_lock mine && echo released
        wait
    """) == ["released", "late"]
    holder.communicate("\n", timeout=TIMEOUT_S)


def test_a_shell_does_not_wait_for_its_other_functions_for_ever(tmp_path: Path) -> None:
    bash = Shells(tmp_path, ACCORD_LOCK_TIMEOUT_S="1")
    process = bash.start("read word; begin_file_transaction 2>&1; acquire_file_lock res; echo $?; accord lock list")
    (tmp_path / "accord" / "shell").mkdir(parents=True, mode=0o700)
    path = f"{tmp_path}/accord/shell/{owner_of(process.pid)}.gate"
    gate = Gate(path)
    assert gate.try_acquire()
    found = process.communicate("\n", timeout=TIMEOUT_S)[0].splitlines()
    gate.close()
    assert path in found[0]
    assert found[0].endswith("[LOCK_TIMEOUT]")
    assert found[1:] == ["1", "no locks are held"]


def test_many_shells_at_once(bash: Shells) -> None:
    script = """
        for n in 1 2 3; do
            begin_file_transaction
            add_to_transaction own/NUMBER $n
            commit_file_transaction || echo failed
            enqueue_command all NUMBER-$n >/dev/null || echo failed
        done
    """
    started = [bash.start(script.replace("NUMBER", str(number))) for number in range(5)]
    assert [process.communicate(timeout=TIMEOUT_S)[0] for process in started] == [""] * 5
    taken = bash.run("while dequeue_command all; do :; done")
    assert sorted(taken) == [f"{number}-{n}" for number in range(5) for n in (1, 2, 3)]


@pytest.mark.long
def test_a_lock_is_renewed_while_the_shell_lives(bash: Shells) -> None:
    holder = bash.start("acquire_file_lock res && echo held; read word")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    time.sleep(LOCK_S + 5)
    assert bash.run("acquire_file_lock res 0.1 || echo $?") == ["1"]
    holder.communicate("\n", timeout=TIMEOUT_S)


def test_it_follows_the_backend_that_the_shell_chooses(tmp_path: Path) -> None:
    """As the document's own test of a migration does; what the shell holds and has read is of one store."""
    shells = Shells(tmp_path)
    db = tmp_path / "state.db"
    script = f"""
        export COMMUNICATION_BACKEND=file SQLITE_DB={db}
        communication_backend_init && communication_backend_write plan one
        communication_backend_lock build && echo file
        communication_backend_transaction_begin
        export COMMUNICATION_BACKEND=sqlite
        communication_backend_init && safe_write_memory_file plan two && communication_backend_lock build && echo sqlite
        safe_write_memory_file plan three && communication_backend_unlock build && echo unlocked
        communication_backend_read plan
        export COMMUNICATION_BACKEND=file
        communication_backend_transaction_rollback && communication_backend_read plan
        communication_backend_unlock build && health_check_communication
    """
    *said, health = shells.run(script)
    assert said == ["file", "sqlite", "unlocked", "three", "one"]
    assert health.startswith(f"OK: files:{tmp_path}/accord/store, ")
    assert db.exists()


def test_the_health_of_an_engine_that_is_none(tmp_path: Path) -> None:
    shells = Shells(tmp_path)
    shells.run("communication_backend_init")
    assert shells.run(
        "COMMUNICATION_BACKEND=reddis; export COMMUNICATION_BACKEND; health_check_communication; echo $?"
    ) == ["1"]


def test_a_migration_as_in_the_document(shells: Shells) -> None:
    """The document's own test of one, word for word: the backend that was left is named, the one in force is filled."""
    assert shells.run(f"""
        SQLITE_DB={shells.home}/state.db; export SQLITE_DB
        test_backend_migration() {{
            local source_backend="$1"
            local target_backend="$2"
            export COMMUNICATION_BACKEND="$source_backend"
            setup_test_data
            export COMMUNICATION_BACKEND="$target_backend"
            migrate_data_from_backend "$source_backend"
            verify_migrated_data
        }}
        setup_test_data() {{
            communication_backend_init
            communication_backend_write memory/plan one
            enqueue_command builder "make test" high
            update_task_assignments ann parser s1
        }}
        verify_migrated_data() {{
            safe_read_memory_file memory/plan
            dequeue_command builder
            enqueue_command builder more
            accord task show parser --json | grep -o '"agent":"ann"'
        }}
        test_backend_migration file sqlite
        migrate_data_from_backend file || echo used $?
        COMMUNICATION_BACKEND=file; safe_read_memory_file memory/plan && dequeue_command builder
    """) == [
        "Command enqueued with sequence 1",
        "one",
        "make test",
        "Command enqueued with sequence 2",
        '"agent":"ann"',
        "used 1",
        "one",
        "make test",
    ]


def test_a_migration_from_where_the_home_was_before(bash: Shells) -> None:
    """Named as a backend, or by its URL; what is none is refused, and so is the store that it would be copied to."""
    assert bash.run("""
        communication_backend_write plan one
        accord register ann >/dev/null
        export COMMUNICATION_BACKEND=file
        for name in "" reddis redis: "sqlite files"; do migrate_data_from_backend $name 2>/dev/null || echo $?; done
        migrate_data_from_backend file 2>/dev/null || echo nothing
        migrate_data_from_backend sqlite && safe_read_memory_file plan
        migrate_data_from_backend file 2>&1 || echo $?
        accord send --from ann --to ann --message x >/dev/null && echo known
        export ACCORD_ENGINE=files:other
        migrate_data_from_backend sqlite && safe_read_memory_file plan
        export ACCORD_ENGINE=files:third
        migrate_data_from_backend files:other && safe_read_memory_file plan
        migrate_data_from_backend files:other && echo again
    """) == [
        *["1"] * 4,
        "nothing",
        "one",
        "accord: --from and --to are the same store. Read: accord shell --help [USAGE]",
        "1",
        "known",
        "one",
        "one",
        "again",
    ]
