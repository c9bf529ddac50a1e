"""Prepare the marking page's data: groups of answers under pseudonyms, and the effect of a changed rubric."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.checking.verdict import Finding
from autograder.course.authoring.rubrics import Rubric
from autograder.grading.feedback.markup import points_text
from autograder.grading.record.marks_journal import Ticks
from autograder.marking.answer_texts import AnswerTexts
from autograder.marking.code_text import escape_invisible
from autograder.marking.graded_code import GradedCode
from autograder.marking.ordering import group_identical
from autograder.marking.questions import Answer, Question
from autograder.marking.rubric_ticks import Move, current_shares


@dataclass(frozen=True)
class ShownMember:
    """A group's member as the page shows it."""

    pseudonym: str  # what the page's requests call the member
    label: str  # what the page calls the member; the student's name and id if names are shown
    version: str  # the version that the page shows
    state: str  # the member's mark, as a phrase
    waiting: bool  # whether the member waits for a marker


@dataclass(frozen=True)
class ShownGroup:
    """A group of answers as the page shows it: identical written answers, or code that behaves alike."""

    name: str  # what the page calls the group
    members: tuple[ShownMember, ...]
    points: float | None  # the points that all members have from a person; None if they differ or have none
    comment: str  # the comment that all members have from a person; empty if they differ or have none
    mixed: bool  # whether the members' points, comments or ticked items differ
    # how much of each rubric item all members have; empty if they differ, or were marked with no rubric or another one
    shares: tuple[float, ...] = ()
    html: str = ""  # an answer in words
    rows: tuple[Finding, ...] = ()  # the rows of the check that failed
    diagnoses: tuple[str, ...] = ()  # explanations of known mistakes
    error: str = ""  # the reason why no row is listed, if any
    follows_from: str = ""  # the exercise from which all these failures follow; empty if they are independent
    lost_points: float = 0.0  # the sum of the members' lost points
    scores: str = ""  # the check's points, as text
    # up to three members with different code, each with its label: the first one's code as HTML, and the others' differences from it
    codes: tuple[tuple[str, str], ...] = ()
    # the diff from the reference solution to the first member, as HTML; empty without a reference or a difference
    reference: str = ""

    @property
    def waiting(self) -> int:
        """The number of members that wait for a marker."""
        return sum(member.waiting for member in self.members)

    @property
    def versions(self) -> dict[str, str]:
        """The members' versions by pseudonym."""
        return {member.pseudonym: member.version for member in self.members}


@dataclass(frozen=True)
class ShownMove:
    """The effect of a changed rubric on answers that look the same on the page."""

    label: str  # what the page calls the answers; the students if names are shown
    count: int  # how many answers they are
    before: float  # the points now
    after: float  # the points under the changed rubric
    is_override: bool  # whether the marker set the points to something other than the sum of the items; then they stay
    items: tuple[str, ...]  # the items that the answers keep, as text


