"""Run all test cases of a sheet on a candidate, and decide on rows, points and known mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from autograder.checking.diagnosis import Problem, diagnose
from autograder.checking.example import describe_wrong_answer, format_case_prefix
from autograder.checking.hidden_messages import FORBIDDEN, WRONG
from autograder.checking.judges import JUDGES, is_wrong_result, judge
from autograder.checking.request import Observation
from autograder.checking.rows import Probe
from autograder.checking.sheet import Answers, Section, Sheet, find_first_wrong, run_probes
from autograder.checking.subject import Subject, UsesReferenceError
from autograder.checking.verdict import FOLD, NOT_JUDGED, NOT_WRITTEN, Diagnosis, Finding, Verdict

RIGHT = "as it should be"
# So many inputs that should raise an error are shown at once.
_MOST_EXAMPLES = 6
# Only the examined code itself interrupts a check, and then its calls so far are lost.
INTERRUPTED = "it raised KeyboardInterrupt while the check recorded which functions it calls"


@dataclass(frozen=True)
class CollectedAnswers:
    """A subject's answers to a sheet's test cases."""

    refusal: str | None = None  # why it is refused before anything else is asked, or None
    answers: Sequence[Answers] = ()  # its answers, a list for each section; none if it is refused


def decide(sheet: Sheet, subject: Subject) -> Verdict:
    """Check a subject against a sheet, and return the verdict."""
    return judge_answers(sheet, collect_answers(sheet, subject))


def has_right_numbers(sheet: Sheet, subject: Subject) -> bool:
    """Return whether a subject passes all rows of numbers; side rows are ignored."""
    findings = decide(sheet, subject).findings
    return all(finding.passed or section.side for section, finding in zip(sheet.sections, findings, strict=True))


def find_first_failure(sheet: Sheet, subject: Subject) -> str | None:
    """Return the name of the first row that a subject fails, or ``"rules"``; None if it gets all the points.

    It stops at the first wrong answer, so it is much faster than a verdict.
    """
    if _find_broken_rule(sheet, subject):
        return "rules"
    for section in sheet.sections:
        observations: list[Sequence[Observation]] = []
        if _find_problem(section, _answer_one_by_one(subject, section, observations)) is not None:
            return section.aspect
        if _find_refusal(observations, _forbidding_rules(sheet)):
            return "rules"
    return None


def _answer_one_by_one(
    subject: Subject, section: Section, observations: list[Sequence[Observation]]
) -> Iterator[Sequence[Observation]]:
    for probe in section.probes:
        observations.append(run_probes(subject, [[probe]])[0][0])
        yield observations[-1]


def collect_answers(sheet: Sheet, subject: Subject) -> CollectedAnswers:
    """Run all test cases of a sheet on a subject, and return the answers."""
    if refusal := _find_broken_rule(sheet, subject):
        return CollectedAnswers(refusal)
    return CollectedAnswers(
        answers=run_probes(subject, [section.probes for section in sheet.sections], forbidden=sheet.forbidden)
    )


def judge_answers(sheet: Sheet, collected: CollectedAnswers) -> Verdict:
    """Judge a subject's answers and return the verdict, which depends on nothing else."""
    answers = collected.answers
    refusal = collected.refusal or _find_refusal_in_rows(sheet, answers)
    if refusal:
        return _build_verdict(sheet, [Problem(refusal)] * len(sheet.sections), [None] * len(sheet.sections))
    problems = [
        _find_problem(section, observations) for section, observations in zip(sheet.sections, answers, strict=True)
    ]
    return _build_verdict(sheet, problems, diagnose(sheet, answers, problems))


def _forbidding_rules(sheet: Sheet) -> list[Probe]:
    return [probe for probe in sheet.rules if probe.options.get("names")]


def _find_broken_rule(sheet: Sheet, subject: Subject) -> str | None:
    (answers,) = run_probes(subject, [sheet.rules], forbidden=sheet.forbidden)
    for probe, observations in zip(sheet.rules, answers, strict=True):
        if any(observation.unfinished for observation in observations):
            return NOT_WRITTEN
        if any((observation.error or "").startswith(KeyboardInterrupt.__name__) for observation in observations):
            return INTERRUPTED
        if refusal := _find_refusal([observations], [probe]):
            return refusal
    return None


