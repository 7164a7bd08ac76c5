"""A port of this machine that cannot be had."""

import errno

from accord import errors, platform


def refusal(port: int, code: int | None, reason: str | None) -> errors.AccordError:
    """What it means to a person that a port could not be listened on; who has it, where that can be known."""
    if code != errno.EADDRINUSE:
        return errors.HubFailed(reason=f"port {port} cannot be had ({reason})")
    pid = platform.holder_of_port(port)
    holder = f"process {pid}" if pid else "another program"
    return errors.PortInUse(port=port, holder=holder, blocking_pid=pid or None)
