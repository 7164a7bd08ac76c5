"""lock acquire, lock renew, lock release, lock list."""

from accord.cli.show import table
from accord.cli.verbs.mail import myself
from accord.cli.words import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def acquire(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("lock.acquire", _owned(line, words))
    line.answer(result, lambda: f"{result['name']} is {result['owner']}'s until {result['expires_at']}, "
                f"with the number {result['token']}\n")  # fmt: skip


def renew(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("lock.renew", _owned(line, words))
    line.answer(result, lambda: f"{result['name']} is {result['owner']}'s until {result['expires_at']}\n")


def release(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("lock.release", _owned(line, words))
    line.answer(result, lambda: f"{result['name']} is released\n")


def show(line: "Line", words: "dict[str, Any]") -> None:
    result = line.call("lock.list", words)
    rows = [
        (one["name"], one["owner"], one["token"], one["expires_at"], ", ".join(who["owner"] for who in one["waiting"]))
        for one in result["locks"]
    ]
    head = ("lock", "owner", "number", "until", "waiting")
    line.answer(result, lambda: table(line, head, rows) if rows else "no locks are held\n", styled=True)


def _owned(line: "Line", words: "dict[str, Any]") -> "dict[str, Any]":
    return words if "owner" in words else {**words, "owner": myself(line, "--owner")}


VERBS = {
    "lock acquire": Verb(
        acquire,
        "lock.acquire",
        positional=("name",),
        mine=("owner",),
        names={"wait": "timeout"},
        notes={"wait": "how long to wait for it"},
    ),
    "lock renew": Verb(renew, "lock.renew", positional=("name",), mine=("owner",)),
    "lock release": Verb(release, "lock.release", positional=("name",), mine=("owner",)),
    "lock list": Verb(show, "lock.list"),
}
