"""A process that has imported everything, and forks for each user under test, who may not reach its files.

Each line of its input asks for one process; beside `files` it finds what that said and how it ended.
"""

import ctypes  # noqa: F401
import difflib  # noqa: F401
import encodings.ascii
import encodings.idna
import encodings.latin_1  # noqa: F401
import grp  # noqa: F401
import importlib
import json
import os
import pkgutil
import shutil  # noqa: F401
import signal
import subprocess  # noqa: F401
import sys
import traceback
from typing import Any

import uvloop  # noqa: F401
import yaml  # noqa: F401
import zmq.utils.z85  # noqa: F401

import accord
from accord.cli.run import VERBS, find_verb


def load() -> None:
    for found in pkgutil.walk_packages(accord.__path__, "accord."):
        if not found.name.startswith(("accord.demo", "accord.__main__")):
            importlib.import_module(found.name)
    for verb in VERBS:
        find_verb(verb)
    importlib.import_module("tests.robustness.worker")


def be(asked: dict[str, Any]) -> None:
    for fd, path in enumerate(("/dev/null", f"{asked['files']}.out", f"{asked['files']}.err")):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), fd)
    os.setgroups(asked["groups"])
    os.setgid(asked["uid"])
    os.setuid(asked["uid"])
    os.umask(asked["umask"])
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir("/")


def do(asked: dict[str, Any]) -> int:
    sys.argv = ["accord", *asked["words"]]
    if asked["what"] == "hub":
        from accord.daemon import main as be_hub

        return be_hub(asked["words"])
    if asked["what"] == "accord":
        from accord.cli.main import main

        main()
    exec(asked["what"], {})
    return 0


def run(asked: dict[str, Any]) -> None:
    code = 99
    try:
        be(asked)
        code = do(asked)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def wait(asked: dict[str, Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if not pid:
        run(asked)
    with open(f"{asked['files']}.pid", "w") as file:
        file.write(str(pid))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(f"{asked['files']}.new", "w") as file:
        file.write(str(code))
    os.rename(f"{asked['files']}.new", f"{asked['files']}.code")
    os._exit(0)


if __name__ == "__main__":
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        if not os.fork():
            wait(json.loads(line))
