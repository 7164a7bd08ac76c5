"""Ways to reach a session that waits for its user, one file each: they begin a turn, whose hooks bring the mail.

Each has `wake(session, text)`, with the record of the session, in which an agent has said what it is and how it is
reached: whether the text went out. Nothing that a message holds goes this way, and no program is run.
"""

TEXT = "accord: you have mail"  # begins as what accord says does, so that no hook takes it for a person's words

WAYS = ("claude", "codex")
