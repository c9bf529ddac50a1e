"""Define verdicts: points, findings, and the diagnosis of a recognised mistake."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

# What a notebook's output carries beside the text and the table: the verdict as plain data, for whoever reads notebooks.
VERDICT_MIME = "application/vnd.tfcourse.verdict+json"

# From this many rows on, rows that failed in the same way become one line.
FOLD = 3

# The message for a stub.
NOT_WRITTEN = "not written yet"
# The messages for a side row if no number, or not this one, is right.
NOT_JUDGED = "not judged: the numbers are wrong"

# The note on an error about PyTorch's meta device, which students do not know.
ABOUT_META = (
    "(the check runs your code on PyTorch's “meta” device, whose tensors have shapes but no numbers, to see that you create "
    "tensors on the device of the inputs)"
)
_META = re.compile(r"(same device|different devices).*\bmeta\b|meta tensor")


@dataclass(frozen=True)
class Diagnosis:
    """A known mistake that explains the findings."""

    name: str  # the misconception's short name, unique within its exercise
    explanation: str  # one or two sentences for the student who made the mistake
    read: str  # label of the lesson section to read again
    section: str = ""  # that section's heading, or empty where it is not known

    @property
    def heading(self) -> str:
        """The section's heading or, if it is unknown, its label in words."""
        return self.section or self.read.replace("-", " ")


