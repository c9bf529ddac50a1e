"""Build a student's feedback page from the graded notebook, without hidden tests, hidden inputs or solutions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from autograder.checking.verdict import VERDICT_MIME, Diagnosis, Verdict
from autograder.grading.feedback.follow_ups import Outcome, find_causes
from autograder.grading.feedback.markup import NotebookTexts, markdown_html, strip_colours
from autograder.intake.notebook.problem import FOR_LECTURERS, Problem, read_problems, shorten

# One line; the spaces and signs at its end are taken off by hand, for an expression for that takes time without bound.
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]*)$", re.MULTILINE)
_TITLE = re.compile(r"^#[ \t]+(\S[^\n]*)$", re.MULTILINE)
_LONGEST_HEADING = 300
_FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+\.\d*(?:[eE][-+]?\d+)?")
# Errors that tell in one line what the page says better.
_OURS = ("NotGradable", "Timeout", "OutputFlood", "KernelDied", "TimeUsedUp", "NoVerdict")


@dataclass(frozen=True)
class RubricPart:
    """A rubric item on the page: its HTML, its points, and the answer's share of it: 0, 0.5 or 1."""

    html: str
    points: float
    share: float


@dataclass(frozen=True)
class Part:
    """An exercise or question on the feedback page."""

    anchor: str  # id of its section
    kind: str  # ``"exercise"`` or ``"question"``
    title: str  # its heading
    score: float  # earned points
    max_score: float  # maximum points
    pending: bool = False  # whether it waits for manual grading
    verdict: Verdict | None = None  # the check's verdict, if there is one
    error: str = ""  # the reason for a missing verdict, as a sentence
    comment: str = ""  # the grader's comment, as HTML
    prompt: str = ""  # the question, as HTML
    work: str = ""  # the student's answer, as HTML
    name: str = ""  # the exercise's name in the code
    answered: bool = True  # whether a question has an answer
    check_score: float | None = None  # the check's points if a person has overridden them; otherwise None
    follows: Part | None = None  # the exercise, if any, whose failure explains all failures here
    counts_as: str = ""  # the course's rule for it, as a sentence; empty without a rule
    # earned and maximum points as the course counts them; None if it counts as the notebook says
    counted: tuple[float, float] | None = None
    rubric: tuple[RubricPart, ...] = ()  # the rubric of a mark with its ticks; empty for points without a rubric
    # points that a person gave instead of the sum of the ticked items; None if the sum applies
    given_points: float | None = None

    @property
    def ticked(self) -> tuple[RubricPart, ...]:
        """The rubric items that the answer has, wholly or half."""
        return tuple(item for item in self.rubric if item.share)

    @property
    def ticked_points(self) -> float:
        """The sum of the points of the ticked items."""
        return round(sum(item.points * item.share for item in self.rubric), 6)

    @property
    def share(self) -> float:
        """The earned points in per cent."""
        return 100 * self.score / self.max_score if self.max_score else 100.0

    @property
    def state(self) -> str:
        """The part's state as one word, which selects its colour."""
        if self.pending:
            return "pending"
        return "full" if self.score >= self.max_score else ("some" if self.score > 0 else "none")

    @property
    def summary(self) -> str:
        """The part's short summary in the page's header."""
        if self.pending:
            return "not read yet"
        if self.kind == "question":
            return "no answer" if not self.answered else ("with a comment" if self.comment else "")
        if self.check_score is not None:
            return "points set by your grader"
        if self.verdict is None:
            return self.error
        if self.verdict.passed:
            return "everything as it should be"
        if self.follows is not None:
            return f"follows from `{self.follows.name}`"
        if self.verdict.diagnoses:
            return "looks like: " + "; ".join(diagnosis.name for diagnosis in self.verdict.diagnoses)
        missed = [finding.aspect for finding in self.verdict.findings if not finding.passed]
        return self.one_message or "missed: " + ", ".join(missed)

    def rows_in(self, state: str) -> int:
        """Return the number of the verdict's rows in a state, such as ``"passed"``."""
        return sum(finding.state == state for finding in self.verdict.findings) if self.verdict else 0

    @property
    def one_message(self) -> str:
        """The common message if all rows failed with the same one; otherwise empty."""
        findings = self.verdict.findings if self.verdict else ()
        messages = {finding.message for finding in findings}
        return messages.pop() if len(messages) == 1 and not any(finding.passed for finding in findings) else ""