def _find_refusal(answers: Answers, rules: Sequence[Probe]) -> str | None:
    """Return the message for a rule that a subject broke, even in a failing answer; None if it broke none."""
    flat = [observation for observations in answers for observation in observations]
    broken = (JUDGES[rule.judge](flat, flat, rule.options) for rule in rules)
    return _find_borrowed_solution(answers) or next(filter(None, broken), None)


def _find_refusal_in_rows(sheet: Sheet, answers: Sequence[Answers]) -> str | None:
    """Return the message for a rule that was broken in the rows' test cases, without details for hidden ones."""
    rules = _forbidding_rules(sheet)
    visible = [observations[: section.visible] for section, observations in zip(sheet.sections, answers, strict=True)]
    if refusal := next(filter(None, (_find_refusal(observations, rules) for observations in visible)), None):
        return refusal
    return FORBIDDEN if any(_find_refusal(observations, rules) for observations in answers) else None


def _find_borrowed_solution(answers: Answers) -> str | None:
    """Return the message for running the course's own solution; None if the subject did not."""
    errors = (observation.error or "" for observations in answers for observation in observations)
    return next((error.partition(": ")[2] for error in errors if error.startswith(UsesReferenceError.__name__)), None)


def _find_problem(section: Section, answers: Iterable[Sequence[Observation]]) -> Problem | None:
    failure = find_first_wrong(section, answers)
    if failure is None:
        return None
    number, observations, message = failure
    if section.visible is not None and number >= section.visible:
        return Problem(WRONG)
    probe, expected = section.probes[number], section.expected[number]
    about_numbers = is_wrong_result(probe.judge, probe.requests, observations, expected)
    case = format_case_prefix([one.requests[0] for one in section.probes[: section.visible]], probe.requests[0])
    shown = _build_example(probe, observations, expected)
    if probe.judge == "answers" and isinstance(answers, Sequence):
        valid = not any(one.error for one in expected)
        if not valid and len(examples := _examples_of_missing_errors(section, answers)) > 1:
            counted = f"{len(examples)} wrong inputs raise no error, or another one"
            return Problem(counted, "\n".join(filter(None, examples[:_MOST_EXAMPLES])))
        case = f"{case.removesuffix(': ')}, which is valid: " if case and valid else case
    return Problem(message, shown, case, about_numbers)


def _examples_of_missing_errors(section: Section, answers: Answers) -> list[str]:
    """Return an example for each visible input that should raise an error but does not raise that error."""
    return [
        _build_example(probe, observations, expected)
        for probe, observations, expected in list(zip(section.probes, answers, section.expected, strict=True))[
            : section.visible
        ]
        if judge(probe.judge, observations, expected, probe.options) is not None
    ]


def _build_example(probe: Probe, observations: Sequence[Observation], expected: Sequence[Observation]) -> str:
    if probe.judge not in ("matches", "matches_part", "shapes", "answers"):
        return ""
    try:
        return describe_wrong_answer(probe.judge, probe.requests, observations, expected, probe.options)
    except Exception:  # what a student returns may be made to break a comparison
        return ""


def _build_verdict(sheet: Sheet, problems: Sequence[Problem | None], diagnoses: Sequence[Diagnosis | None]) -> Verdict:
    pairs = list(zip(sheet.sections, problems, strict=True))
    numbers = [(section.points, problem is None) for section, problem in pairs if not section.side]
    all_points, right_points = sum(points for points, _ in numbers), sum(points for points, right in numbers if right)
    share = right_points / all_points if all_points else 1.0
    messages = Counter(problem.message for problem in problems if problem)
    findings = []
    for (section, problem), diagnosis in zip(pairs, diagnoses, strict=True):
        earned = 0.0 if problem else round(section.points * (share if section.side else 1.0), 2)
        message = RIGHT if share or not section.side else NOT_JUDGED
        unjudged = problem is not None and section.side and problem.about_numbers and share < 1
        if problem is not None:
            # A message that several rows share is shown once.
            case = problem.case if messages[problem.message] < FOLD else ""
            message = NOT_JUDGED if unjudged else f"{case}{problem.message}"
        findings.append(
            Finding(
                aspect=section.aspect,
                title=section.title,
                points=section.points,
                passed=problem is None,
                message=message,
                diagnosis=diagnosis,
                earned=earned,
                example=problem.example if problem and not unjudged else "",
            )
        )
    return Verdict(exercise=sheet.exercise, chapter=sheet.chapter, findings=tuple(findings))