@dataclass(frozen=True)
class Finding:
    """The result of one row."""

    aspect: str  # the aspect's short name, for example ``"values"``
    title: str  # what the aspect asks, as a sentence
    points: float  # points that the aspect is worth
    passed: bool  # whether what it asks was right
    message: str  # what was seen, in a sentence
    diagnosis: Diagnosis | None = None  # the misconception that explains it, if one does
    # points that were earned: none if it was missed, all or a share of them if it passed; by default all. What is beside the numbers is
    # paid in proportion to right numbers.
    earned: float = -1.0
    # one small question that was missed: what went in, what came out, what was expected; empty if it is not told
    example: str = ""

    @property
    def mark(self) -> str:
        """The row's sign: ✓ passed, ✗ missed, – not judged."""
        return "–" if self.message == NOT_JUDGED else "✓" if self.passed else "✗"

    @property
    def state(self) -> str:
        """The row's state in words, for readers who do not see the sign."""
        return {"✓": "passed", "✗": "missed", "–": "not judged"}[self.mark]

    @property
    def is_reduced(self) -> bool:
        """Whether the row passed but earns only some of its points, because some numbers are wrong."""
        return self.passed and self.message != NOT_JUDGED and self.earned < round(self.points, 2)

    def __post_init__(self) -> None:
        if _META.search(self.message) and ABOUT_META not in self.message:
            object.__setattr__(self, "message", f"{self.message} {ABOUT_META}")
        if self.earned < 0:
            object.__setattr__(self, "earned", self.points if self.passed else 0.0)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check. Its repr is its score, which nbgrader reads as partial credit."""

    exercise: str  # name of the exercise
    chapter: str  # chapter that the exercise belongs to
    findings: tuple[Finding, ...]  # one per aspect, in the order in which the exercise declares them
    # address of the course's site, which ends in a slash, or empty. It decides how the verdict looks, not what it says: its data does not
    # hold it.
    site: str = field(default="", compare=False)
    # a sentence on another exercise that may be the cause, or empty; like ``site``, it is shown and not stored
    note: str = field(default="", compare=False)

    @property
    def score(self) -> float:
        """The earned points."""
        return round(float(sum(finding.earned for finding in self.findings)), 2)

    @property
    def max_score(self) -> float:
        """The maximum points."""
        return float(sum(finding.points for finding in self.findings))

    @property
    def passed(self) -> bool:
        """Whether every row passed."""
        return all(finding.passed for finding in self.findings)

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """The distinct diagnoses of the failed rows, in order."""
        return tuple(dict.fromkeys(finding.diagnosis for finding in self.findings if finding.diagnosis is not None))

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data, ready for JSON."""
        findings = tuple(
            {**vars(finding), "diagnosis": dict(vars(finding.diagnosis)) if finding.diagnosis else None}
            for finding in self.findings
        )
        of = {"exercise": self.exercise, "chapter": self.chapter}
        return {"score": self.score, "max_score": self.max_score, **of, "findings": findings}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Verdict:
        """Parse the data that :meth:`to_dict` returned."""
        findings = tuple(
            Finding(
                aspect=item["aspect"],
                title=item["title"],
                points=item["points"],
                passed=item["passed"],
                message=item["message"],
                diagnosis=Diagnosis(**item["diagnosis"]) if item["diagnosis"] else None,
                earned=item["earned"],
                example=item["example"],
            )
            for item in data["findings"]
        )
        return cls(exercise=data["exercise"], chapter=data["chapter"], findings=findings)

    def __repr__(self) -> str:
        return f"{self.score:g}"

    def __str__(self) -> str:
        lines = [f"{self.exercise}: {self.score:g} of {self.max_score:g} points"]
        for diagnosis, findings in self._group_findings():
            for rows in _fold_lines(findings):
                mark = {"✓": "x", "✗": " ", "–": "-"}[rows[0].mark]
                lines.append(f"  [{mark}] {_points_text(rows, '/')}  {_line_title(rows)}: {rows[0].message}")
                lines += [f"        - {finding.title}" for finding in rows if len(rows) > 1]
                lines += [textwrap.indent(finding.example, " " * 8) for finding in rows[:1] if finding.example]
            if findings[0].is_reduced:
                lines.append(f"      {describe_reduced_points(findings)}")
            if diagnosis is not None:
                lines.append(f"  Looks like: {diagnosis.explanation}")
                lines.append(f"  Read again: lesson {self.chapter}, “{diagnosis.heading}”")
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])

    def _group_findings(self) -> list[tuple[Diagnosis | None, list[Finding]]]:
        """Group the findings: passed and unexplained ones, reduced ones, each mistake's, and unjudged ones."""
        plain: list[Finding] = []
        reduced: list[Finding] = []
        unjudged: list[Finding] = []
        explained: dict[Diagnosis, list[Finding]] = {}
        for finding in self.findings:
            if finding.mark == "–":
                unjudged.append(finding)
            elif finding.diagnosis is not None:
                explained.setdefault(finding.diagnosis, []).append(finding)
            else:
                (reduced if finding.is_reduced else plain).append(finding)
        groups = [(None, plain), (None, reduced), *explained.items(), (None, unjudged)]
        return [(diagnosis, findings) for diagnosis, findings in groups if findings]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {VERDICT_MIME: self.to_dict()}

    def _repr_html_(self) -> str:
        note = f'<p style="margin:.5em 0 0"><strong>{html.escape(self.note)}</strong></p>' if self.note else ""
        groups = "".join(self._group_html(diagnosis, findings) for diagnosis, findings in self._group_findings())
        return (
            f'<div class="tfc-verdict" style="{_BOX}">'
            f'<p style="margin:0 0 .5em"><code>{html.escape(self.exercise)}</code> '
            f"<strong>{self.score:g} of {self.max_score:g} points</strong></p>"
            f'<table style="border-collapse:collapse;table-layout:fixed;width:100%"><thead><tr>'
            f'<th scope="col" style="{_CELL};width:40%">What is asked</th>'
            f'<th scope="col" style="{_CELL};width:5.5em">Points</th>'
            f'<th scope="col" style="{_CELL}">What was seen</th></tr></thead>{groups}</table>{note}</div>'
        )

    def _group_html(self, diagnosis: Diagnosis | None, findings: Sequence[Finding]) -> str:
        rows = "".join(map(_row_html, _fold_lines(findings))) + (self._diagnosis_html(diagnosis) if diagnosis else "")
        if findings[0].is_reduced:
            rows += (
                f'<tr class="tfc-reduced"><td colspan="3" style="{_CELL}">{describe_reduced_points(findings)}</td></tr>'
            )
        return f"<tbody>{rows}</tbody>"

    def _diagnosis_html(self, diagnosis: Diagnosis) -> str:
        heading = html.escape(diagnosis.heading)
        if self.site:
            address = html.escape(section_address(self.site, self.chapter, diagnosis.read))
            heading = f'<a href="{address}">{heading}</a>'
        return (
            f'<tr class="tfc-diagnosis"><td colspan="3" style="{_CELL}"><strong>This looks like:</strong> '
            f"{html.escape(diagnosis.explanation)} "
            f"<br><span>Read again: lesson <em>{html.escape(self.chapter)}</em>, “{heading}”</span></td></tr>"
        )


