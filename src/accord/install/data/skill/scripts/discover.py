# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Written by accord install. Show who is registered:

discover.py [--hub-port PORT]
"""

import sys

sys.dont_write_bytecode = True  # nothing shall be left here when this is uninstalled

from _accord import become  # noqa: E402

become("discover", *sys.argv[1:])
