"""Write what is made from the code: pages of docs/, and the typed methods of the Python API: `make reference`."""

import subprocess
import sys
from pathlib import Path

# Started as a file, Python looks for modules in tools/ alone.
sys.path.insert(0, str(Path(__file__).parent.parent))

from accord.cli import help
from accord.cli.run import VERBS, find_verb
from accord.errors import AccordError, table
from accord.operations import NAMES, find, parameters
from accord.operations.schema import WORDS
from accord.settings import SETTINGS
from accord.settings.engine import KEYS, Key
from tools import results
from tools.api import groups_module

ROOT = Path(__file__).parent.parent

ERRORS_INTRO = """\
# Errors

Made from `src/accord/errors/table.py` by `make reference`. Programs compare the code; the text says what happened and
what to do, and what stands in braces is also in the error's `details`.

| code | Python | exit | HTTP | JSON-RPC | text |
| --- | --- | --- | --- | --- | --- |
"""

OPERATIONS_INTRO = """\
# Operations

Made from `src/accord/operations/` by `make reference`. Each is one function, reached under one name: from Python
(`accord.open().mail.send(...)`), and as a method of [JSON-RPC](rpc.md), whose `method` is what stands in the first
column and whose `params` are the parameters by these names. Verbs of the [command line](cli.md) call them too.
*operator*: agents may not. *halted*: refused while everything is halted. *own process*: no method of JSON-RPC.
What they give has the fields that stand [below](#what-they-give).

| operation | what it does | parameters | gives | |
| --- | --- | --- | --- | --- |
"""

SETTINGS_INTRO = """\
# Settings

Made from `src/accord/settings/` by `make reference`. A value comes from the first of these that has one: a flag, the
variable, the project's `accord.yml` (the nearest one upwards from the working directory), the home's `accord.yml`, the
default. `accord config` shows what is in force and where it comes from. *trust*: a project may set it only after
`accord trust PATH`, and again after each change of the file.

| setting | variable | default | what | |
| --- | --- | --- | --- | --- |
"""

COMMUNICATION_INTRO = """
## communication

Instead of `engine` a file may name a backend (`file` or `files`, `sqlite`, `redis`, `rediss`, `etcd`, `firebase` or
`memory`) as `communication.backend`, with what it needs below `communication.settings`:
[how to](how-to/settings.md#an-engine-piece-by-piece). A variable comes before the files. What is for an engine that is
not the one in force has no effect. *trust*: as above.

| setting | variable | default | for | what | |
| --- | --- | --- | --- | --- | --- |
| `backend` | `$COMMUNICATION_BACKEND` | | | the engine | trust |
"""

CLI_INTRO = """\
# The command line

Made from the verbs by `make reference`; `accord VERB --help` shows the same.

"""


def errors_page() -> str:
    rows = [
        f"| `{error.code}` | `{error.__name__}` | {error.exit} | {error.http} | {error.rpc} | {error.text} |"
        for error in all_errors()
    ]
    return ERRORS_INTRO + "\n".join(rows) + "\n"


def all_errors() -> list[type[AccordError]]:
    found = [value for value in vars(table).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, AccordError)]


def operations_page() -> str:
    rows = [_operation_row(f"{group}.{name}") for group in NAMES for name in NAMES[group]]
    return OPERATIONS_INTRO + "".join(rows) + results.section()


def _operation_row(name: str) -> str:
    function = find(name)
    words = [
        f"`{param}`{f' {WORDS[kind]}' if WORDS[kind] else ''}{'' if required else '?'}"
        for param, (kind, required) in parameters(function).items()
    ]
    notes = [
        note
        for note, holds in (
            ("operator", function.right == "operator"),  # type: ignore[attr-defined]
            ("halted", function.halts),  # type: ignore[attr-defined]
            ("a step", function.step),  # type: ignore[attr-defined]
            ("own process", function.here),  # type: ignore[attr-defined]
        )
        if holds
    ]
    doc = (function.__doc__ or "").strip().replace("\n", " ")
    return f"| `{name}` | {doc} | {', '.join(words)} | `{results.name_of(name)}` | {', '.join(notes)} |\n"


def settings_page() -> str:
    rows = [
        f"| `{name}` | `$ACCORD_{name.upper()}` | {f'`{setting.default}`' if setting.default else ''} | {setting.help} "
        f"| {'trust' if setting.trust else ''} |\n"
        for name, setting in SETTINGS.items()
    ]
    return SETTINGS_INTRO + "".join(rows) + COMMUNICATION_INTRO + "".join(map(_key_row, KEYS.items()))


def _key_row(item: tuple[str, Key]) -> str:
    name, key = item
    default = key.default[0] if isinstance(key.default, list) else key.default
    shown = f"`{default}`" if default not in (None, "") else ""
    variable = f"`${key.variable}`" if key.variable else ""
    what = f"the same as `{key.same_as}`" if key.same_as else key.help if key.engines else f"has no effect: {key.help}"
    engines = ", ".join(f"`{engine}`" for engine in key.engines)
    return f"| `{name}` | {variable} | {shown} | {engines} | {what} | {'trust' if key.engines else ''} |\n"


def cli_page() -> str:
    parts = [
        f"## accord {name}\n\n```\n{help.of_verb(name, find_verb(name)).partition(help.GLOBALS)[0]}```\n"
        for name in VERBS
    ]
    return CLI_INTRO + f"```\n{help.GLOBALS.strip()}\n```\n\n" + "\n".join(parts)


def api_module() -> str:
    """As `ruff` formats it."""
    command = [sys.executable, "-m", "ruff", "format", "--line-length", "120", "-"]
    return subprocess.run(command, input=groups_module(), capture_output=True, text=True, check=True).stdout


PAGES = {
    "docs/errors.md": errors_page,
    "docs/operations.md": operations_page,
    "docs/settings.md": settings_page,
    "docs/cli.md": cli_page,
    "src/accord/api/groups.py": api_module,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page())
