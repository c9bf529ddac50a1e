"""Implement the directive ``{attempts}``: wrong solutions of an exercise, each with the current check's verdict.

Each attempt is a title after ``===`` and the code below it. The check runs when the page is built, so a verdict is never outdated. The
script ``attempt-explorer.js`` shows one attempt at a time; without it all attempts are listed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from autograder.checking.verdict import Diagnosis, Finding, Verdict, describe_reduced_points
from autograder.errors import CourseError

_TITLE = re.compile(r"^=== (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Attempt:
    """A wrong solution of an exercise, to be checked."""

    title: str  # what is wrong with it, in a few words
    code: str  # the function, which has the exercise's name


class Attempts(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{attempts}``; its argument is the exercise, its option ``caption`` the figure's caption."""

    has_content = True
    required_arguments = 1
    option_spec = {"caption": directives.unchanged_required}  # noqa: RUF012 - docutils reads it from the class

    def run(self) -> list[nodes.Node]:
        """Check the attempts and return the figure as raw HTML."""
        env = self.state.document.settings.env
        folder = Path(env.srcdir) / "autograder" / "checks"
        for path in sorted(folder.rglob("*.toml")) + sorted(folder.rglob("*.py")):
            env.note_dependency(str(path))
        up = "../" * str(env.docname).count("/")
        try:
            pairs = [
                (attempt, check_attempt(attempt, self.arguments[0]))
                for attempt in read_attempts("\n".join(self.content))
            ]
        except CourseError as error:
            raise self.error(str(error)) from error
        markup = attempts_html(pairs, self.options["caption"], lambda document: f"{up}{document}.html")
        return [nodes.raw("", markup, format="html")]


def read_attempts(text: str) -> list[Attempt]:
    """Parse the attempts of a directive's content.

    Raises:
        CourseError: if there are fewer than two, or code before the first title.
    """
    before, *parts = _TITLE.split(text)
    if before.strip() or len(parts) < 4:
        raise CourseError("attempts are two or more titles, each with code", do="Begin each with a line “=== Title”.")
    return [Attempt(title.strip(), code.strip()) for title, code in zip(parts[::2], parts[1::2], strict=True)]


def check_attempt(attempt: Attempt, exercise: str) -> Verdict:
    """Check an attempt as students do, and return the verdict.

    Raises:
        CourseError: if the code does not define the exercise.
    """
    import torch

    from autograder.checks import check

    namespace: dict[str, Any] = {"torch": torch, "math": math, "Tensor": torch.Tensor, "nn": torch.nn}
    exec(compile(attempt.code, f"<{attempt.title}>", "exec"), namespace)
    if exercise not in namespace:
        raise CourseError(f"the attempt “{attempt.title}” does not define {exercise}")
    return check(namespace[exercise])


def attempts_html(pairs: list[tuple[Attempt, Verdict]], caption: str, link: Callable[[str], str]) -> str:
    """Return the figure as HTML: a list of the attempts with their verdicts."""
    parts = "".join(_attempt_html(attempt, verdict, link) for attempt, verdict in pairs)
    return (
        f'<attempt-explorer class="explorer"><figure class="tfc-attempts" role="group" aria-label="{escape(caption)}">{parts}'
        f"<figcaption>{escape(caption)}</figcaption></figure></attempt-explorer>"
    )


def _attempt_html(attempt: Attempt, verdict: Verdict, link: Callable[[str], str]) -> str:
    rows = "".join(_row_html(finding) for finding in verdict.findings)
    reduced = [finding for finding in verdict.findings if finding.is_reduced]
    paid = f'<p class="tfc-attempt-paid"><small>{describe_reduced_points(reduced)}</small></p>' if reduced else ""
    diagnoses = "".join(_diagnosis_html(diagnosis, verdict, link) for diagnosis in verdict.diagnoses)
    return (
        f'<section class="tfc-attempt" aria-label="{escape(attempt.title)}"><p class="tfc-attempt-title">{escape(attempt.title)}</p>'
        f'<div class="tfc-attempt-code">{_highlight_code(attempt.code)}</div>'
        f'<div class="tfc-attempt-verdict"><p class="tfc-attempt-score"><code>check({escape(verdict.exercise)})</code> '
        f"<strong>{verdict.score:g} of {verdict.max_score:g} points</strong></p>"
        f'{diagnoses}<ul class="tfc-attempt-rows">{rows}</ul>{paid}</div></section>'
    )


def _diagnosis_html(diagnosis: Diagnosis, verdict: Verdict, link: Callable[[str], str]) -> str:
    address = f"{link(f'chapters/{verdict.chapter}/lesson')}#{diagnosis.read}"
    return (
        f'<p class="tfc-attempt-diagnosis"><strong>This looks like:</strong> {escape(diagnosis.explanation)} '
        f'Read again: <a href="{escape(address)}">{escape(diagnosis.heading)}</a></p>'
    )


def _row_html(finding: Finding) -> str:
    state = finding.state.replace(" ", "-")
    observed = f"<small>{escape(finding.message)}</small>" if finding.mark == "✗" else ""
    points = f"({finding.points:.3g})" if finding.is_reduced else f"{finding.earned:.3g}/{finding.points:.3g}"
    return (
        f'<li class="{state}"><span aria-hidden="true">{finding.mark}</span><span class="visually-hidden">{finding.state}: </span>'
        f"<span>{escape(finding.title)}{observed}</span> <b>{points}</b></li>"
    )


def _highlight_code(code: str) -> str:
    from sphinx.highlighting import PygmentsBridge

    return str(PygmentsBridge("html").highlight_block(code, "python"))
