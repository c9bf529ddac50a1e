"""Write files atomically: readers never see part of one, and a crash leaves the old one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def staged_file(
    path: Path, data: bytes, *, at: Path | None = None, durable: bool = True, mode: int | None = None
) -> Iterator[Path]:
    """Yield a draft of a file, which the block puts in the file's place; afterwards there is no draft.

    Args:
        path: the file.
        data: what it is to hold.
        at: where the draft is written; by default beside the file, under its name with ``.part``.
        durable: whether the draft is on the disk before the block begins, so that it would survive a power cut.
        mode: who may do what with it; by default what the umask allows.
    """
    draft = at or path.with_name(f"{path.name}.part")
    draft.parent.mkdir(parents=True, exist_ok=True)
    # Made anew: a link of that name would lead the bytes elsewhere.
    draft.unlink(missing_ok=True)
    try:
        with draft.open("xb") as file:
            if mode is not None:
                draft.chmod(mode)
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file atomically: a temporary file replaces it when it is complete.

    Args:
        path: the file.
        data: what it is to hold.
        durable: whether it would survive a power cut when this returns.
    """
    with staged_file(path, data, durable=durable) as draft:
        draft.replace(path)
