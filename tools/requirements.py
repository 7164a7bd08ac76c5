"""Says which requirements of docs/requirements.md the passing tests cover, and which they do not."""

import argparse
import re
import sys
from itertools import groupby
from pathlib import Path

TABLE = Path(__file__).parent.parent / "docs" / "requirements.md"
ROW = re.compile(r"^\| (?P<id>[A-Z]\d+(?:\.\d+)?) \| .* \|(?P<later>(?:[^|\\]|\\.)*)\|$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("covered", nargs="+", type=Path, help="what pytest wrote to $ACCORD_COVERED")
    parser.add_argument("--promised", nargs="*", default=[], metavar="ID", help="fail if one is not covered")
    arguments = parser.parse_args()

    if not all(file.exists() for file in arguments.covered):
        print(f"{arguments.covered[0]} is not there. Run `make test` first.", file=sys.stderr)
        return 1
    later = {row["id"]: row["later"].strip() for row in ROW.finditer(TABLE.read_text())}
    covered = {id for file in arguments.covered for id in file.read_text().split()}

    report(later, covered)
    unknown = covered - later.keys()
    broken = [id for id in arguments.promised if id not in covered]
    if unknown:
        print(f"\nMarked in tests, but not in {TABLE.name}: {' '.join(sorted(unknown))}", file=sys.stderr)
    if broken:
        print(f"\nPromised, but no passing test covers: {' '.join(broken)}", file=sys.stderr)
    return 1 if unknown or broken else 0


def report(later: dict[str, str], covered: set[str]) -> None:
    """Print what is covered; `later` holds every id in order, with what is still to come of it."""
    done = [id for id in later if id in covered]
    print(f"covered: {len(done)} of {len(later)}")

    parts = [id for id in done if later[id]]
    if parts:
        print("\ncovered in part; still to come:")
        for id in parts:
            print(f"  {id:6} {later[id]}")

    missing = [id for id in later if id not in covered]
    if missing:
        print("\nno passing test covers:")
        for letter, ids in groupby(missing, key=lambda id: id[0]):
            print(f"  {letter}  {' '.join(ids)}")


if __name__ == "__main__":
    sys.exit(main())
