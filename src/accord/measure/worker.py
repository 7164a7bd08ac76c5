"""One process of a benchmark: says that it is ready, waits until its input ends, does its part, tells the times."""

import sys

from accord import jsontext
from accord.measure import workload


def main() -> None:
    folder, url, name, count, duration_s, index = sys.argv[1:]
    print("ready", flush=True)
    sys.stdin.read()
    try:
        found = workload.run(folder, url, name, int(count), float(duration_s), int(index))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print(jsontext.dumps(found))


if __name__ == "__main__":
    main()
