"""Trying something in a process of its own, which ends with it: what it gives up, this one keeps."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any


def in_child(attempt: Callable[[], Any]) -> Any:
    """Return what an attempt returns, as JSON can tell it, in a forked child.

    Raises:
        RuntimeError: with what went wrong in the child, or the signal that ended it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = {"value": attempt()}
        except BaseException:
            answer = {"failed": traceback.format_exc()}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        said = answers.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not said:
        raise RuntimeError(f"it ended with {status}")
    answer = json.loads(said)
    if "failed" in answer:
        raise RuntimeError(answer["failed"])
    return answer["value"]
