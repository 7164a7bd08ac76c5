"""Imports go downwards only, and what a hot command needs imports nothing heavy."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "accord"

# Bottom to top. A name stands for the module, or for the folder and everything in it. A module imports
# from its own layer and from those below.
LAYERS = [
    {"errors", "platform", "jsontext", "place", "proof", "cipherkey"},
    {"store.contract", "store.names", "store.pages", "store.protocols"},
    {"store.local", "store.remote"},
    {"store.engines", "store.transaction", "store.wrap"},
    {"store.open"},
    {"model", "client"},
    {"home", "settings", "services"},
    {"operations"},
    {"api"},
    {"demo", "measure"},
    {"brains", "install", "runner", "wake", "peers"},
    {"hub"},
    {"cli"},
    {"doors"},  # above the commands, since one of them runs these
    {"daemon"},
    {"__main__"},
]
HEIGHT = {part: height for height, layer in enumerate(LAYERS) for part in layer}

# Outside the layers: they may import everything below `cli`, and nobody imports them.
BESIDE = {"testing"}
HEIGHT |= dict.fromkeys(BESIDE, HEIGHT["cli"] - 1)

# Of one layer, and still strangers: an engine is one of several, and what is not an engine knows none.
STRANGERS = {
    ("store.engines", "store.engines"),
    ("store.transaction", "store.engines"),
    ("store.wrap", "store.engines"),
}

# One engine, and the same over TLS.
SAME = {("store.engines.rediss", "store.engines.redis")}

# Folders whose parts lie in several layers; their own `__init__` imports nothing of accord.
FOLDERS = {"store"}

# Costly to import: more than a durable send takes.
HEAVY = {
    "argparse", "asyncio", "collections", "contextlib", "ctypes", "dataclasses", "datetime", "enum",
    "functools", "hashlib", "inspect", "json", "logging", "pathlib", "random", "re", "subprocess",
    "tempfile", "threading", "typing", "uuid", "yaml",
}  # fmt: skip


def test_imports_go_downwards_only() -> None:
    modules = {name_of(path): path for path in SOURCE.rglob("*.py")}
    assert modules, f"no sources in {SOURCE}"
    wrong = [
        sentence
        for name, path in sorted(modules.items())
        for sentence in faults(name, path.read_text(), modules.keys(), package=path.stem == "__init__")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("store.contract", "from accord import errors", ""),
        ("store.contract", "from accord.store import names", ""),
        ("store.open", "def f():\n    import accord.store.engines.files", ""),
        ("store.engines.files", "from accord.store.local.gate import Gate", ""),
        ("store.engines.files.other", "from accord.store.engines import files", ""),
        ("testing.engines", "from accord.store.open import open_store", ""),
        ("store.contract", "from accord.store.open import open_store", "store.open, which lies above"),
        ("store.contract", "def f():\n    from . import open", "store.open, which lies above"),
        (
            "store.open",
            "if TYPE_CHECKING:\n    import accord.services.mail",
            "services.mail, which lies above",
        ),
        ("testing.engines", "import accord.cli.main", "cli.main, which lies above"),
        ("store.engines.files", "from accord.store.engines import sqlite", "must not know"),
        ("store.engines.files", "from .sqlite import Sqlite", "must not know"),
        ("store.wrap.faulty", "from ..engines import files", "must not know"),
        ("store.transaction", "import accord.store.engines.files", "must not know"),
        ("store.engines.rediss", "from accord.store.engines import redis", ""),
        ("store.engines.redis", "from accord.store.engines import rediss", "must not know"),
        ("demo", "from accord import testing", "testing, which nobody may import"),
        ("errors", "from accord import open_store", "imports accord itself"),
        ("errors", "import accord", "imports accord itself"),
        ("services.mail", "from accord.store import Store", "imports the folder store"),
        ("novelty", "", "novelty is in no layer"),
        ("store.novelty", "", "store.novelty is in no layer"),
        ("errors", "import accord.novelty", "novelty is in no layer"),
    ],
)
def test_a_wrong_import_is_found(module: str, text: str, expected: str) -> None:
    modules = {
        "errors", "store", "store.contract", "store.names", "store.open", "store.transaction",
        "store.novelty", "store.local.gate", "store.engines.sqlite", "store.engines.files",
        "store.engines.files.other", "store.engines.redis", "store.engines.rediss", "store.wrap.faulty",
        "services.mail", "cli.main", "testing",
        "testing.engines", "demo", "novelty",
    }  # fmt: skip
    wrong = "\n".join(faults(module, text, modules, package=False))
    assert expected in wrong
    assert bool(expected) == bool(wrong)


@pytest.mark.parametrize(
    ("module", "base"),
    [
        ("accord", "sys"),
        ("accord.store.contract", "sys"),
        ("accord.store.open", "sys"),
        ("accord.store.transaction", "sys"),
        ("accord.store.engines.sqlite", "apsw"),  # the driver has imports of its own
    ],
)
def test_hot_modules_import_nothing_heavy(module: str, base: str) -> None:
    assert (loaded_by(module) - loaded_by(base)) & HEAVY == set()


def name_of(path: Path) -> str:
    """The dotted name of a source file below accord; "" is accord itself."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


def faults(name: str, text: str, modules: Set[str], *, package: bool) -> Iterator[str]:
    """A sentence for each import of module `name` that the layers forbid."""
    part = part_of(name)
    if part is None and name not in FOLDERS | {""}:
        yield unplaced(name)
        return
    for target in sorted(imports(name, text, modules, package=package)):
        if target == "":
            if name != "":
                yield f"{name} imports accord itself: import the module that you mean."
        elif target in FOLDERS:
            yield f"{name} imports the folder {target}: import the module that you mean."
        elif (other := part_of(target)) is None:
            yield unplaced(target)
        elif other in BESIDE and other != part:
            yield f"{name or 'accord'} imports {target}, which nobody may import."
        elif name in FOLDERS:
            yield f"{name} is a folder, and imports {target}: its __init__ imports nothing of accord."
        elif part is not None and HEIGHT[other] > HEIGHT[part]:
            yield f"{name} imports {target}, which lies above it."
        elif (part, other) in STRANGERS and not same_alternative(name, target):
            yield f"{name} must not know {target}."


def part_of(name: str) -> str | None:
    """The entry of the layers that a module belongs to."""
    return next((part for part in HEIGHT if name == part or name.startswith(part + ".")), None)


def unplaced(name: str) -> str:
    return f"{name} is in no layer: add it to LAYERS in tests/test_imports.py, above all that it imports."


def same_alternative(name: str, target: str) -> bool:
    """Whether both belong to one engine, which may be a folder of several modules, or have two names."""
    one, other = (".".join(module.split(".")[:3]) for module in (name, target))
    return one == other or (one, other) in SAME


def imports(name: str, text: str, modules: Set[str], *, package: bool) -> set[str]:
    """The modules of accord that a source imports anywhere, also in functions and under TYPE_CHECKING."""
    here = ["accord", *name.split(".")] if name else ["accord"]
    folder = here if package else here[:-1]
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                if full != "accord.__version__":
                    found.add(full if full.removeprefix("accord.") in modules else origin)
    return {
        full.removeprefix("accord").removeprefix(".")
        for full in found
        if full == "accord" or full.startswith("accord.")
    }


def loaded_by(module: str) -> set[str]:
    """What a fresh interpreter of this environment has loaded once it imported `module`."""
    program = f"import sys, {module}; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.split())
