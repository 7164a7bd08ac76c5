"""Text for people: nothing in it is a command to their terminal."""

# C0 and C1 controls, delete, and what turns the direction of writing around, as escapes; these are right in JSON too.
_CODES = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
CONTROLS = {code: f"\\u{code:04x}" for code in _CODES}

_IN_TEXT = {code: escape for code, escape in CONTROLS.items() if code not in (0x09, 0x0A)}


def safe(text: str) -> str:
    """What others wrote, with all controls but tabs and ends of lines made visible."""
    return text.translate(_IN_TEXT)
