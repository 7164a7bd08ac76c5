"""TAB in real shells."""

import subprocess
from pathlib import Path

import pytest

from accord.cli.run import GROUPS, VERBS
from accord.cli.words import GLOBALS
from accord.model import MESSAGE_TYPES
from tests.cli.users import User, contents
from tests.need import need

pytestmark = pytest.mark.covers("I6")

FIRST_WORDS = {verb.partition(" ")[0] for verb in VERBS}


def bash(user: User, *words: str) -> set[str]:
    """What bash offers for the last word of a command, having split it as bash does."""
    program = """
        set -u
        eval "$(accord completion bash)"
        [[ $(complete -p accord) == "complete -F _accord accord" ]] || exit 9
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        last=${COMP_WORDS[COMP_CWORD]}
        _accord accord "${last#=}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
    """
    shell = (need("bash"), "--norc", "--noprofile", "-c", program, "bash", "accord")
    done = user.run(*words, command=shell)
    assert (done.code, done.err) == (0, ""), done
    return set(done.out.split("\n")) - {""}


# After a command and a TAB, Control-T writes what the line has become to a file.
ZSH = """
zmodload zsh/zpty
zpty shell "PS1= zsh -f -i"
zpty -w shell 'autoload -Uz compinit; compinit -D -u; eval "$(accord completion zsh)"'
zpty -w shell 'note() { print -r -- "$BUFFER" >>$HOME/lines; BUFFER=; }; zle -N note; bindkey "^T" note'
zpty -w shell 'setopt nolistbeep; LISTMAX=999; print -r ready >>$HOME/lines'
until [[ -s $HOME/lines ]]; do zpty -t shell || exit 8; zpty -r -t shell seen; sleep 0.01; done
for line; do
    before=$(wc -l <$HOME/lines)
    zpty -w -n shell $line$'\\t\\C-t'
    until (( $(wc -l <$HOME/lines) > before )); do zpty -r -t shell seen; sleep 0.01; done
done
zpty -d shell
"""


def zsh(user: User, *lines: str) -> list[str]:
    """What a TAB makes of each command, in an interactive zsh."""
    done = user.run(*lines, command=(need("zsh"), "-f", "-c", ZSH, "zsh"))
    assert (done.code, done.err) == (0, ""), done
    return (user.folder / "lines").read_text().splitlines()[1:]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([""], FIRST_WORDS),
        (["--json", ""], FIRST_WORDS),
        (["c"], {word for word in FIRST_WORDS if word.startswith("c")}),
        (["channel", ""], {"join", "leave", "list"}),
        (["--"], set(GLOBALS)),
        (["--json", "--"], set(GLOBALS) - {"--json"}),
        (["send", "--t"], {"--to", "--type"}),
        (["check", "ann", "--"], {"--limit", "--peek", "--wait", *GLOBALS}),
        (["send", "--to", ""], {"ann", "ben", "human", "all"}),
        (["send", "--to", "ann", "--to", "b"], {"ben"}),
        (["send", "--to", "=", "a"], {"ann", "all"}),
        (["send", "--to", "="], {"ann", "ben", "human", "all"}),
        (["send", "--from", "b"], {"ben"}),
        (["check", ""], {"ann", "ben", "human"}),
        (["check", "--identity", "a"], {"ann"}),
        (["send", "--type", ""], set(MESSAGE_TYPES)),
        (["send", "--channel", ""], {"builds"}),
        (["channel", "join", ""], {"builds"}),
        (["send", "--message-file", "./n"], {"./notes.txt"}),
        (["--home", "no"], {"notes.txt"}),
        (["trust", "./"], {"./notes.txt", "./sub"}),
        (["reserve", "add", "./n"], {"./notes.txt"}),
        (["lock", "run", "build", "--", "sh", "./n"], {"./notes.txt"}),
        # Nothing fits:
        (["send", "--message", ""], set()),
        (["send", "--to", "-"], set()),
        (["halt", "--", "--"], set()),
        (["discover", ""], set()),
        (["check", "ann", ""], set()),
        (["no-such-verb", ""], set()),
        (["no-such-verb", "--"], set()),
        (["send", "--no-such-option", ""], set()),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_bash(words: list[str], expected: set[str], words_user: User) -> None:
    assert bash(words_user, *words) == expected


@pytest.fixture
def words_user(ann: User) -> User:
    ann.json("channel", "join", "builds", "--identity", "ann")
    (ann.work / "notes.txt").touch()
    (ann.work / "sub").mkdir()
    return ann


def test_zsh(words_user: User) -> None:
    expected = {
        "accord disc": "accord discover ",
        "accord channel le": "accord channel leave ",
        "accord send --fr": "accord send --from ",
        "accord send --to an": "accord send --to ann ",
        "accord send --to=be": "accord send --to=ben ",
        "accord send --type=pu": "accord send --type=pushback ",
        "accord check --json hu": "accord check --json human ",
        "accord channel leave ": "accord channel leave builds ",
        "accord send --message-file no": "accord send --message-file notes.txt ",
        "accord trust ./su": "accord trust ./sub/",
        "accord send --message ": "accord send --message ",
    }
    assert dict(zip(expected, zsh(words_user, *expected), strict=True)) == expected


def test_zsh_takes_it_as_a_file_too(words_user: User) -> None:
    folder = words_user.folder / "functions"
    folder.mkdir()
    (folder / "_accord").write_text(words_user.run("completion", "zsh").out)
    program = f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -D -u; print $_comps[accord]"
    done = words_user.run(command=(need("zsh"), "-f", "-c", program))
    assert done == (0, "_accord\n", "")


def test_a_home_that_the_command_names_is_asked(words_user: User) -> None:
    other = words_user.folder / "other"
    words_user.json("--home", str(other), "register", "zoe")
    assert bash(words_user, "--home", str(other), "send", "--to", "") == {"zoe", "human", "all"}


def test_asking_makes_nothing_and_says_nothing(user: User) -> None:
    assert bash(user, "send", "--to", "") == set()
    assert not user.home.exists()
    user.home.mkdir(mode=0o700)
    assert bash(user, "send", "--to", "") == set()
    assert contents(user.home) == {}
    user.home.rmdir()
    user.home.write_text("no folder")
    assert bash(user, "send", "--to", "") == set()


def test_what_is_asked_may_be_anything(ann: User) -> None:
    for asked in (b"", b"\0", b"\0" * 1000, b"\xff\xfe\0\x1b[31m\0", b"send\0" * 10_000, b"\0".join([b"--to="] * 99)):
        done = ann.run("completion", "zsh", "-", stdin=asked)
        assert (done.code, done.err) == (0, ""), done
        assert done.out.isprintable() or set(done.out.split()) <= {*FIRST_WORDS, *GLOBALS}


def test_each_group_and_verb_can_be_asked_for(ann: User) -> None:
    for group in GROUPS:
        after = {verb.removeprefix(f"{group} ") for verb in VERBS if verb.startswith(f"{group} ")}
        assert bash(ann, *group.split(), "") == {word.partition(" ")[0] for word in after}


def test_json(user: User) -> None:
    assert user.json("completion", "bash")["script"] == user.run("completion", "bash").out
    found = user.run("--json", "completion", "zsh", "-", stdin=b"chec\0").json
    assert found == {"status": "ok", "candidates": ["check"]}


def test_the_scripts_are_right_for_their_shells(user: User, tmp_path: Path) -> None:
    for shell in ("bash", "zsh"):
        script = tmp_path / shell
        script.write_text(user.run("completion", shell).out)
        checked = subprocess.run([need(shell), "-n", script], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")