def section_address(site: str, chapter: str, label: str) -> str:
    """Return the address of a lesson's section.

    Args:
        site: address of the course's site, which ends in a slash.
        chapter: the chapter's name.
        label: the section's label.
    """
    return f"{site}chapters/{quote(chapter, safe='')}/lesson.html#{quote(label)}"


_BOX = "border:1px solid;border-radius:6px;padding:.75em 1em;max-width:60em"
_PRE = "margin:.25em 0;overflow-x:auto;font-size:.9em;line-height:1.35"
_CELL = "text-align:left;vertical-align:top;padding:.25em .75em .25em 0;border-bottom:1px solid rgba(128,128,128,.4)"


def _fold_lines(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return the findings of each line: one row, or all rows that failed with the same message."""
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        told_apart = finding.aspect if finding.passed and finding.message != NOT_JUDGED else (finding.message,)
        groups.setdefault(told_apart, []).append(finding)
    lines = [
        rows for group in groups.values() for rows in ([group] if len(group) >= FOLD else [[one] for one in group])
    ]
    return sorted(lines, key=lambda rows: findings.index(rows[0]))


def _sum_points(rows: Sequence[Finding]) -> tuple[float, float]:
    return sum(finding.earned for finding in rows), sum(finding.points for finding in rows)


def _points_text(rows: Sequence[Finding], slash: str) -> str:
    """Return a line's points: earned and maximum, or only the maximum if a later line states the earned ones."""
    earned, points = _sum_points(rows)
    return f"({points:g})" if rows[0].is_reduced else f"{earned:g}{slash}{points:g}"


def describe_reduced_points(rows: Sequence[Finding]) -> str:
    """Describe the points that reduced rows earn together."""
    earned, points = _sum_points(rows)
    which = "This row pays" if len(rows) == 1 else f"These {len(rows)} rows pay"
    return f"{which} in proportion to the right numbers: {earned:g} of {points:g} points."


def _line_title(rows: Sequence[Finding]) -> str:
    return rows[0].title.rstrip(".") if len(rows) == 1 else f"{len(rows)} rows"


def _row_html(rows: Sequence[Finding]) -> str:
    first = rows[0]
    title = html.escape(first.title) if len(rows) == 1 else _details_html(f"{len(rows)} rows", _list_html(rows))
    example = ""
    if first.example:
        # In a row of its own, which is as wide as the table: its columns must stay columns.
        question, *lines = html.escape(first.example).split("\n")
        side_by_side = f'\n<pre style="{_PRE}">{chr(10).join(lines)}</pre>' if lines else ""
        details = _details_html("An example", f"<code>{question}</code>{side_by_side}")
        example = f'<tr class="tfc-example"><td colspan="3" style="{_CELL}">{details}</td></tr>'
    return (
        f'<tr class="{first.state.replace(" ", "-")}"><th scope="row" style="{_CELL};font-weight:normal">'
        f'<span role="img" aria-label="{first.state}">{first.mark}</span> {title}</th>'
        f'<td style="{_CELL};white-space:nowrap">{_points_text(rows, " / ")}</td>'
        f'<td style="{_CELL}">{html.escape(first.message)}</td></tr>{example}'
    )


def _list_html(rows: Sequence[Finding]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(finding.title)}</li>' for finding in rows)}</ul>"


def _details_html(summary: str, content: str) -> str:
    return f"<details style='display:inline-block;vertical-align:top;max-width:100%'><summary>{summary}</summary>{content}</details>"
