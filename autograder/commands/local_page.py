"""Serve a page to a browser on this machine."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.marking.local_server import LocalApplication


def user_name() -> str:
    """Return the default name under which marks and answers are recorded."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for this user id
        return "marker"


def listen(application: LocalApplication, port: int) -> str:
    """Start an application's server in the running event loop, and return the address of its page.

    Raises:
        CourseError: if the port cannot be used.
    """
    try:
        _, address = application.listen_locally(port)
    except OSError as error:
        raise CourseError(f"port {port} cannot be used ({error.strerror})", do="Choose another --port.") from None
    return address
