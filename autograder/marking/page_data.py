"""Make what the page shows of a chapter: questions, rubrics, and groups of answers under names that tell nobody's identity."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from autograder.authoring.rubrics import Rubric
from autograder.feedback.markup import markdown
from autograder.marking.answer_texts import AnswerTexts
from autograder.marking.ordering import group_identical
from autograder.marking.questions import Answer, Question


@dataclass(frozen=True)
class ShownGroup:
    """A group of identical answers as the page shows it.

    Attributes:
        name: what the page calls the group.
        html: the answer.
        members: what the page calls each member, and the version that it shows; keys are pseudonyms.
        students: the students' ids, empty if marking is anonymous.
        waiting: how many of the members wait.
        points: the points that all members have from a person; None if they differ or have none.
        comment: the comment that all members have from a person; empty if they differ or have none.
        mixed: whether the members' points or comments differ.
    """

    name: str
    html: str
    members: Mapping[str, str]
    students: tuple[str, ...]
    waiting: int
    points: float | None
    comment: str
    mixed: bool


@dataclass(frozen=True)
class RubricItem:
    """One item of a mark scheme: its HTML, and its worth (0 if it does not say)."""

    html: str
    worth: float


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


def shown_groups(question: Question, pseudonyms: Pseudonyms, texts: AnswerTexts, *, names: bool) -> list[ShownGroup]:
    """Return the groups of a question's answers in the order in which the page shows them.

    Args:
        question: the question.
        pseudonyms: makes the members' names.
        texts: renders the answers.
        names: whether the page may show who wrote an answer.
    """
    return [
        _shown(question.name, number, group, pseudonyms, texts, names=names)
        for number, group in enumerate(group_identical(question.answers), start=1)
    ]


def _shown(
    question: str, number: int, group: list[Answer], pseudonyms: Pseudonyms, texts: AnswerTexts, *, names: bool
) -> ShownGroup:
    states = {(answer.state.points, answer.state.comment) for answer in group}
    points, comment = next(iter(states)) if len(states) == 1 else (None, None)
    return ShownGroup(
        name=f"Answer {number}",
        html=texts.answer(question, group[0].text, group[0].attachments),
        members={pseudonyms.of(question, answer.student): answer.version for answer in group},
        students=tuple(answer.student for answer in group) if names else (),
        waiting=sum(answer.state.waiting for answer in group),
        points=points,
        comment=comment or "",
        mixed=len(states) > 1,
    )


def rubric_items(rubric: Rubric | None) -> list[RubricItem]:
    """Return the items of a rubric's mark scheme as HTML."""
    return [RubricItem(markdown(text), worth or 0.0) for text, worth in (rubric.items if rubric else [])]
