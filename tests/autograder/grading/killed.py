"""Processes that end suddenly, before they change a course for another time."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

KILLED = 9
_CHANGES = frozenset({"os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate"})


def ends_after(number: int, work: Callable[[], object], root: Path) -> bool:
    """Do something in a process that ends before it changes a folder or its gradebook for another time; say whether it did end so."""
    child = os.fork()
    if not child:
        try:
            _end_after(number, root)
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED), "it failed by itself"
    return code == KILLED


def _end_after(number: int, root: Path) -> None:
    left = number

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(KILLED)

    def look(name: str, args: tuple[Any, ...]) -> None:
        writes = name == "open" and bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if (writes or name in _CHANGES) and str(args[0]).startswith(f"{root}/"):
            count()

    os.fsync = count
    event.listen(Engine, "commit", count)
    sys.addaudithook(look)
