"""One process of a benchmark: says that it is ready, waits until its input ends, does its part, tells the times."""

import os
import sys

from accord import jsontext
from accord.measure import workload
from accord.place import PASSWORD_VARIABLE


def main() -> None:
    folder, url, name, count, duration_s, index = sys.argv[1:]
    print("ready", flush=True)
    sys.stdin.read()
    try:
        job = workload.Job(folder, url, name, int(count), float(duration_s))
        found = workload.run(job, int(index), os.environ[PASSWORD_VARIABLE])
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    print(jsontext.dumps(found))


if __name__ == "__main__":
    main()
