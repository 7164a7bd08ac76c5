"""What makes an agent use accord: settings files of vendors, changed and changed back.

One file for each thing that a user names: `claude.py`, `codex.py`, ... has `edits(site)`, what is to stand in which
files, `notes(site)`, what is left for a person to do, and `MOVED_BY`, the vendor's variable for where its settings are.
`changes.py` makes the edits; `record.py` remembers what was there.
"""

NAMES = ("claude", "codex", "gemini", "opencode", "skill")
