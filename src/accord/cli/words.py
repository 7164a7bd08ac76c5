"""What a verb takes, and the words of a command read by it. Options may stand anywhere before a `--`."""

from accord import errors
from accord.operations import find, parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from accord.cli.run import Line

# What may stand before and after every verb: whether it takes a value.
GLOBALS = {
    "--home": True, "--engine": True, "--hub-port": True, "--no-start": False,
    "--json": False, "--verbose": False, "--version": False, "--help": False,
}  # fmt: skip
HARMLESS = ("--json", "--verbose", "--no-start")  # those that change nothing of what is done
SHORT = {"-v": "--verbose", "-h": "--help", "-f": "--follow"}

# Kinds that may be given several times.
LISTS = ("Recipients", "Identities", "MessageIds", "Labels", "TaskIds", "Globs", "Paths", "Words")
TEXTS = ("Text", "Body", "Title", "Reason")  # kinds of several words
NAMES = ("Identity", "OwnIdentity", "Identities")
DASH = "Dash"  # the word `-`, for standard input
REST = "Rest"  # all words after `--`, as they are
FLAG = "Flag"


class Verb:
    def __init__(
        self,
        run: "Callable[[Line, dict[str, Any]], int | None]",
        operation: str = "",
        positional: tuple[str, ...] = (),
        names: "Mapping[str, str] | None" = None,
        extra: "Mapping[str, str] | None" = None,
        notes: "Mapping[str, str] | None" = None,
        usage: str = "",
        help: str = "",
        any_words: bool = False,
        instead: str = "",
        mine: tuple[str, ...] = (),
    ) -> None:
        self.run = run
        self.operation = operation  # whose parameters it takes; "": none
        self.positional = positional  # parameters that need no option
        self.names = names or {}  # options with another name than the parameter
        self.extra = extra or {}  # what it takes besides, with the kind
        self.notes = notes or {}  # what help says of these, and of others here
        self.usage = usage  # what may follow the verb, where the parameters alone do not tell
        self._help = help
        self.instead = instead  # what to write when there are words too many
        self.mine = mine  # what it takes from who runs it where it is not given, so that it need not be
        self.any_words = any_words  # it is run whatever words follow: see `_read_any`

    def kinds(self) -> dict[str, str]:
        """What it takes, with the kind of each."""
        own = parameters(find(self.operation)) if self.operation else {}
        return {**{name: kind for name, (kind, _) in own.items()}, **self.extra}

    def options(self) -> dict[str, str]:
        """The parameter of each option."""
        return {
            f"--{self.names.get(word, word).replace('_', '-')}": word
            for word, kind in self.kinds().items()
            if kind not in (DASH, REST)
        }

    def aliases(self) -> dict[str, str]:
        """Where an agent is named by a word alone, `--identity` names it too."""
        kinds = self.kinds()
        first = self.positional[0] if self.positional else ""
        return {"--identity": first} if kinds.get(first) in NAMES else {}

    @property
    def help(self) -> str:
        return self._help or (find(self.operation).__doc__ or "").strip()


