"""What runs inside a hub, whichever door a caller came in by.

core.py         the hub: its store, its threads, and how a request gets to its operation
writer.py       the thread that makes one commit of all changes that wait
session.py      one caller
feeds.py        what is pushed to those who listen
log.py          what happened, as JSON lines

The doors (accord.doors) translate; accord.daemon joins both into a process.
"""
