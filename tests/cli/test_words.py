"""How a command is read: verbs, options, values, and what is said about those that do not exist."""

import json
import re
from collections import defaultdict

import pytest

from accord import __version__
from accord.cli.run import GROUPS, VERBS, find_verb
from accord.cli.words import FLAG
from tests.cli.users import User
from tests.often import some_of

ANN_TO_BEN = ("send", "--from", "ann", "--to", "ben")


def helps(user: User) -> dict[str, str]:
    found = {verb: user.run(*verb.split(), "--help") for verb in VERBS}
    assert all(done.code == 0 and not done.err for done in found.values())
    return {verb: done.out for verb, done in found.items()}


@pytest.mark.covers("T2.1")
def test_one_placeholder_per_thing(user: User) -> None:
    placeholders = defaultdict(set)
    for name, text in helps(user).items():
        for option, word in re.findall(r"^  (--[a-z-]+) ([A-Z][A-Z.]*)", text, re.MULTILINE):
            if name != "migrate":  # which goes from a store to a store
                placeholders[option].add(word.removesuffix("..."))
        used = set(re.findall(r"\b[A-Z]{2,}\b", text.partition("\n")[0]))
        explained = set(re.findall(r"^  --[a-z-]* ([A-Z]+)", text, re.MULTILINE))
        assert used - {"OPTION"} <= explained, f"in the usage, and nowhere explained: {text}"
    assert {option: words for option, words in placeholders.items() if len(words) > 1} == {}
    assert placeholders["--to"] == placeholders["--from"] == placeholders["--identity"] == {"NAME"}
    assert placeholders["--message-file"] == {"PATH"}
    assert len(placeholders) >= 12


@pytest.mark.covers("T2.1", "I6")
def test_help_names_all_that_a_verb_takes(user: User) -> None:
    texts = helps(user)
    for name, text in texts.items():
        verb = find_verb(name)
        kinds = verb.kinds()
        for option, param in verb.options().items():
            shape = rf"^  (-., )?{option}( |$)" if kinds[param] == FLAG else rf"^  {option} [A-Z]+"
            assert re.search(shape, text, re.MULTILINE), f"{name}: {option}\n{text}"
        assert all(line == line.rstrip() for line in text.splitlines()), text
    for name in ("send", "channel join", "hub keys make"):
        assert texts[name] == user.run("--help", *name.split()).out == user.run(*name.split(), "-h").out


def test_a_message_without_its_options(user: User) -> None:
    done = user.run("send", "ben", "hello")
    assert (done.code, done.error) == (2, "USAGE")
    assert "write: accord send --to NAME --message TEXT" in done.err


@pytest.mark.covers("T2.3")
@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--message", "a", "--message-file", "file"],
        ["--message", "a", "-"],
        ["--message-file", "file", "-"],
        ["--message", "a", "--message-file", "file", "-"],
        ["--message", "", "--message-file", ""],
    ],
    ids=" ".join,
)
def test_a_message_comes_from_one_place(given: list[str], ann: User) -> None:
    (ann.work / "file").write_text("from a file")
    done = ann.run(*ANN_TO_BEN, *given, stdin=b"from standard input")
    assert (done.code, done.out, done.error) == (2, "", "USAGE")
    for word in ("--message TEXT", "--message-file PATH", "-", "standard input", "more than one" if given else "none"):
        assert word in done.err
    assert ann.json("check", "ben")["messages"] == []


@pytest.mark.covers("T2.3")
def test_each_place_that_a_message_may_come_from(ann: User) -> None:
    (ann.work / "file").write_text("from a file")
    ann.json(*ANN_TO_BEN, "--message", "from the command")
    ann.json(*ANN_TO_BEN, "--message-file", "file")
    assert ann.run(*ANN_TO_BEN, "-", stdin=b"from standard input").code == 0
    assert ann.run(*ANN_TO_BEN, "--message-file", "/dev/stdin", stdin=b"from a pipe with a name").code == 0
    found = [message["message"] for message in ann.json("check", "ben")["messages"]]
    assert found == ["from the command", "from a file", "from standard input", "from a pipe with a name"]


@pytest.mark.covers("T2.3")
def test_the_same_option_twice_is_refused(ann: User) -> None:
    done = ann.run(*ANN_TO_BEN, "--message", "a", "--message", "b")
    assert (done.code, done.error) == (2, "USAGE")
    assert "--message is given twice" in done.err


@pytest.mark.covers("T2.4")
def test_without_a_verb_there_is_help(user: User) -> None:
    for group in ["", *GROUPS]:
        for words in ([], ["--json"], ["-v"]):
            done = user.run(*words, *group.split())
            assert (done.code, done.err) == (1, "")
            assert done.out.startswith("usage: accord ")
            for verb in VERBS:
                if not group or verb.startswith(f"{group} "):
                    assert re.search(rf"^  {verb} ", done.out, re.MULTILINE)
    assert not user.home.exists()


