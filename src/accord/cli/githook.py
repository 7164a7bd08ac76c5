"""The block that `reserve install-hook` puts into git's pre-commit hook, and takes out again."""

import os
import stat
import subprocess

from accord import errors

LINE = "accord reserve check --staged"

# Others work on it, or whoever commits was named wrongly. What else fails is no reason to keep anybody from committing.
_STOP = (errors.CommitStopped.exit, errors.Usage.exit, errors.InvalidIdentity.exit)

_BEGIN = "# accord: reserved files (accord reserve install-hook --remove takes this out)\n"
_END = "# accord: end\n"
_BLOCK = f"""{_BEGIN}\
if command -v accord >/dev/null 2>&1; then
    {LINE} || case $? in
        {" | ".join(map(str, _STOP))}) exit 1 ;;
        *) echo 'accord: reservations were not checked' >&2 ;;
    esac
else
    echo 'accord is not on the PATH: reservations were not checked' >&2
fi
{_END}"""
_NEW = "#!/bin/sh\n"
_SHELLS = ("sh", "ash", "bash", "dash", "ksh", "zsh")


def git(folder: str, *words: str) -> bytes:
    """What a command of git prints."""
    try:
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, check=False)  # noqa: S607
    except OSError as error:
        raise errors.CommandNotFound(command="git", reason=error.strerror) from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").partition("\n")[0].removeprefix("fatal: ")
        raise errors.FileUnreadable(path=folder, reason=reason or f"git ended with {done.returncode}")
    return done.stdout


def staged(folder: str) -> list[str]:
    """The files that a commit would change, relative to the top of the work tree; both names of one that is renamed."""
    git(folder, "rev-parse", "--show-toplevel")  # which says it better where there is none
    found = git(folder, "diff", "--cached", "--name-only", "--no-renames", "--no-relative", "-z")
    return [name.decode(errors="replace") for name in found.split(b"\0") if name]


def hook_path(folder: str) -> str:
    """Where git looks for the hook: in the repository, or wherever core.hooksPath says."""
    hooks = os.fsdecode(git(folder, "rev-parse", "--git-path", "hooks").removesuffix(b"\n"))
    return os.path.realpath(os.path.join(folder, hooks, "pre-commit"))


def install(path: str) -> bool:
    """Put the block at the beginning of the hook; whether that changed anything."""
    there = _read(path)
    if not there:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _write(path, _NEW + _BLOCK, 0o755)
        return True
    _check(path, there)
    shebang, _, rest = _without_block(there).partition("\n")
    text = f"{shebang}\n{_BLOCK}{rest}"
    if text != there:
        _write(path, text, stat.S_IMODE(os.stat(path).st_mode))
    return text != there


def remove(path: str) -> bool:
    """Take the block out, and the hook with it if that was all; whether it was there."""
    there = _read(path)
    text = _without_block(there)
    if text == there:
        return False
    if text == _NEW:
        os.unlink(path)
    else:
        _write(path, text, stat.S_IMODE(os.stat(path).st_mode))
    return True


def _check(path: str, text: str) -> None:
    """Only what a shell reads, and git runs, is changed."""
    reason = ""
    first = text.partition("\n")[0]
    programs = [os.path.basename(word) for word in first.removeprefix("#!").split()]
    if not first.startswith("#!") or not set(programs).intersection(_SHELLS):
        reason = "is no shell script"
    elif not os.access(path, os.X_OK):
        reason = "may not be run"
    if reason:
        raise errors.HookForeign(path=path, reason=reason, line=LINE, stop=errors.CommitStopped.exit)


def _without_block(text: str) -> str:
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    return before + after if begin and end else text


def _read(path: str) -> str:
    """The hook; "" when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise errors.FileUnreadable(path=path, reason=error.strerror) from None


def _write(path: str, text: str, mode: int) -> None:
    """All of it or nothing, as git may run it at any time."""
    new = f"{path}.accord-{os.getpid()}"
    try:
        with open(new, "x", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
        os.chmod(new, mode)
        os.replace(new, path)
    except OSError as error:
        raise errors.DataDirError(path=path, errno=error.errno, reason=error.strerror) from None
