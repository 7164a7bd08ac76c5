# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Written by accord install. Register a name:

register.py --identity NAME [--force] [--hub-port PORT]
"""

import sys

sys.dont_write_bytecode = True  # nothing shall be left here when this is uninstalled

from _accord import become  # noqa: E402

become("register", *sys.argv[1:])
