"""Make what the page shows of an exercise: groups of answers that behave alike, with what the check said and up to three members' code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.checking.verdict import Finding, Verdict
from autograder.grading.feedback.markup import points_text
from autograder.marking.answer_texts import AnswerTexts
from autograder.marking.behaviour_groups import BehaviourGroup
from autograder.marking.code_questions import GradedCode
from autograder.marking.code_text import CodeView, visible
from autograder.marking.page_data import Pseudonyms, student_label
from autograder.marking.questions import Answer, Question


@dataclass(frozen=True)
class FailedRow:
    """A row of the check that failed: its title, what was seen, and one small question that was missed, all as visible text."""

    title: str
    message: str
    example: str


@dataclass(frozen=True)
class ShownMember:
    """A member of a group."""

    pseudonym: str  # what the page's requests call the member
    label: str  # what the page calls the member; the student's name and id if names are shown
    version: str  # the version that the page shows
    state: str  # the member's mark, as a phrase
    waiting: bool  # whether the member waits for a marker


@dataclass(frozen=True)
class ShownCode:
    """One member's code as HTML, or its difference from the first member's."""

    label: str
    html: str
    is_difference: bool


@dataclass(frozen=True)
class CodeGroup:
    """A group of code answers, as shown on the page."""

    name: str  # the group's name on the page
    key: str  # the group's key, the same after a reload
    members: tuple[ShownMember, ...]
    rows: tuple[FailedRow, ...]  # the failed rows, merged by message
    diagnoses: tuple[str, ...]  # explanations of known mistakes
    error: str  # the reason why no row is listed, if any
    follows_from: str  # the exercise from which all these failures follow; empty if they are independent
    lost_points: float  # the sum of the members' lost points
    scores: str  # the check's points, as text
    codes: tuple[ShownCode, ...]  # up to three members with different code
    # the diff from the reference solution to the first member, as HTML; empty without a reference or a difference
    reference: str
    points: float | None  # the manual points that all members share; None if they differ or are missing
    comment: str  # the manual comment that all members share; empty if they differ or are missing
    state: str  # the group's mark, as a phrase

    @property
    def waiting(self) -> int:
        """How many members wait for a marker."""
        return sum(member.waiting for member in self.members)

    @property
    def versions(self) -> dict[str, str]:
        """The members' versions by pseudonym."""
        return {member.pseudonym: member.version for member in self.members}


def code_groups(
    question: Question, code: GradedCode, pseudonyms: Pseudonyms, texts: AnswerTexts, *, names: Mapping[str, str] | None
) -> list[CodeGroup]:
    """Return the groups of an exercise's answers, most lost points first.

    Args:
        question: the exercise.
        code: what grading left, for the rows of the check.
        pseudonyms: makes the members' names.
        texts: renders their code.
        names: the students' names by id; None if the page may not show who wrote an answer.
    """
    answers = {answer.student: answer for answer in question.answers}
    verdicts = _verdicts(code, question.name)
    shown = []
    for number, group in enumerate(question.groups, start=1):
        members = [answers[member.student] for member in group.members if member.student in answers]
        labels = {
            answer.student: visible(student_label(answer.student, names))
            if names is not None
            else f"Answer {number}.{position}"
            for position, answer in enumerate(members, start=1)
        }
        shown.append(_shown(question, f"Group {number}", group, members, labels, verdicts, pseudonyms, texts))
    return shown


def mark_text(answer: Answer) -> str:
    """Return the mark of one code answer as a phrase."""
    state = answer.state
    if state.points is not None:
        return f"{points_text(state.points)} points{', with a comment' if state.comment else ''}"
    return "Comment given" if state.comment else "Not marked"


def _shown(
    question: Question,
    name: str,
    group: BehaviourGroup,
    members: Sequence[Answer],
    labels: Mapping[str, str],
    verdicts: Mapping[str, Verdict],
    pseudonyms: Pseudonyms,
    texts: AnswerTexts,
) -> CodeGroup:
    verdict = verdicts.get(group.representatives[0].student)
    rows = failed_rows(verdict)
    first, *others = group.representatives
    view = texts.code(question.name, first.source, [other.source for other in others], question.reference)
    states = {(answer.state.points, answer.state.comment) for answer in members}
    points, comment = next(iter(states)) if len(states) == 1 else (None, None)
    return CodeGroup(
        name=name,
        key=group.key,
        members=tuple(_member(question, answer, labels[answer.student], pseudonyms) for answer in members),
        rows=rows,
        diagnoses=tuple(visible(diagnosis.explanation) for diagnosis in verdict.diagnoses) if verdict else (),
        error="" if rows else visible(group.representatives[0].message[:2000]),
        follows_from=group.follows_from,
        lost_points=group.lost_points,
        scores=_scores(members),
        codes=_codes(group, view, labels),
        reference=view.reference,
        points=points,
        comment=comment or "",
        state="Marks differ within this group" if len(states) > 1 else mark_text(members[0]),
    )


def _member(question: Question, answer: Answer, label: str, pseudonyms: Pseudonyms) -> ShownMember:
    pseudonym = pseudonyms.of(question.name, answer.student)
    return ShownMember(pseudonym, label, answer.version, mark_text(answer), answer.is_open)


def failed_rows(verdict: Verdict | None) -> tuple[FailedRow, ...]:
    """Return the rows of a verdict that failed."""
    failed = [finding for finding in verdict.findings if not finding.passed] if verdict else []
    return tuple(_row(finding) for finding in failed)


def _row(finding: Finding) -> FailedRow:
    return FailedRow(visible(finding.title), visible(finding.message[:2000]), visible(finding.example[:4000]))


def _scores(members: Sequence[Answer]) -> str:
    scores = sorted({answer.code.score for answer in members if answer.code})
    if len(scores) == 1:
        return points_text(scores[0])
    return f"{points_text(scores[0])} to {points_text(scores[-1])}"


def _codes(group: BehaviourGroup, view: CodeView, labels: Mapping[str, str]) -> tuple[ShownCode, ...]:
    first, *others = group.representatives
    return ShownCode(labels.get(first.student, ""), view.code, is_difference=False), *(
        ShownCode(labels.get(other.student, ""), difference, is_difference=True)
        for other, difference in zip(others, view.differences, strict=True)
        if difference
    )


def _verdicts(code: GradedCode, exercise: str) -> dict[str, Verdict]:
    return {
        result.student: part.verdict
        for result in code.results
        for part in result.exercises
        if part.name == exercise and part.verdict is not None
    }