@dataclass(frozen=True)
class Page:
    """A student's feedback page."""

    chapter: str
    title: str  # its heading
    student: str
    name: str  # the student's name, or empty
    score: float  # points after a late penalty
    max_score: float  # maximum points
    late_penalty: float  # points taken off for lateness
    parts: tuple[Part, ...]  # exercises and questions in the order of the notebook
    problems: tuple[Problem, ...]  # what went otherwise than it should with the file
    # time between the student's own deadline and the submission, in seconds; 0 if it came in time
    seconds_late: float = 0.0
    decision: str = ""  # why a person gave these points to a submission that could not be graded, or empty
    plain: bool = False  # whether texts are shown as they were written

    @property
    def refused(self) -> Problem | None:
        """The problem because of which the submission could not be graded; None if it could."""
        return next((problem for problem in self.problems if problem.fatal), None)

    @property
    def pending(self) -> int:
        """The number of answers that wait for manual grading."""
        return sum(part.pending for part in self.parts)

    @property
    def settled_score(self) -> float:
        """The points, excluding answers that wait for grading, less the same fraction for lateness."""
        raw = self.score + self.late_penalty
        waiting = sum(earned for earned, _ in self._waiting)
        return max(0.0, round(self.score * (raw - waiting) / raw, 6)) if raw else 0.0

    @property
    def settled_max(self) -> float:
        """The maximum points, excluding answers that wait for grading."""
        return self.max_score - sum(worth for _, worth in self._waiting)

    @property
    def _waiting(self) -> list[tuple[float, float]]:
        """Earned and maximum points of the answers that wait for manual grading."""
        return [part.counted or (part.score, part.max_score) for part in self.parts if part.pending]

    @property
    def exercises(self) -> tuple[Part, ...]:
        """The parts that are exercises."""
        return tuple(part for part in self.parts if part.kind == "exercise")

    @property
    def questions(self) -> tuple[Part, ...]:
        """The parts that are questions."""
        return tuple(part for part in self.parts if part.kind == "question")

    @property
    def reading(self) -> tuple[tuple[Diagnosis, Part], ...]:
        """The sections to read again, each with the first exercise that leads to it; follow-up failures are skipped."""
        by_section: dict[str, tuple[Diagnosis, Part]] = {}
        for part in self.parts:
            for diagnosis in part.verdict.diagnoses if part.verdict and part.follows is None else ():
                by_section.setdefault(diagnosis.read, (diagnosis, part))
        return tuple(by_section.values())


def build_feedback_page(notebook: Any, resources: Any, *, plain: bool = False) -> Page:
    """Build the feedback page of a graded notebook. Rendering students' texts may be slow: see ``page_html.py``.

    Args:
        notebook: the graded notebook, with scores and comments from the gradebook in its cells.
        resources: nbgrader's resources: student, assignment, score, maximum and late penalty; where known, the student's name and the
            chapter's title, for a notebook without a title.
        plain: whether texts are shown as they were written.
    """
    return Page(
        chapter=resources["assignment"],
        title=notebook_title(notebook) or resources.get("title") or resources["assignment"],
        student=resources["student"],
        name=resources.get("name", ""),
        score=float(resources["score"]),
        max_score=float(resources["max_score"]),
        late_penalty=float(resources["late_penalty"] or 0),
        parts=_link_follow_ups(tuple(_read_parts(notebook, NotebookTexts(plain=plain))), notebook, plain=plain),
        problems=tuple(problem for problem in read_problems(notebook) if problem.kind not in FOR_LECTURERS),
        seconds_late=float(resources.get("seconds_late") or 0),
        plain=plain,
    )


