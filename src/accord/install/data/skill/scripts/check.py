# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Written by accord install. Show messages; only with --clear they are done with:

check.py --identity NAME [--limit N] [--clear]
"""

import sys

sys.dont_write_bytecode = True  # nothing shall be left here when this is uninstalled

from _accord import become  # noqa: E402

words = [word for word in sys.argv[1:] if word != "--clear"]
become("check", *words, *([] if "--clear" in sys.argv else ["--peek"]))
