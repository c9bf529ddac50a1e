"""Find the student that a person typed: by id, name, number, login or email address, or an unambiguous beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches

from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError, list_first
from autograder.intake.roster import Student, fold_name, read_roster, safe_id, submitted_folders


def find_student(course: Course, typed: str, also: Iterable[str] = ()) -> str:
    """Return the id of the student that was typed.

    An exact id comes first, then an exact number, login or address, then the whole name, then the beginning of one of them. A name may be
    typed without accents and capitals, and with its words in any order.

    Args:
        typed: what was typed.
        also: further ids, beside the list of students and ``submitted/``.

    Raises:
        CourseError: if no student is meant, or several may be.
    """
    people = {name: Student(name) for name in (*also, *submitted_folders(course))} | read_roster(course)
    matches = matching_students(typed, people)
    if len(matches) == 1:
        return matches[0]
    listing = shell_command(course, "students")
    if matches:
        shown = list_first([display_name(people[name]) for name in matches])
        raise CourseError(f"{typed!r} may be several students: {shown}", do="Write the id of one of them.")
    raise CourseError(
        f"no student of this course is called {typed!r}.{_suggest_students(typed, people)}".rstrip("."),
        where=course.root,
        do=f"List the class: {listing}",
    )


def matching_students(typed: str, people: Mapping[str, Student]) -> list[str]:
    """Return the sorted ids of the students whom a text may mean, from the first matching rule that finds any."""
    text = typed.strip()
    if not text or text in people:
        return [text] if text in people else []
    for matches in (_has_key, _has_name, _has_prefix):
        if names := sorted(name for name, student in people.items() if matches(text, student)):
            return names
    return []


def display_name(student: Student) -> str:
    """Return a student's name with the id in brackets, for messages."""
    return f"{student.name} ({student.id})" if student.name and student.name != student.id else student.id


def name_words(name: str) -> list[str]:
    """Return the words of a name sorted, without accents and capitals: ``Müller, Jörg`` equals ``jorg muller``."""
    return sorted(filter(None, safe_id(name).split("-")))


def _searchable_identifiers(student: Student) -> Iterable[str]:
    return (
        text.casefold() for text in (student.id, student.login, student.number, student.email, student.user) if text
    )


def _has_key(text: str, student: Student) -> bool:
    return text.casefold() in _searchable_identifiers(student)


def _has_name(text: str, student: Student) -> bool:
    return fold_name(text) == fold_name(student.name) or (
        bool(student.name) and name_words(text) == name_words(student.name)
    )


def _has_prefix(text: str, student: Student) -> bool:
    if any(key.startswith(text.casefold()) for key in _searchable_identifiers(student)):
        return True
    unmatched = name_words(student.name)
    for part in name_words(text):
        match = next((candidate for candidate in unmatched if candidate.startswith(part)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return bool(name_words(text))


def _suggest_students(typed: str, people: Mapping[str, Student]) -> str:
    spell: Callable[[str], str] = lambda name: " ".join(name_words(name))  # noqa: E731
    texts = {spell(text): student for student in people.values() for text in (student.id, student.name) if text}
    close = get_close_matches(spell(typed), texts, n=1, cutoff=0.6)
    return f" Did you mean {display_name(texts[close[0]])}?" if close else ""
