"""What operations give, for docs/operations.md: from the text of the shapes, since the comments in it are shown too."""

import ast
import re
from collections.abc import Iterator

from accord.operations import find, results

WORDS = {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "None": "null"}

INTRO = """
## What they give

Fields and what they hold; *?*: it may be missing. Instants are texts in ISO 8601, in UTC. From Python each is a `dict`,
whose type is a `TypedDict` of this name in `accord.operations.results`.

| result | fields |
| --- | --- |
"""


def name_of(operation: str) -> str:
    """The shape of what an operation gives."""
    annotation: str = find(operation).__annotations__["return"]
    return annotation.removeprefix("results.")


def section() -> str:
    with open(results.__file__) as file:
        text = file.read()
    shapes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    return INTRO + "".join(f"| `{shape.name}` | {_row(shape, text.splitlines())} |\n" for shape in shapes)


def _row(shape: ast.ClassDef, lines: list[str]) -> str:
    bases = [_base(ast.unparse(base)) for base in shape.bases]
    return "; ".join([*[base for base in bases if base], *_fields(shape, lines)])


def _base(name: str) -> str:
    return {"TypedDict": "", "_From": "`from` text"}.get(name, f"those of `{name}`")


def _fields(shape: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    for node in shape.body:
        if isinstance(node, ast.AnnAssign):
            comment = lines[node.lineno - 1].partition("  # ")[2]
            kind, mark = _kind(node.annotation)
            yield f"`{ast.unparse(node.target)}`{mark} {kind}{f' ({comment})' if comment else ''}"


def _kind(annotation: ast.expr) -> tuple[str, str]:
    """What a field holds, in words, and a mark if it may be missing."""
    text = ast.unparse(annotation)
    inner = re.fullmatch(r"NotRequired\[(.*)\]", text)
    return (_words(inner[1]), "?") if inner else (_words(text), "")


def _words(text: str) -> str:
    if inner := re.fullmatch(r"list\[(.*)\]", text):
        return f"list of {_words(inner[1])}"
    if " | " in text:
        return " or ".join(_words(part) for part in text.split(" | "))
    return WORDS.get(text) or ("object" if text.startswith("dict[") else f"`{text}`")
