"""Name the strangers: submissions of ids that are not on the class list.

A stranger is a test account, a student whom the list does not have yet, or a listed student whose name a download spells otherwise. A
stranger counts in no average, total or export until the lecturer decides with an option of ``tfcourse students``:

- ``--same`` gives the work to a listed student;
- ``--add`` puts the stranger on the class list;
- ``--ignore`` marks a test account.

Protects against:

- a student with two ids, of which one "handed in nothing" and the other has the grade;
- a test account or a stranger that changes the averages of a class.

Does not protect against:

- strangers in a course without a class list: there, each submission is a student's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import some
from autograder.intake.name_spellings import likely_spelling
from autograder.intake.notebook.problem import Problem
from autograder.intake.people.standing import enrolled_students, nothing_handed_in
from autograder.intake.roster import Student, read_roster, safe_id

KIND = "not on the class list"

# Two names that agree by so much may be one student's; a pair is only proposed, never made.
_ALIKE = 0.6


@dataclass(frozen=True)
class Stranger:
    """A submission of somebody who is not on the class list."""

    student: str  # the id that the submission has in the course folder
    name: str  # the name in the download; the id if the name is missing
    chapter: str
    proposed: str = ""  # the id of the listed student who is likely meant, or empty
    absent: tuple[str, ...] = ()  # the ids of the listed students who handed in nothing for the chapter

    def to_dict(self) -> dict[str, str]:
        """Return this as plain data, ready for JSON."""
        return {"student": self.student, "name": self.name, "chapter": self.chapter, "proposed": self.proposed}


def is_stranger(student: str, roster: Mapping[str, Student]) -> bool:
    """Return whether an id is not on the class list of a course that has one, and nobody has decided about it."""
    entry = roster.get(student, Student(student))
    has_list = any(other.enrolled for other in roster.values())
    return has_list and not (entry.enrolled or entry.state)


def strangers(course: Course, chapters: Iterable[str]) -> list[Stranger]:
    """Return the strangers who handed in something for some chapters, ordered by chapter and id."""
    roster = read_roster(course)
    return [stranger for chapter in sorted(chapters) for stranger in _of_chapter(course, chapter, roster)]


def _of_chapter(course: Course, chapter: str, roster: Mapping[str, Student]) -> list[Stranger]:
    submitters = sorted(path.parent.name for path in course.folder("submitted").glob(f"*/{chapter}") if path.is_dir())
    unlisted = [roster.get(student, Student(student)) for student in submitters if is_stranger(student, roster)]
    if not unlisted:
        return []
    absent = nothing_handed_in(course, chapter)
    listed = enrolled_students(roster)
    pairs = propose_pairs(unlisted, [listed[student] for student in absent])
    return [Stranger(one.id, one.name or one.id, chapter, pairs.get(one.id, ""), tuple(absent)) for one in unlisted]


def propose_pairs(unlisted: Sequence[Student], absent: Sequence[Student]) -> dict[str, str]:
    """Return, by stranger, the absent student who is likely meant: the two names agree best on both sides."""
    scores = {(one.id, other.id): _likeness(one, other) for one in unlisted for other in absent}
    pairs: dict[str, str] = {}
    for (stranger, student), score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        rivals = [value for pair, value in scores.items() if (pair[0] == stranger) != (pair[1] == student)]
        if score >= _ALIKE and score > max(rivals, default=0.0):
            pairs[stranger] = student
    return pairs


def _likeness(stranger: Student, student: Student) -> float:
    """Return how much two names agree, from 0 to 1; words may appear in another order, or run together."""
    spelled = likely_spelling(stranger.name or stranger.id, [student])
    seen_texts = {"".join(sorted_words(spelled)), _letters(spelled), _letters(stranger.id)}
    first, last = student.first_and_last_name
    texts = {_letters(f"{first}{last}"), _letters(f"{last}{first}"), "".join(sorted_words(student.name))}
    texts |= {_letters(text) for text in (student.id, student.login, student.number)}
    return max(
        SequenceMatcher(None, one, other, autojunk=False).ratio() for one in seen_texts for other in texts if other
    )


def sorted_words(name: str) -> list[str]:
    """Return the words of a name as an id spells them, in alphabetical order."""
    return sorted(filter(None, safe_id(name).split("-")))


def _letters(text: str) -> str:
    return safe_id(text).replace("-", "")


def problems(course: Course, unlisted: Iterable[Stranger]) -> list[Problem]:
    """Return a problem for each stranger, with both names and the command that decides."""
    return [_problem(course, stranger) for stranger in unlisted]


def _problem(course: Course, stranger: Stranger) -> Problem:
    roster = read_roster(course)
    message = f"{_called(roster, stranger.student)} handed in {stranger.chapter} and is not on the class list, so this counts nowhere."
    same = shell_command(course, "students", "--same", stranger.student, stranger.proposed or "STUDENT")
    others = f"--add {stranger.student} puts them on the class list, --ignore {stranger.student} says that this is no student"
    if stranger.proposed:
        message += f" {_called(roster, stranger.proposed)} is on the list and handed in nothing."
        do = f"If they are one student: {same}. If not, {others}."
    else:
        if stranger.absent:
            message += f" On the list, {len(stranger.absent)} handed in nothing: {some(stranger.absent)}."
        do = f"Give the work to a student: {same}. Or {others}."
    return Problem(KIND, message, f"submitted/{stranger.student}/{stranger.chapter}", do)


def _called(roster: Mapping[str, Student], student: str) -> str:
    name = roster.get(student, Student(student)).name
    return f"{name} ({student})" if name and name != student else student
