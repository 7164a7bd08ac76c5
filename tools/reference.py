"""Write the pages of docs/ that are made from the code: `make reference`. A test compares them."""

from pathlib import Path

from accord import errors

DOCS = Path(__file__).parent.parent / "docs"

ERRORS_INTRO = """\
# Errors

Made from `src/accord/errors.py` by `make reference`. Programs compare the code; the text says what happened and what
to do, and what stands in braces is also in the error's `details`.

| code | Python | exit | HTTP | JSON-RPC | text |
| --- | --- | --- | --- | --- | --- |
"""


def errors_page() -> str:
    rows = [
        f"| `{error.code}` | `{error.__name__}` | {error.exit} | {error.http} | {error.rpc} | {error.text} |"
        for error in all_errors()
    ]
    return ERRORS_INTRO + "\n".join(rows) + "\n"


def all_errors() -> list[type[errors.AccordError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, errors.AccordError)]


PAGES = {"errors.md": errors_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