@pytest.mark.covers("T4.1")
def test_the_version_everywhere(user: User) -> None:
    verbs = [verb.split() for verb in ("", *GROUPS, *VERBS)]
    commands = [words for verb in verbs for words in (["--version", *verb], [*verb, "--version"])]
    for at in some_of(len(commands)):
        assert user.run(*commands[at]) == (0, f"accord {__version__}\n", ""), commands[at]
    found = user.json("send", "--version")
    assert found == {"status": "ok", "version": __version__}
    assert not user.home.exists()


@pytest.mark.parametrize(
    ("words", "wrong", "meant"),
    [
        (["chek"], "chek", "check"),
        (["registr", "ann"], "registr", "register"),
        (["channel", "jion"], "channel jion", "channel join"),
        (["--jsno", "discover"], "--jsno", "--json"),
        (["--hoem=/x", "discover"], "--hoem", "--home"),
        (["discover", "--jsno"], "--jsno", "--json"),
        (["check", "--limt", "3"], "--limt", "--limit"),
        (["check", "--limt=3"], "--limt", "--limit"),
        (["send", "--mesage", "x"], "--mesage", "--message"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_near_matches(words: list[str], wrong: str, meant: str, user: User) -> None:
    done = user.run(*words)
    assert (done.code, done.out, done.error) == (2, "", "USAGE")
    assert wrong in done.err
    assert re.search(rf"did you mean (\S+ or )?{meant}\b", done.err), done.err
    assert "--help" in done.err
    assert not user.home.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["qqqqqq"], ["-"], ["-x"], ["--"], [""], ["--=x"], ["channel", "qqqqqq"], ["discover", "-x"],
        ["discover", "extra"], ["channel", "--qqqqqq"],
        ["check", "a", "b"], ["send", "--to"], ["--home"], ["discover", "--home"], ["--json=1", "discover"],
        ["check", "ann", "--peek=1"], ["check", "ann", "--limit", "0"], ["check", "ann", "--limit=-1"],
        ["check", "ann", "--wait", "nan"], ["check", "ann", "--wait", "inf"], ["check", "ann", "--wait", "-1"],
        ["send", "--type", "gossip", "--from", "a", "--to", "b", "--message", "c"], ["search"], ["ack"], ["register"],
        ["unregister"], ["channel", "join"], ["engage"], ["trust"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_no_command_is_a_usage_error(words: list[str], user: User) -> None:
    """Who asks for JSON gets it, wherever `--json` stands."""
    agent = {"ACCORD_AGENT": "ann"}
    if words[0] in ("engage", "trust"):
        agent = {}
    done = user.run(*words, env=agent)
    assert (done.code, done.out, done.error) == (2, "", "USAGE"), done
    asked = user.run("--json", *words, env=agent)
    assert (asked.code, asked.error, asked.err) == (2, "USAGE", "")
    assert set(asked.json) == {"status", "error_code", "error_message", "details"}
    assert asked.json["status"] == "error"
    if words[-1] not in ("--to", "--home", "--"):
        assert user.run(*words, "--json", env=agent).error == "USAGE"


def test_a_usage_error_points_to_what_there_is_to_read(ann: User) -> None:
    """To help for the verb, or to a page that exists."""
    for words in (["check", "ann", "--limit", "0"], ["search"], ["ack", "--identity", "ann"], ["check", "ann", "--x"]):
        done = ann.run(*words)
        assert re.search(r"Read: accord [a-z ]*--help", done.err), done.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["lock", "acquire", "x", "--owner", "a b"], "--owner"),
        (["doc", "write", "x", "--text", "y", "--keep-ttl", "--ttl", "soon"], "--ttl"),
        (["send", "--from", "ann", "--to", "ben", "--message", "x", "--type", "shout"], "--type"),
        (["lock", "release", "x", "--owner", "a", "--token", "one"], "--token"),
    ],
)
def test_a_usage_error_names_what_was_typed(words: list[str], option: str, user: User) -> None:
    done = user.run(*words)
    assert (done.code, done.error) == (2, "USAGE")
    assert done.err.startswith(f"accord: {option} "), done.err


def test_options_stand_anywhere(ann: User) -> None:
    other = str(ann.folder / "other")
    ann.json("--home", other, "register", "zoe")
    for words in (
        ["--home", other, "--json", "discover"],
        ["--json", "discover", "--home", other],
        ["discover", f"--home={other}", "--json"],
        [f"--home={other}", "discover", "--json"],
    ):
        done = ann.run(*words)
        assert [found["identity"] for found in done.json["identities"]] == ["human", "zoe"]
    ann.json("send", "--message=a=b", "--to=ben", "--from=ann", "--to", "ann")
    for words in (
        ["check", "ben", "--peek", "--limit=1"],
        ["check", "--limit", "1", "--peek", "ben"],
        ["check", "--peek", "--identity=ben"],
    ):
        assert [message["message"] for message in ann.json(*words)["messages"]] == ["a=b"]


def test_an_option_between_a_group_and_its_verb(ann: User) -> None:
    """It works, or is refused; it does not turn the command into a question for help."""
    done = ann.run("channel", "--json", "list")
    assert done.code == 2 or done.json["channels"] == []


def test_words_that_look_like_options(ann: User) -> None:
    """They are values after `=`, and plain words after `--`; where they may be meant as options it is asked."""
    done = ann.run(*ANN_TO_BEN, "--message", "--json")
    assert (done.code, done.error) == (2, "USAGE")
    assert "--message=--json" in done.out + done.err
    ann.json(*ANN_TO_BEN, "--message=--json")
    ann.json(*ANN_TO_BEN, "--message=--help")
    assert [message["message"] for message in ann.json("check", "ben")["messages"]] == ["--json", "--help"]
    for word in ("--help", "-x", "--version", "--"):
        done = ann.run("register", "--", word)
        assert (done.code, done.error) == (65, "INVALID_IDENTITY")
    assert len(ann.json("search", "--", "--help")["messages"]) == 1
    assert ann.run("halt", "--", "--json", "--because").code == 0
    assert ann.json("discover")["halted"] == "--json --because"


def test_an_error_after_the_end_of_options_is_for_people(ann: User) -> None:
    done = ann.run("register", "--", "--json", "more")
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize("words", [["check", ""], ["check", "--identity", ""], ["--home", "", "discover"]], ids=str)
def test_an_empty_value_is_not_a_missing_one(words: list[str], ann: User) -> None:
    """A script whose variable is not set must not act as somebody else, nor in another home."""
    done = ann.run(*words, env={"ACCORD_AGENT": "ann"})
    assert done.code in (2, 65), done


def test_errors_for_people_and_for_programs(ann: User) -> None:
    people = ann.run("send", "--from", "ann", "--to", "bem", "--message", "x")
    programs = ann.run("--json", "send", "--from", "ann", "--to", "bem", "--message", "x")
    assert (people.code, people.out) == (67, "")
    assert (programs.code, programs.err) == (67, "")
    found = json.loads(programs.out)
    assert found["error_message"] in people.err
    assert found["error_code"] == "RECIPIENT_NEVER_REGISTERED"
    assert found["details"]["names"] == "bem"


@pytest.mark.covers("T2.1")
def test_an_agent_is_named_by_the_option_wherever_by_a_word(ann: User) -> None:
    ann.json(*ANN_TO_BEN, "--message", "hello")
    for words in (["sent", "--identity", "ann"], ["sent", "--identity=ann", "--limit", "1"]):
        assert len(ann.json(*words)["messages"]) == 1
    assert ann.json("engage", "--identity", "ann", "--identity", "ben")["engaged"] == []
    assert ann.json("check", "--identity", "ben")["identity"] == "ben"
    assert ann.json("register", "--identity", "zoe")["identity"] == "zoe"
    assert ann.run("sent", "ann", "--identity", "ben").error == "USAGE"


@pytest.mark.covers("T2.1")
def test_help_has_one_placeholder_for_each_thing(user: User) -> None:
    """And brackets around what need not be given."""
    usages = {
        "check": "[NAME] [--limit N]",
        "sent": "[NAME]",
        "ack": "ID... [--identity NAME]",
        "channel join": "CHANNEL [--identity NAME]",
        "channel leave": "CHANNEL [--identity NAME]",
        "lock acquire": "NAME [--owner LABEL]",
        "task claim": "ID [--agent LABEL]",
        "register": "NAME [--force] [--resume] [--project DIR]",
        "reserve add": "GLOB... [--project DIR]",
        "reserve release": "(GLOB... | --all) [--owner LABEL] [--project DIR]",
        "doc export": "DIR",
        "init": "[--group GROUP]",
        "subscribe": "CHANNEL [--since TEXT | --after NUMBER] [--exec COMMAND]",
        "listen": "[NAME] [--exec COMMAND]",
    }
    for verb, usage in usages.items():
        shown = user.run(*verb.split(), "--help").out
        assert shown.startswith(f"usage: accord {verb} {usage}"), shown
        assert "  --engine ENGINE:PLACE  " in shown


@pytest.mark.covers("T1.6")
def test_what_is_acknowledged_is_counted_once(ann: User) -> None:
    id = ann.json(*ANN_TO_BEN, "--message", "hello")["message_id"]
    assert ann.run("ack", "--identity", "ben", id, id.upper(), id).out == "acknowledged 1\n"


def test_the_demo_for_a_program(user: User) -> None:
    found = user.json("demo")
    assert found.pop("took_s") > 0
    assert found == {"status": "ok", "tasks": 6, "answered": 6, "each_once": True}
