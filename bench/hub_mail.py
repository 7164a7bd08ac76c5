"""Sending real mail through a hub, over its socket: one message at a time, or many in flight."""

import os
from collections.abc import Callable

from accord.client import Connection
from accord.home import Home
from accord.services import hub
from bench import mail_api

IN_FLIGHT = 100
PER_CALL = 1_000

_PARAMS = f'"sender":"{mail_api.SENDER}","to":"{mail_api.RECIPIENT}","message":"{"x" * 300}"'
_ANSWER_S = 30.0
_PIECE = 1 << 18


def start(home: str, variables: dict[str, str]) -> int:
    """A hub in a home with a sender and a recipient; its process."""
    mail_api.create(home)
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        return int(hub.start(home, {})["pid"])
    finally:
        os.environ.clear()
        os.environ.update(before)


def stop(home: str) -> None:
    hub.stop(home, 10.0)


def cpu_s(pid: int) -> float:
    """What a process has used so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def commits(home: str) -> int:
    """How many the hub has made."""
    connection = connect(home)
    try:
        return int(connection.call("hub.statistics", {}, _ANSWER_S)["commits"])
    finally:
        connection.close()


def connect(home: str) -> Connection:
    connection = Connection(str(hub.status(home)["socket"]), _ANSWER_S)
    connection.call("session.open", {"operator": Home(home).operator_token()}, _ANSWER_S)
    return connection


def open_sender(home: str) -> Callable[[int], None]:
    """What sends a message and waits until it is durable."""
    wire = connect(home).raw

    def send(n: int) -> None:
        wire.sendall(_line(n))
        answer = wire.recv(_PIECE)
        while not answer.endswith(b"\n"):
            answer += wire.recv(_PIECE)
        assert b'"result"' in answer, answer

    return send


def open_flight_sender(home: str) -> Callable[[int], None]:
    """What sends a thousand, never with more than a hundred unanswered."""
    wire = connect(home).raw

    def send(n: int) -> None:
        sent = IN_FLIGHT
        wire.sendall(b"".join(_line(number) for number in range(IN_FLIGHT)))
        got = 0
        while got < PER_CALL:
            answers = wire.recv(_PIECE)
            assert b'"error"' not in answers, answers
            arrived = answers.count(b"\n")
            got += arrived
            more = min(arrived, PER_CALL - sent)
            wire.sendall(b"".join(_line(sent + number) for number in range(more)))
            sent += more

    return send


def _line(id: int) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{id},"method":"mail.send","params":{{{_PARAMS}}}}}\n'.encode()
