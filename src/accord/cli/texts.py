"""A text that a command takes from one of three places: a word, a file, standard input."""

from accord import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.run import Line


def take(line: "Line", words: "dict[str, Any]", text: str, file: str, most: int, what: str = "") -> str:
    """The text, from exactly one of the options `text` and `file` and the word `-`; they are words no more.

    `what` is how an error calls one that is too large; without, it is a message.
    """
    for name in (text, file):
        if words.get(name) == "-":
            words["stdin"] = words.pop(name)
    given = {name: words.pop(name) for name in (text, file, "stdin") if name in words}
    if len(given) != 1:
        found = "more than one is" if given else "none is"
        options = f"--{text} TEXT, --{file.replace('_', '-')} PATH and - (standard input)"
        raise line.words.wrong(f"Give one of {options}; {found} given")
    if text in given:
        return str(given[text])
    path = given.get(file)
    try:
        data = line.io.read_input(most) if path is None else line.io.read_file(path, most)
    except errors.MessageTooLarge as error:
        if what:
            raise errors.TooLarge(what=what, **error.details) from None
        raise
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidEncoding(what=path or "standard input", at=error.start) from None
