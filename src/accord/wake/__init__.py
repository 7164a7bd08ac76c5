"""Ways to reach a session that waits for its user, one file each: they begin a turn, whose hooks bring the mail.

Each has `wake(reach, process, text)`, with what the session's hook said of how it is reached and the process that it is
of: whether the text went out. Nothing that a message holds goes this way.
"""

TEXT = "accord: you have mail"  # begins as what accord says does, so that no hook takes it for a person's words

WAYS = ("claude",)
