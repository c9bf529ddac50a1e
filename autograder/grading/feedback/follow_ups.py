"""Find exercises that failed only because they call another exercise that is wrong.

Three conditions must hold: the student's code calls the other exercise, the other exercise is wrong, and every failed row has the same
known mistake or the same error as the other exercise. Equal values or a call alone are not sufficient.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from autograder.checking.verdict import NOT_JUDGED, NOT_WRITTEN, Finding, Verdict

_ERROR = "it raised "
_STUB = "NotImplementedError"
_NO_CALL = frozenset({".", "def", "class"})
# The tokenizer takes quadratic time for a line, so code with longer lines, and a notebook with more code, is not read.
_LONGEST_LINE, _LONGEST_SOURCE = 400, 200_000


@dataclass(frozen=True)
class Outcome:
    """The outcome of one exercise of a submission."""

    name: str  # the exercise
    source: str  # the student's code for it
    verdict: Verdict | None  # its verdict; None for an exercise without a verdict


def find_causes(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Map each failed exercise to the earlier exercise that caused its failure, following chains to the first cause.

    Args:
        outcomes: the exercises in the notebook's order; one can only follow from an earlier one.
    """
    if sum(len(outcome.source) for outcome in outcomes) > _LONGEST_SOURCE:
        return {}
    causes: dict[str, str] = {}
    wrong: dict[str, Verdict] = {}
    for outcome in outcomes:
        verdict = outcome.verdict
        if verdict is None or verdict.passed:
            continue
        if cause := _find_cause(outcome, verdict, wrong):
            causes[outcome.name] = causes.get(cause, cause)
        wrong[outcome.name] = verdict
    return causes


def _find_cause(outcome: Outcome, verdict: Verdict, wrong: Mapping[str, Verdict]) -> str:
    """Return the first wrong exercise that the code calls and that explains all failures here; empty if none does."""
    failures = _failure_keys(verdict)
    # A stub's own error is the same in every exercise that nobody has written.
    if not failures or _STUB in outcome.source:
        return ""
    called = _called_names(outcome.source)
    return next((name for name in wrong if name in called and failures <= _failure_keys(wrong[name])), "")


def _failure_keys(verdict: Verdict) -> set[str]:
    """Return a comparable key for each failed row: its known mistake, its error, or a key unique to the row."""
    return {_failure_key(finding, verdict.exercise) for finding in verdict.findings if _is_judged_failure(finding)}


def _is_judged_failure(finding: Finding) -> bool:
    return not finding.passed and finding.message != NOT_JUDGED


def _failure_key(finding: Finding, exercise: str) -> str:
    if finding.diagnosis is not None:
        return f"mistake {finding.diagnosis.name}"
    # "Not written yet" is what NotImplementedError reads as, and a caller passes it on as it does any other error.
    if finding.message == NOT_WRITTEN or finding.message.startswith(_ERROR):
        return finding.message
    return f"row {finding.aspect} of {exercise}"


def _called_names(source: str) -> set[str]:
    """Return the names that the code calls; empty for code that cannot be tokenized.

    Tokens, not a syntax tree: hostile text could overflow a parser's stack.
    """
    if max(map(len, source.splitlines()), default=0) > _LONGEST_LINE:
        return set()
    with suppress(tokenize.TokenError, SyntaxError):
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        triples = zip(["", *(token.string for token in tokens)], tokens, tokens[1:], strict=False)
        return {
            name.string
            for before, name, after in triples
            if name.type == tokenize.NAME and after.string == "(" and before not in _NO_CALL
        }
    return set()
