"""Help, made from the operations and the verbs."""

from accord.cli.run import VERBS, find_verb
from accord.cli.words import DASH, FLAG, LISTS, REST, SHORT, Verb
from accord.operations import find, parameters
from accord.operations.schema import HELP, WORDS

_INTRO = """\
usage: accord VERB ...

Agents and their people talk, share state and share work without races.

"""
GLOBALS = """\

everywhere:
  --home DIR             the home, instead of $ACCORD_HOME or ~/.accord
  --engine ENGINE:PLACE  the store, instead of $ACCORD_ENGINE or the one in the home
  --hub-port PORT        refuse a hub with another port; for what starts one, the port it is to have
  --no-start             start no hub, whatever needs one
  --json                 print one JSON object, errors too
  -v, --verbose          show where an error comes from
  -h, --help             show this, or the help of a verb
  --version              show the version
"""


def overview(group: str) -> str:
    names = [name for name in VERBS if not group or name.startswith(f"{group} ")]
    width = max(len(name) for name in names)
    lines = [f"  {name.ljust(width)}  {first_line(find_verb(name))}\n" for name in names]
    return _INTRO.replace("VERB", f"{group} VERB" if group else "VERB") + "verbs:\n" + "".join(lines) + GLOBALS


def of_verb(name: str, verb: Verb) -> str:
    lines = [f"usage: accord {name} {usage(verb)}".rstrip(), "", verb.help, ""]
    options = verb.options()
    options.update([("--", param) for param, kind in verb.kinds().items() if kind == REST])
    if options:
        words = {
            option: f"{_short(option)}{option} {word_for(verb, param)}".rstrip() for option, param in options.items()
        }
        width = max(len(word) for word in words.values())
        lines += ["options:"]
        lines += [f"  {words[option].ljust(width)}{_note(verb, param)}".rstrip() for option, param in options.items()]
    return "\n".join(lines) + "\n" + GLOBALS


def usage(verb: Verb) -> str:
    """What may follow the verb."""
    if verb.usage:
        return verb.usage
    required = {name for name, (_, needed) in _parameters(verb).items() if needed} - {*verb.mine}
    plain = [word_for(verb, param) if param in required else f"[{word_for(verb, param)}]" for param in verb.positional]
    options = [
        f"{option} {word_for(verb, param)}".rstrip() if param in required else f"[{option} {word_for(verb, param)}]"
        for option, param in verb.options().items()
        if param not in verb.positional
    ]
    return " ".join([*plain, *[word.replace(" ]", "]") for word in options]])


def word_for(verb: Verb, param: str) -> str:
    """What stands for a value in help."""
    kind = verb.kinds()[param]
    if kind == DASH:
        return "-"
    if kind == FLAG:
        return ""
    return WORDS[kind] if kind in WORDS else f"{param.upper()}{'...' if kind in (*LISTS, REST) else ''}"


def first_line(verb: Verb) -> str:
    return verb.help.splitlines()[0]


def _parameters(verb: Verb) -> dict[str, tuple[str, bool]]:
    return parameters(find(verb.operation)) if verb.operation else {}


def _short(option: str) -> str:
    """The letter that stands for an option, where there is one."""
    return "".join(f"{letter}, " for letter, long in SHORT.items() if long == option)


def _note(verb: Verb, param: str) -> str:
    defaults = (find(verb.operation).__kwdefaults__ or {}) if verb.operation else {}
    default = defaults.get(param)
    note = verb.notes.get(param) or HELP[param]
    return f"  {note} (default {default})" if default else f"  {note}"
