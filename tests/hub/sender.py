"""Sends numbered messages through a hub that may go away at any moment.

Started with a home, a sender's name, and how many to send. It says `acknowledged N` for each, at once. What the hub did
not answer is sent again under the same id, as everybody should.
"""

import sys
import time

from accord import place
from accord.client import Connection
from accord.model import new_message_id

TIMEOUT_S = 20.0
RECIPIENTS = ["ben", "cyd"]


def main() -> None:
    home, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    connection = connect(home)
    for n in range(count):
        params = {"sender": name, "to": RECIPIENTS, "message": f"{name} {n}", "id": new_message_id()}
        while True:
            try:
                connection.call("mail.send", params, TIMEOUT_S)
                break
            except OSError:
                connection.close()
                connection = connect(home)
        sys.stdout.write(f"acknowledged {n}\n")
        sys.stdout.flush()


def connect(home: str) -> Connection:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            connection = Connection(place.socket_path(home), TIMEOUT_S)
            with open(f"{home}/operator/token", encoding="ascii") as file:
                connection.call("session.open", {"operator": file.read().strip()}, TIMEOUT_S)
            return connection
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)


if __name__ == "__main__":
    main()
