"""How much is measured: `FULL` by `make bench`, `TINY` by the test that the benchmarks run at all."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    sends: int  # of one process
    racers: int  # processes that start together ...
    race_sends: int  # ... and how much each of them sends
    crowd: int  # processes that send ...
    crowd_s: float  # ... for so long
    small: int  # items in a small collection
    numbered: int  # appended items in a large one
    named: int  # items with ids of their own in a large one
    named_in_files: int  # the same for `files`: making and removing a file for each takes minutes
    reads: int  # of one kind, in one round
    commits_before_opening: int  # left in the journal of `files`
    watched: int  # commits that a watcher notices
    watched_pause_s: float  # between two of them
    idle_s: float  # how long a watcher then waits in vain
    waiting: int  # messages in an inbox
    searched: int  # messages that are searched
    listeners: int  # that only listen
    tasks: int  # on a large board


FULL = Sizes(
    sends=2_000,
    racers=10,
    race_sends=100,
    crowd=8,
    crowd_s=3.0,
    small=1_000,
    numbered=1_000_000,
    named=1_000_000,
    named_in_files=200_000,
    reads=200,
    commits_before_opening=999,
    watched=10_000,
    watched_pause_s=0.001,
    idle_s=5.0,
    waiting=1_000_000,
    searched=100_000,
    listeners=1_000,
    tasks=100_000,
)

TINY = Sizes(
    sends=20,
    racers=2,
    race_sends=5,
    crowd=2,
    crowd_s=0.05,
    small=20,
    numbered=100,
    named=100,
    named_in_files=100,
    reads=3,
    commits_before_opening=5,
    watched=20,
    watched_pause_s=0.001,
    idle_s=0.1,
    waiting=50,
    searched=50,
    listeners=5,
    tasks=100,
)
