"""Store the behaviour of wrong answers, per exercise, as ``COURSE/journal/behaviour/CHAPTER/STUDENT.json``.

Signatures help instructors to group answers. They decide no grade, so they are no part of a result: a result is compared byte for byte when
a grade is replayed. They are for instructors only, because a student's numbers can carry hidden inputs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course

# Another way of computing signatures has another number: signatures of two versions are never compared.
VERSION = 1
_LONGEST_FILE = 2_000_000


@dataclass(frozen=True)
class Signature:
    """The outputs of one wrong answer on the visible tests of its exercise."""

    sheet: str  # digest of the questions and of the units of the values. Only signatures of equal sheets are compared.
    # digest of everything that is compared exactly: kinds of error, shapes, dtypes, positions of non-finite numbers, and integers, booleans
    # and text
    structure: str
    # the dtype of each value's tensor, one letter each: ``d`` float64, ``f`` float32, ``h`` float16, ``b`` bfloat16
    kinds: str
    # one number per tensor of floating-point numbers, compared with the tolerance of its dtype
    values: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the signature as plain data, ready for JSON."""
        return {"sheet": self.sheet, "structure": self.structure, "kinds": self.kinds, "values": list(self.values)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Signature:
        """Parse the data that :meth:`to_dict` returned.

        Raises:
            ValueError: if it is none.
        """
        try:
            values = tuple(float(value) for value in data["values"])
            signature = cls(str(data["sheet"]), str(data["structure"]), str(data["kinds"]), values)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not a signature: {error}") from error
        if len(signature.kinds) != len(values) or not all(map(math.isfinite, values)):
            raise ValueError("not a signature: its values do not fit their kinds")
        return signature


def signatures_path(course: Course, chapter: str, student: str) -> Path:
    """Return the path of a submission's signature file."""
    return course.root / "journal" / "behaviour" / chapter / f"{student}.json"


def write_signatures(
    course: Course, chapter: str, student: str, submission: str, signatures: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write a submission's signatures, or remove the file if all answers are right.

    Args:
        submission: hash of what was handed in.
        signatures: what :meth:`Signature.to_dict` returned, by exercise.
    """
    path = signatures_path(course, chapter, student)
    if not signatures:
        path.unlink(missing_ok=True)
        return
    content = {"version": VERSION, "submission": submission, "exercises": dict(signatures)}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    write_atomically(path, text.encode(), durable=False)


def read_signatures(course: Course, chapter: str, student: str, submission: str) -> dict[str, Signature]:
    """Return a submission's signatures by exercise; empty if the file is missing, unreadable or outdated."""
    path = signatures_path(course, chapter, student)
    try:
        if path.stat().st_size > _LONGEST_FILE:
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] != VERSION or content["submission"] != submission:
            return {}
        return {str(name): Signature.from_dict(data) for name, data in content["exercises"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def remove_orphaned_signatures(course: Course, chapter: str) -> None:
    """Remove the signature files of submissions that no longer exist."""
    with suppress(OSError):
        for path in signatures_path(course, chapter, "any").parent.glob("*.json"):
            if not course.folder("submitted", path.stem, chapter).is_dir():
                path.unlink(missing_ok=True)
