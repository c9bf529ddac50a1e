"""Find strangers: submitters whose ids are not on the class list, so that their submissions count nowhere.

A stranger is a test account, a student whom the list does not have yet, or a listed student whose name a download spells otherwise. The
lecturer decides with ``tfcourse students``: ``--same`` gives the work to a listed student, ``--add`` puts the stranger on the list,
``--ignore`` marks a test account. Without a class list, each submission is a student's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import list_first
from autograder.intake.name_spellings import find_listed_spelling
from autograder.intake.notebook.problem import Problem
from autograder.intake.people.find_student import display_name, name_words
from autograder.intake.people.standing import enrolled_students, is_stranger, list_missing_students
from autograder.intake.roster import Student, read_roster, safe_id

KIND = "not on the class list"

# Two names that agree by so much may be one student's; a pair is only proposed, never made.
_ALIKE = 0.6


@dataclass(frozen=True)
class Stranger:
    """A submission of an id that is not on the class list."""

    student: str  # the id that the submission has in the course folder
    name: str  # the name in the download; the id if the name is missing
    chapter: str
    proposed: str = ""  # the id of the listed student who is likely meant, or empty
    absent: tuple[str, ...] = ()  # the ids of the listed students who handed in nothing for the chapter

    def to_dict(self) -> dict[str, str]:
        """Return the stranger as plain data, ready for JSON."""
        return {"student": self.student, "name": self.name, "chapter": self.chapter, "proposed": self.proposed}


def find_strangers(course: Course, chapters: Iterable[str]) -> list[Stranger]:
    """Return the strangers who handed in some chapters, ordered by chapter and id."""
    roster = read_roster(course)
    return [stranger for chapter in sorted(chapters) for stranger in _chapter_strangers(course, chapter, roster)]


def _chapter_strangers(course: Course, chapter: str, roster: Mapping[str, Student]) -> list[Stranger]:
    submitters = sorted(path.parent.name for path in course.folder("submitted").glob(f"*/{chapter}") if path.is_dir())
    unlisted = [roster.get(student, Student(student)) for student in submitters if is_stranger(student, roster)]
    if not unlisted:
        return []
    absent = list_missing_students(course, chapter)
    listed = enrolled_students(roster)
    pairs = propose_pairs(unlisted, [listed[student] for student in absent])
    return [Stranger(one.id, one.name or one.id, chapter, pairs.get(one.id, ""), tuple(absent)) for one in unlisted]


def propose_pairs(unlisted: Sequence[Student], absent: Sequence[Student]) -> dict[str, str]:
    """Return the likely absent student for each stranger: both names must agree best with each other."""
    scores = {(one.id, other.id): _name_similarity(one, other) for one in unlisted for other in absent}
    pairs: dict[str, str] = {}
    for (stranger, student), score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        rivals = [value for pair, value in scores.items() if (pair[0] == stranger) != (pair[1] == student)]
        if score >= _ALIKE and score > max(rivals, default=0.0):
            pairs[stranger] = student
    return pairs


def _name_similarity(stranger: Student, student: Student) -> float:
    """Return the similarity of two names, from 0 to 1; words may be reordered or run together."""
    name = stranger.name or stranger.id
    spelled = find_listed_spelling(name, [student]) or name
    seen_texts = {"".join(name_words(spelled)), _fold_letters(spelled), _fold_letters(stranger.id)}
    first, last = student.first_and_last_name
    texts = {_fold_letters(f"{first}{last}"), _fold_letters(f"{last}{first}"), "".join(name_words(student.name))}
    texts |= {_fold_letters(text) for text in (student.id, student.login, student.number)}
    return max(
        SequenceMatcher(None, one, other, autojunk=False).ratio() for one in seen_texts for other in texts if other
    )


def _fold_letters(text: str) -> str:
    return safe_id(text).replace("-", "")


def stranger_problems(course: Course, unlisted: Iterable[Stranger]) -> list[Problem]:
    """Return a problem for each stranger, with both names and the command that decides."""
    roster = read_roster(course)
    return [_stranger_problem(course, roster, stranger) for stranger in unlisted]


def _stranger_problem(course: Course, roster: Mapping[str, Student], stranger: Stranger) -> Problem:
    one, chapter = roster.get(stranger.student, Student(stranger.student)), stranger.chapter
    message = f"{display_name(one)} handed in {chapter} and is not on the class list, so this counts nowhere."
    same = shell_command(course, "students", "--same", one.id, stranger.proposed or "STUDENT")
    others = f"--add {one.id} puts them on the class list, --ignore {one.id} says that this is no student"
    if stranger.proposed:
        message += f" {display_name(roster[stranger.proposed])} is on the list and handed in nothing."
        do = f"If they are one student: {same}. If not, {others}."
    else:
        if stranger.absent:
            message += f" On the list, {len(stranger.absent)} handed in nothing: {list_first(stranger.absent)}."
        do = f"Give the work to a student: {same}. Or {others}."
    if one.number_on_moodle(chapter):
        do = f"Read the grading worksheet, which says who it is: tfcourse students WORKSHEET.csv --chapter {chapter}. Or: {do}"
    return Problem(KIND, message, f"submitted/{one.id}/{chapter}", do)