class Words:
    """The words that are left of a command."""

    def __init__(self, words: "Iterable[str]") -> None:
        self.left = list(words)
        self.globals: dict[str, str] = {}
        self.verb = ""

    def wrong(self, reason: str) -> "errors.Usage":
        return errors.Usage(reason=reason, see=f"accord {self.verb} --help".replace("  ", " "))

    def take_verb(self, verbs: "Mapping[str, str]", groups: "set[str]") -> None:
        """The verb, or groups and verb, from the front, and the global options before it."""
        self._take_globals()
        if not self.left:
            return
        verb = self.left.pop(0)
        while verb in groups:
            self._take_globals()
            if not self.left:
                break
            verb += f" {self.left.pop(0)}"
        if verb not in verbs and verb not in groups:
            raise self.wrong(f"There is no verb {verb[:100]!r}{near(verb, verbs)}")
        self.verb = verb

    def _take_globals(self) -> None:
        while self.left and self.left[0].startswith("-"):
            word = self.left.pop(0)
            if not self._take_global(word):
                raise self.wrong(f"There is no option {word[:100]!r}{near(word, GLOBALS)}")

    def read(self, verb: Verb) -> "dict[str, Any]":
        """The parameters that are given."""
        kinds, options = verb.kinds(), {**verb.aliases(), **verb.options()}
        if verb.any_words:
            flags = {option: param for option, param in options.items() if kinds[param] == FLAG}
            return self._read_any(verb.positional[0], flags)
        rest = [param for param, kind in kinds.items() if kind == REST]
        found: dict[str, Any] = {}
        plain: list[str] = []
        while self.left:
            word = self.left.pop(0)
            if word == "--":
                if rest:
                    found[rest[0]] = list(self.left)
                else:
                    plain += self.left
                self.left.clear()
            elif not word.startswith("-") or word == "-":
                plain.append(word)
            elif not self._take_option(word, options, kinds, found) and not self._take_global(word):
                raise self.wrong(f"There is no option {word[:100]!r}{near(word, [*options, *GLOBALS])}")
        plain = self._place(plain, verb.positional, kinds, found)
        if plain:
            hint = f"; write: {verb.instead}" if verb.instead else ""
            raise self.wrong(f"{plain[0][:100]!r} is one word too many{hint}")
        return found

    def _read_any(self, param: str, flags: "Mapping[str, str]") -> "dict[str, Any]":
        """The parameters of a verb that no way of writing it may keep from being run.

        What can be no option is a word like others, and so is what asks for something else where there are other words.
        """
        plain: list[str] = []
        asked: list[str] = []
        while self.left:
            word = self.left.pop(0)
            if word == "--":
                plain += self.left
                self.left.clear()
            elif word in flags or SHORT.get(word, word) in ("--help", "--version"):
                (plain if plain else asked).append(word)
            elif not self._take_if_good(word, only=HARMLESS if plain else GLOBALS):
                plain.append(word)
        if asked and not plain:
            self.globals.update({SHORT.get(word, word): "" for word in asked if word not in flags})
            return {flags[word]: True for word in asked if word in flags}
        return {param: asked + plain}

    def _take_if_good(self, word: str, only: "Iterable[str]") -> bool:
        before = list(self.left)
        try:
            return SHORT.get(word, word).partition("=")[0] in only and self._take_global(word)
        except errors.Usage:
            self.left = before
            return False

    def _take_global(self, word: str) -> bool:
        """Take a global option, with its value; whether it is one."""
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        if name not in GLOBALS or (equals and not GLOBALS[name]):
            return False
        self.globals[name] = value if equals or not GLOBALS[name] else self._value(name)
        if GLOBALS[name] and not self.globals[name]:
            raise self.wrong(f"{name} needs a value")
        return True

    def _take_option(
        self, word: str, options: "Mapping[str, str]", kinds: "Mapping[str, str]", found: "dict[str, Any]"
    ) -> bool:
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        if name not in options:
            return False
        param = options[name]
        if kinds[param] == FLAG:
            if equals:
                raise self.wrong(f"{name} takes no value")
            found[param] = True
            return True
        value = value if equals else self._value(name, options)
        if kinds[param] in LISTS:
            found.setdefault(param, []).append(value)
        elif param in found:
            raise self.wrong(f"{name} is given twice")
        else:
            found[param] = value
        return True

    def _value(self, name: str, options: "Iterable[str]" = ()) -> str:
        if not self.left:
            raise self.wrong(f"{name} needs a value")
        if self.left[0] in GLOBALS or self.left[0] in options:
            raise self.wrong(f"{name} needs a value; if {self.left[0]} is meant to be it, write {name}={self.left[0]}")
        return self.left.pop(0)

    def _place(
        self, plain: list[str], positional: tuple[str, ...], kinds: "Mapping[str, str]", found: "dict[str, Any]"
    ) -> list[str]:
        """Words without an option, in the order of the parameters that take them; those that are left."""
        for param in positional:
            if kinds[param] in TEXTS and param == positional[-1] and param not in found and plain:
                found[param] = " ".join(plain)  # a text needs no quotes where nothing else can follow
                plain = []
            if plain and kinds[param] in LISTS:
                found.setdefault(param, []).extend(plain)
                plain = []
            elif plain and param not in found and (kinds[param] != DASH or plain[0] == "-"):
                found[param] = plain.pop(0)
        return plain


def near(word: str, there: "Iterable[str]") -> str:
    """What may have been meant, as the end of a sentence."""
    from difflib import get_close_matches

    found = get_close_matches(word.partition("=")[0], list(there), n=2)
    return f" (did you mean {' or '.join(found)}?)" if found else ""
