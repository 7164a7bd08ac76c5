# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Written by accord install. Start, stop or ask for the hub:

hub.py start|stop|status [--port PORT]
"""

import sys

sys.dont_write_bytecode = True  # nothing shall be left here when this is uninstalled

from _accord import become  # noqa: E402

# Only `start` has a port to choose; the others refuse a hub with another one.
is_start = "start" in sys.argv[1:2]
words = [word if is_start else word.replace("--port", "--hub-port") for word in sys.argv[1:]]
become("hub", *words)
