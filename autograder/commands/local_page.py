"""Serve a page to the browser on this machine until the command is stopped."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.marking.local_server import LocalApplication


def user_name() -> str:
    """Return the name under which marks and answers are recorded by default."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for this user id
        return "marker"


def listen(application: LocalApplication, port: int) -> str:
    """Let an application listen within the running event loop, and return the address that opens its page.

    Raises:
        CourseError: if the port cannot be used.
    """
    try:
        _, address = application.listen_locally(port)
    except OSError as error:
        raise CourseError(f"port {port} cannot be used ({error.strerror})", do="Choose another --port.") from None
    return address
