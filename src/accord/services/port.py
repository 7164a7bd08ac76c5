"""A port of this machine: whether it can be had, and what it means when it cannot."""

import errno

from accord import errors, platform

ADDRESS = "127.0.0.1"


def check(port: int) -> None:
    """Refuse a port that nobody could listen on now."""
    import socket

    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the doors do
        try:
            trying.bind((ADDRESS, port))
            trying.listen(1)
        except OSError as error:
            raise refusal(port, error.errno, error.strerror) from None


def refusal(port: int, code: int | None, reason: str | None) -> errors.AccordError:
    """What it means to a person that a port could not be listened on; who has it, where that can be known."""
    if code != errno.EADDRINUSE:
        return errors.HubFailed(reason=f"port {port} cannot be had ({reason})")
    pid = platform.holder_of_port(port)
    holder = f"process {pid}" if pid else "another program"
    return errors.PortInUse(port=port, holder=holder, blocking_pid=pid or None)
