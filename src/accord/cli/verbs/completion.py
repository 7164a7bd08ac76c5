"""completion bash, completion zsh."""

from accord.cli.words import DASH, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from accord.cli.run import Line

# Both hand over the words up to the cursor, each ended by a NUL, and get candidates, each on a line.
_BASH = """\
_accord() {
    local IFS=$'\\n'
    COMPREPLY=($(printf '%s\\0' "${COMP_WORDS[@]:1:COMP_CWORD}" | "$1" completion bash - 2>/dev/null))
    if [ "${COMPREPLY[0]-}" = / ]; then
        COMPREPLY=($(compgen -f -- "$2"))
        compopt -o filenames 2>/dev/null
    fi
}
complete -F _accord accord
"""
_ZSH = """\
#compdef accord
_accord() {
    local -a found
    found=(${(f)"$(printf '%s\\0' "${(@)words[2,CURRENT]}" | $words[1] completion zsh - 2>/dev/null)"})
    [[ $words[CURRENT] == --*=* ]] && compset -P '*='
    if [[ $found[1] == / ]]; then _files; else compadd -a found; fi
}
if [[ $funcstack[1] == _accord ]]; then _accord; else compdef _accord accord; fi
"""

_MOST_BYTES = 1 << 20


def bash(line: "Line", words: "dict[str, Any]") -> None:
    if "stdin" in words:
        _answer(line, _rejoined(_asked(line)))
    else:
        line.answer({"script": _BASH}, lambda: _BASH)


def zsh(line: "Line", words: "dict[str, Any]") -> None:
    if "stdin" in words:
        _answer(line, _asked(line))
    else:
        line.answer({"script": _ZSH}, lambda: _ZSH)


def _asked(line: "Line") -> list[str]:
    text = line.io.read_input(_MOST_BYTES).decode("utf-8", "replace")
    return text.removesuffix("\0").split("\0")


def _rejoined(words: list[str]) -> list[str]:
    """Bash hands over `--to=ann` as three words."""
    joined: list[str] = []
    for word in words:
        if joined and (word == "=" or joined[-1].endswith("=")) and joined[-1].startswith("--"):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _answer(line: "Line", words: list[str]) -> None:
    from accord.cli.complete import candidates

    found = candidates(words, line.io)
    line.answer({"candidates": found}, lambda: "".join(f"{word}\n" for word in found))


def _verb(shell: str, run: "Callable[[Line, dict[str, Any]], None]", where: str) -> Verb:
    return Verb(
        run,
        positional=("stdin",),
        extra={"stdin": DASH},
        help=f"Print what makes TAB complete commands in {shell}.\n\n"
        f'Put this into {where}: eval "$(accord completion {shell})"\n'
        "With -, answer it: the words of the command come on standard input, each ended by a NUL.",
    )


VERBS = {
    "completion bash": _verb("bash", bash, "~/.bashrc"),
    "completion zsh": _verb("zsh", zsh, "~/.zshrc, below compinit"),
}