def notebook_title(notebook: Any) -> str:
    """Return a notebook's first level-one heading; empty without one."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return next(
        (_strip_heading_markup(match[1]) for text in texts if (match := _TITLE.search(_blank_out_code(text)))), ""
    )


def _strip_heading_markup(heading: str) -> str:
    heading = heading[:_LONGEST_HEADING].rstrip().rstrip("#").rstrip()
    return re.sub(r"[`*]|\{#[^{}]*\}", "", heading).strip()


def _read_parts(notebook: Any, texts: NotebookTexts) -> Iterator[Part]:
    title, prompt = "", ""
    causes = {problem.where: f"{problem.what} {problem.do}".strip() for problem in read_problems(notebook)}
    stubs: dict[str, tuple[Any, str]] = {}
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        name = mark.get("grade_id", "")
        if mark.get("task") or (mark.get("grade") and mark.get("solution")):
            yield _question_part(cell, title, prompt, texts)
        elif mark.get("grade"):
            exercise = name.removeprefix("test_")
            stub, heading = stubs.get(exercise, (None, title))
            yield _exercise_part(cell, exercise, stub, heading, causes.get(exercise, ""), texts)
        elif cell.cell_type == "code" and mark.get("solution"):
            stubs[name] = (cell, title)
        elif cell.cell_type == "markdown":
            headings = _HEADING.findall(_blank_out_code(cell.source))
            title = _strip_heading_markup(headings[-1]) if headings else title
            prompt = cell.source


def _link_follow_ups(parts: tuple[Part, ...], notebook: Any, *, plain: bool) -> tuple[Part, ...]:
    """Link each part whose failure follows from another exercise to it, except on a plain page."""
    if plain:
        return parts
    sources = {
        cell.metadata.get("nbgrader", {}).get("grade_id", ""): cell.source
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    }
    exercises = {part.name: part for part in parts if part.kind == "exercise"}
    causes = find_causes([Outcome(name, sources.get(name, ""), part.verdict) for name, part in exercises.items()])
    return tuple(replace(part, follows=exercises[causes[part.name]]) if part.name in causes else part for part in parts)


def _exercise_part(cell: Any, name: str, stub: Any, title: str, cause: str, texts: NotebookTexts) -> Part:
    mark = cell.metadata.nbgrader
    verdict, error = _read_outcome(cell)
    # That a name is not defined says less than why: its cell failed, or defines another one.
    error = f"{error.rstrip('.')}. {cause}" if error and cause else error
    return Part(
        anchor=mark["grade_id"],
        kind="exercise",
        title=title or name,
        name=name,
        score=float(mark["score"]),
        max_score=float(mark["points"]),
        pending=bool(mark.get("pending")),
        verdict=verdict,
        error=error,
        comment=_comment_html(stub) if stub is not None else "",
        work=texts.python(stub.source) if stub is not None else "",
        check_score=float(mark.get("auto_score") or 0) if mark.get("by_hand") else None,
    )


def _question_part(cell: Any, title: str, prompt: str, texts: NotebookTexts) -> Part:
    mark = cell.metadata.nbgrader
    items = mark.get("rubric") or ()
    by_hand = float(mark.get("given_points") or 0)
    total = min(float(mark["points"]), sum(item["points"] * item["share"] for item in items))
    return Part(
        anchor=mark["grade_id"],
        kind="question",
        title=title or mark["grade_id"],
        score=float(mark["score"]),
        max_score=float(mark["points"]),
        pending=bool(mark.get("pending")),
        answered=bool(mark.get("task")) or mark.get("answered", True),
        comment=_comment_html(cell),
        rubric=tuple(RubricPart(markdown_html(item["text"]), item["points"], item["share"]) for item in items),
        given_points=None if not items or abs(total - by_hand) < 1e-6 else by_hand,
        prompt=texts.markdown(_remove_heading(prompt)),
        work=texts.markdown(cell.source, cell.get("attachments"))
        if cell.cell_type == "markdown"
        else texts.python(cell.source),
    )


def _remove_heading(text: str) -> str:
    heading = _HEADING.search(_blank_out_code(text))
    return text if heading is None else f"{text[: heading.start()]}{text[heading.end() :]}".strip()


def _blank_out_code(text: str) -> str:
    """Replace the characters in fenced code blocks by blanks, because # begins a comment there."""
    return _FENCED.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)


def _comment_html(cell: Any) -> str:
    comment = cell.metadata.nbgrader.get("comment")
    return markdown_html(comment) if comment and comment != "No response." else ""


def _redact_numbers(text: str) -> str:
    """Remove the numbers from an error message of student code: with hidden tests they may be hidden inputs."""
    return _NUMBER.sub("…", text) if text.casefold().startswith("it raised") else text


def _redact_verdict(verdict: Verdict) -> Verdict:
    # An example has numbers of the student's answer, and with them a function could bring home what another question asked.
    findings = (replace(finding, message=_redact_numbers(finding.message), example="") for finding in verdict.findings)
    return replace(verdict, findings=tuple(findings))


def _read_outcome(cell: Any) -> tuple[Verdict | None, str]:
    """Return a cell's verdict or error, without its other output, which could show inputs of hidden tests."""
    for output in cell.outputs if cell.cell_type == "code" else ():
        if output.output_type == "error":
            text = strip_colours(output.evalue).strip()
            return None, shorten(text, 500) if output.ename in _OURS else _redact_numbers(
                f"It raised {output.ename}: {text}"[:300]
            )
        if output.output_type == "execute_result" and VERDICT_MIME in output.data:
            try:
                return _redact_verdict(Verdict.from_dict(output.data[VERDICT_MIME])), ""
            except (KeyError, TypeError):
                return None, "The verdict could not be read."
    return None, ""
