"""Edit ``course.toml`` for the lecturer, keeping comments and other keys: selections and extensions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import tomlkit

from autograder.atomic_files import write_atomically
from autograder.course.chapter_names import matching_chapters
from autograder.course.course_file import course_file_path, read_course_file

TEMPLATE = """\
# The plan of this course. Every command of tfcourse reads it; every key is optional. Uncomment what you need.
# `tfcourse assign 07 --only NAME,NAME` and `--without NAME,NAME` write `only` and `without` below.

# title = "Deep learning, winter term"
# contact = "dl-course@uni.example, room 2.14"   # in the instructions that students get
# Deadlines and submission times without an offset are in this time zone (an IANA name).
# time_zone = "Europe/Warsaw"

# [late]                      # late work, for every chapter without a rule of its own
# grace_minutes = 15          # so many minutes after the deadline are not late
# per_day = 0.10              # each day, or part of one, takes off this share of the points
# cap = 0.50                  # lateness never takes off more than this share
# closed_after_days = 14      # later than this nothing counts

# [chapters.07_decoding]      # or the beginning of the name: [chapters.07]
# only = ["greedy_search"]    # assign these exercises and questions alone; or name those to leave out:
# without = ["mirostat"]
# due = 2027-03-01T23:59:00
# late = { per_day = 0.25 }
# weight = 2                  # counts twice as much in the total as a chapter without a weight
# canvas = "Sheet 7 (88121)"   # the heading of its column in Canvas's gradebook
# groups = true               # one member hands in for each group of the class list

# [chapters.07_decoding.exercises.beam_search]   # after hand-in; nothing is graded again
# points = 5                  # what it is worth, in place of the notebook's points
# count = "drop"              # or "full": all points for every submission; or "bonus": its points are added to those of the others

# [viva.07_decoding]          # the conversations about students' own code (tfcourse viva); without a weight they do not count
# weight = 0.5
# canvas = "Conversation 7 (88122)"

# [extensions.ada]            # a student's id, a section or a group of the class list; never earlier than the deadline
# 07_decoding = 2027-03-05T23:59:00

# [deadlines."Lab B"]         # another deadline, earlier or later, of a section, a group or a student
# 07_decoding = 2027-03-04T23:59:00

# [total]                     # of all chapters that have begun, by their weights
# drop_lowest = 1             # each student's chapter with the lowest share does not count
# scale = 100                 # the points of a total of 100 %
# pass_mark = 50              # in percent
# grades = { A = 90, B = 75, C = 50 }
"""


# What belongs to one year, in the file and in the table of a chapter: people, dates, and columns of a platform's gradebook.
_OF_THE_YEAR = ("extensions", "deadlines", "due", "canvas")


def write_template(root: Path, like: Path | None = None) -> bool:
    """Write the file with every key as a comment, unless it exists; return whether it was written.

    Args:
        like: another course folder, of which the rules and choices are taken, without people, dates, columns and comments.

    Raises:
        CourseError: if the other course's file cannot be read.
    """
    path = course_file_path(root)
    if path.exists():
        return False
    text = TEMPLATE
    if like is not None:
        read_course_file(like)
        rules = tomllib.loads(course_file_path(like).read_text(encoding="utf-8"))
        for table in (rules, *rules.get("chapters", {}).values(), *rules.get("viva", {}).values()):
            for key in _OF_THE_YEAR:
                table.pop(key, None)
        text += f"\n# Taken from {like.name}\n{tomlkit.dumps(rules)}"
    write_atomically(path, text.encode())
    return True


def set_selection(
    root: Path, chapter: str, *, only: Iterable[str] | None = None, without: Iterable[str] | None = None
) -> None:
    """Write the selection of a chapter's exercises: ``only``, ``without``, or neither for all."""
    path = course_file_path(root)
    text = path.read_text(encoding="utf-8") if path.exists() else TEMPLATE
    document = tomlkit.parse(text)
    chapters = document.setdefault("chapters", tomlkit.table(is_super_table=True))
    tables = [key for key in chapters if matching_chapters(key, [chapter])] or [chapter]
    for table in tables:
        plan = chapters.setdefault(table, tomlkit.table())
        for key, names in (("only", only), ("without", without)):
            plan.pop(key, None)
            if names is not None and table == tables[0]:
                plan[key] = list(names)
    write_atomically(path, tomlkit.dumps(document).encode())


def set_extension(root: Path, student: str, chapter: str, until: datetime) -> None:
    """Write a student's extension for a chapter."""
    path = course_file_path(root)
    document = tomlkit.parse(path.read_text(encoding="utf-8") if path.exists() else TEMPLATE)
    table = document.setdefault("extensions", tomlkit.table(is_super_table=True)).setdefault(student, tomlkit.table())
    for key in [key for key in table if matching_chapters(key, [chapter])]:
        del table[key]
    table[chapter] = until.replace(tzinfo=None) if str(until.tzinfo) == document.get("time_zone", "UTC") else until
    write_atomically(path, tomlkit.dumps(document).encode())


def move_extensions(root: Path, student: str, other: str) -> None:
    """Move a student's extensions to another student, whose own take precedence."""
    path = course_file_path(root)
    document = tomlkit.parse(path.read_text(encoding="utf-8") if path.exists() else "")
    if moved := document.get("extensions", {}).pop(student, None):
        table = document["extensions"].setdefault(other, tomlkit.table())
        for chapter, until in moved.items():
            table.setdefault(chapter, until)
        write_atomically(path, tomlkit.dumps(document).encode())


@contextmanager
def restore_course_file_on_failure(root: Path) -> Iterator[None]:
    """Restore ``course.toml`` if the block fails, so that a selection that could not be released is dropped."""
    path = course_file_path(root)
    before = path.read_bytes() if path.exists() else None
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, before)
        raise
