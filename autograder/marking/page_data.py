"""Make what the page shows of a chapter: questions, rubrics, and groups of answers under names that tell nobody's identity."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.course.authoring.rubrics import Rubric
from autograder.grading.feedback.markup import markdown, points_text
from autograder.grading.record.marks_journal import Ticks
from autograder.marking.answer_texts import AnswerTexts
from autograder.marking.ordering import group_identical
from autograder.marking.questions import Answer, Question
from autograder.marking.rubric_ticks import Move, current_shares


@dataclass(frozen=True)
class ShownGroup:
    """A group of identical answers as the page shows it."""

    name: str  # what the page calls the group
    html: str  # the answer
    members: Mapping[str, str]  # what the page calls each member, and the version that it shows; keys are pseudonyms
    students: tuple[str, ...]  # the students' names and ids, empty if marking is anonymous
    waiting: int  # how many of the members wait
    points: float | None  # the points that all members have from a person; None if they differ or have none
    comment: str  # the comment that all members have from a person; empty if they differ or have none
    mixed: bool  # whether the members' points, comments or ticked items differ
    # how much of each rubric item all members have; empty if they differ, or were marked with no rubric or another one
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class ShownItem:
    """One item of a mark scheme: its HTML, its wording as text, and its worth (0 if it does not say)."""

    html: str
    wording: str
    worth: float


@dataclass(frozen=True)
class ShownMove:
    """What a changed rubric does to the points of answers that the page does not tell apart."""

    label: str  # what the page calls the answers; the students if names are shown
    count: int  # how many answers they are
    before: float  # the points now
    after: float  # the points under the changed rubric
    is_override: bool  # whether the marker set the points to something else than the sum of the items; then they stay
    items: tuple[str, ...]  # the items that the answers keep, as text


class Pseudonyms:
    """Names for students that differ per question and per start of the server, so that a page cannot be traced to a person."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, question: str, student: str) -> str:
        """Return the pseudonym of a student in a question."""
        return hmac.new(self._secret, f"{question}\0{student}".encode(), hashlib.sha256).hexdigest()[:16]

    def students(self, question: Question) -> dict[str, str]:
        """Return the students of a question by pseudonym."""
        return {self.of(question.name, answer.student): answer.student for answer in question.answers}


def shown_groups(
    question: Question,
    rubric: Rubric | None,
    pseudonyms: Pseudonyms,
    texts: AnswerTexts,
    *,
    names: Mapping[str, str] | None,
) -> list[ShownGroup]:
    """Return the groups of a question's answers in the order in which the page shows them.

    Args:
        rubric: its rubric, if there is one.
        pseudonyms: makes the members' names.
        texts: renders the answers.
        names: the students' names by id; None if the page may not show who wrote an answer.
    """
    return [
        _shown(question.name, number, group, rubric, pseudonyms, texts, names=names)
        for number, group in enumerate(group_identical(question.answers), start=1)
    ]


def _shown(
    question: str,
    number: int,
    group: list[Answer],
    rubric: Rubric | None,
    pseudonyms: Pseudonyms,
    texts: AnswerTexts,
    *,
    names: Mapping[str, str] | None,
) -> ShownGroup:
    states = {(answer.state.points, answer.state.comment, answer.ticks) for answer in group}
    points, comment, ticks = next(iter(states)) if len(states) == 1 else (None, None, None)
    return ShownGroup(
        name=f"Answer {number}",
        html=texts.answer(question, group[0].text, group[0].attachments),
        members={pseudonyms.of(question, answer.student): answer.version for answer in group},
        students=tuple(student_label(answer.student, names) for answer in group) if names is not None else (),
        waiting=sum(answer.state.waiting for answer in group),
        points=points,
        comment=comment or "",
        mixed=len(states) > 1,
        shares=current_shares(ticks, rubric),
    )


def rubric_items(rubric: Rubric | None) -> list[ShownItem]:
    """Return the items of a rubric's mark scheme as HTML."""
    return [
        ShownItem(markdown(item.text), item.wording, item.points or 0.0) for item in (rubric.items if rubric else [])
    ]


def shown_moves(
    moves: Sequence[Move], labels: Mapping[str, str], *, names: Mapping[str, str] | None
) -> list[ShownMove]:
    """Return what a changed rubric does, the largest changes first.

    Args:
        moves: the answers that were marked with the rubric before.
        labels: what the page calls each student's answer.
        names: the students' names by id; None if the page may not show who wrote an answer.
    """
    alike: dict[tuple[str, float, float, bool, tuple[str, ...]], list[str]] = {}
    for move in moves:
        before = move.answer.state.points or 0.0
        key = labels[move.answer.student], before, move.points, move.is_override, _ticked_texts(move.ticks)
        alike.setdefault(key, []).append(move.answer.student)
    shown = [
        ShownMove(_labels(students, names) or label, len(students), before, after, is_override, items)
        for (label, before, after, is_override, items), students in alike.items()
    ]
    return sorted(shown, key=lambda move: -abs(move.after - move.before))


def student_label(student: str, names: Mapping[str, str]) -> str:
    """Return a student's name with the id behind it, or the id of a student without a name."""
    name = names.get(student, "")
    return f"{name} ({student})" if name and name != student else student


def _labels(students: Sequence[str], names: Mapping[str, str] | None) -> str:
    return ", ".join(student_label(student, names) for student in students) if names is not None else ""


def _ticked_texts(ticks: Ticks) -> tuple[str, ...]:
    return tuple(
        f"{points_text(tick.earned)} of {points_text(tick.points)}: {tick.text}" for tick in ticks if tick.share
    )
