# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Written by accord install. Send a message:

send.py --from NAME --to NAME (--message TEXT | --message-file PATH) [--hub-port PORT]
"""

import sys

sys.dont_write_bytecode = True  # nothing shall be left here when this is uninstalled

from _accord import become  # noqa: E402

become("send", *sys.argv[1:])