class Pseudonyms:
    """Pseudonyms for students that differ per question and per start of the server, so pages reveal no identity."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._students: dict[tuple[str, str], str] = {}

    def get_pseudonym(self, question: str, student: str) -> str:
        """Return the pseudonym of a student for a question."""
        pseudonym = hmac.new(self._secret, f"{question}\0{student}".encode(), hashlib.sha256).hexdigest()[:16]
        self._students[question, pseudonym] = student
        return pseudonym

    def student(self, question: str, pseudonym: str) -> str | None:
        """Return the student whom a page has shown under a pseudonym; None for an unknown pseudonym."""
        return self._students.get((question, pseudonym))


def text_groups(
    question: Question,
    rubric: Rubric | None,
    pseudonyms: Pseudonyms,
    texts: AnswerTexts,
    *,
    names: Mapping[str, str] | None,
) -> list[ShownGroup]:
    """Return the groups of a question's written answers, in the page's order.

    Args:
        question: the question.
        rubric: its rubric, if there is one.
        pseudonyms: makes the members' names.
        texts: renders the answers.
        names: the students' names by id; None if the page may not show who wrote an answer.
    """
    shown = []
    for number, group in enumerate(group_identical(question.answers), start=1):
        labels = [student_label(answer.student, names) if names is not None else "" for answer in group]
        html = texts.answer(question.name, group[0].text, group[0].attachments)
        shown.append(_shown_group(f"Answer {number}", question, group, labels, rubric, pseudonyms, html=html))
    return shown


def code_groups(
    question: Question, code: GradedCode, pseudonyms: Pseudonyms, texts: AnswerTexts, *, names: Mapping[str, str] | None
) -> list[ShownGroup]:
    """Return the groups of an exercise's code answers, most lost points first.

    Args:
        question: the exercise.
        code: what grading left, for the rows of the check.
        pseudonyms: makes the members' names.
        texts: renders their code.
        names: the students' names by id; None if the page may not show who wrote an answer.
    """
    answers = {answer.student: answer for answer in question.answers}
    outcomes = code.outcomes(question.name)
    shown = []
    for number, group in enumerate(question.groups, start=1):
        members = [answers[member.student] for member in group.members if member.student in answers]
        labels = {
            answer.student: escape_invisible(student_label(answer.student, names))
            if names is not None
            else f"Answer {number}.{position}"
            for position, answer in enumerate(members, start=1)
        }
        first, *others = group.representatives
        outcome = outcomes.get(first.student)
        verdict = outcome.verdict if outcome else None
        rows = tuple(finding for finding in verdict.findings if not finding.passed) if verdict else ()
        view = texts.code(question.name, first.source, [other.source for other in others], question.reference)
        differences = zip(others, view.differences, strict=True)
        shown.append(
            _shown_group(
                *(f"Group {number}", question, members, list(labels.values()), None, pseudonyms),
                rows=rows,
                diagnoses=tuple(escape_invisible(one.explanation) for one in verdict.diagnoses) if verdict else (),
                error="" if rows else escape_invisible(first.message[:2000]),
                follows_from=group.follows_from,
                lost_points=group.lost_points,
                scores=_score_range_text(members),
                codes=(
                    (labels.get(first.student, ""), view.code),
                    *((labels.get(other.student, ""), html) for other, html in differences if html),
                ),
                reference=view.reference,
            )
        )
    return shown


def _shown_group(
    name: str,
    question: Question,
    answers: Sequence[Answer],
    labels: Sequence[str],
    rubric: Rubric | None,
    pseudonyms: Pseudonyms,
    **shown: Any,
) -> ShownGroup:
    states = {(answer.state.points, answer.state.comment, answer.ticks) for answer in answers}
    points, comment, ticks = next(iter(states)) if len(states) == 1 else (None, None, None)
    members = tuple(
        ShownMember(
            pseudonyms.get_pseudonym(question.name, answer.student),
            label,
            answer.version,
            mark_text(answer),
            answer.is_open,
        )
        for answer, label in zip(answers, labels, strict=True)
    )
    shares = current_shares(ticks, rubric)
    return ShownGroup(name, members, points, comment or "", len(states) > 1, shares, **shown)


def mark_text(answer: Answer) -> str:
    """Describe an answer's mark in a phrase."""
    state = answer.state
    if state.points is not None:
        return f"{points_text(state.points)} points{', with a comment' if state.comment else ''}"
    return "Comment given" if state.comment else "Not marked"


def _score_range_text(members: Sequence[Answer]) -> str:
    scores = sorted({answer.code.score for answer in members if answer.code})
    return " to ".join(map(points_text, dict.fromkeys((scores[0], scores[-1]))))


def shown_moves(
    moves: Sequence[Move], labels: Mapping[str, str], *, names: Mapping[str, str] | None
) -> list[ShownMove]:
    """Return the effects of a changed rubric, grouped by equal effect, the largest changes first.

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
        ShownMove(_join_labels(students, names) or label, len(students), before, after, is_override, items)
        for (label, before, after, is_override, items), students in alike.items()
    ]
    return sorted(shown, key=lambda move: -abs(move.after - move.before))


def student_label(student: str, names: Mapping[str, str]) -> str:
    """Return a student's name followed by the id; only the id of a student without a name."""
    name = names.get(student, "")
    return f"{name} ({student})" if name and name != student else student


def _join_labels(students: Sequence[str], names: Mapping[str, str] | None) -> str:
    return ", ".join(student_label(student, names) for student in students) if names is not None else ""


def _ticked_texts(ticks: Ticks) -> tuple[str, ...]:
    return tuple(
        f"{points_text(tick.earned)} of {points_text(tick.points)}: {tick.text}" for tick in ticks if tick.share
    )
