"""Measure the checks: every known mistake must score within its class's band and be recognised.

``python -m tools.quality`` measures all exercises. With names of exercises it measures only these, and prints their tables.
It writes the results to ``docs/grader-quality/quality.json``, and from there a page per chapter. The exit code is 1 if a mistake is
outside its band or is not recognised. ``--pages`` measures nothing, and writes the pages again. ``--seeds 8`` lists mistakes whose points
depend on the seed of the hidden tests.

``--mutants`` mutates the reference of each exercise, one change at a time, and prints the mutants with full points.
``--coverage`` prints the branches that no test executes. ``--chapter 07`` restricts both to one chapter. The exit code is 1 if the
exercise's TOML file does not explain one of them. ``--toml`` prints entries for it, and ``--write`` updates the committed measures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.checking.decision import CollectedAnswers, decide, judge_answers
from autograder.checking.exercise import BANDS, Exercise, Misconception
from autograder.checking.subject import LocalSubject
from autograder.checking.verdict import Verdict
from autograder.checks import exercises
from autograder.parallel import parallel_map
from tools.quality import record
from tools.quality.measure import Measures
from tools.quality.nearest_answer import points_by_lookup
from tools.quality.quality_record import MistakeResult, Quality, from_record, write_record

FOLDER = Path(__file__).parents[2] / "docs" / "grader-quality"
COMMAND = "python -m tools.quality"


def examine(exercise: Exercise, *, seed: int = 0) -> Quality:
    """Check every known mistake of an exercise, and solutions that compute nothing.

    Args:
        seed: the seed of the inputs.
    """
    outcomes = tuple(_outcome(exercise, item, seed) for item in exercise.misconceptions)
    caught_by = {aspect for outcome in outcomes for aspect in outcome.caught_by}
    return Quality(
        exercise=exercise.name,
        chapter=exercise.chapter,
        points=exercise.points,
        outcomes=outcomes,
        unproven=tuple(aspect.name for aspect in exercise.rows if aspect.name not in caught_by),
        for_nothing=max(_put(exercise, idle, seed, hidden=True).score for idle in trivial_solutions(exercise)),
        by_lookup=points_by_lookup(exercise, seed=seed),
    )


def _examine_known(name_and_seed: tuple[str, int]) -> Quality:
    name, seed = name_and_seed
    return examine(exercises()[name], seed=seed)


def seed_sensitivity(seeds: Sequence[int], names: Sequence[str]) -> Iterator[str]:
    """Yield a line for each known mistake that fails other rows, or gets another diagnosis, with another seed.

    The seed is a course's secret. It decides the questions, and must not decide the cost of a mistake.

    Args:
        seeds: the seeds to compare.
        names: the exercises.
    """
    examined = iter(parallel_map(_examine_known, [(name, seed) for name in names for seed in seeds]))
    for name in names:
        by_seed = [next(examined).outcomes for _ in seeds]
        for outcomes in zip(*by_seed, strict=True):
            ends: dict[str, list[int]] = {}
            for seed, outcome in zip(seeds, outcomes, strict=True):
                end = f"fails {', '.join(outcome.caught_by)} (keeps {outcome.all:.0%}), told {', '.join(outcome.taken_for)}"
                ends.setdefault(end, []).append(seed)
            if len(ends) > 1:
                results = "; ".join(f"{end} with seed {', '.join(map(str, those))}" for end, those in ends.items())
                yield f"{name}: {outcomes[0].mistake}: {results}"


def trivial_solutions(exercise: Exercise) -> list[Callable[..., Any]]:
    """Return solutions that return None, their first argument, or zeros of its shape.

    A class keeps its constructor, which holds no more than layers. They may keep what ``BANDS`` has for nothing, a class twice as much.
    """
    answers: tuple[Callable[[Any], Any], ...] = (lambda first: None, lambda first: first, lambda first: first * 0)
    return [_idle(exercise, answer) for answer in answers]


def _idle(exercise: Exercise, answer: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return answer([*args, *kwargs.values()][0])

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    if not isinstance(exercise.reference, type):
        return function
    return type(exercise.name, (exercise.reference,), {"forward": forward})


def _outcome(exercise: Exercise, item: Misconception, seed: int) -> MistakeResult:
    visible, graded = (verdict_of(exercise, item, seed=seed, hidden=hidden) for hidden in (False, True))
    return MistakeResult(
        mistake=item.name,
        kind=item.kind,
        explanation=item.explanation,
        visible=visible.score / visible.max_score,
        all=graded.score / graded.max_score,
        caught_by=tuple(finding.aspect for finding in graded.findings if not finding.passed),
        taken_for=tuple(diagnosis.name for diagnosis in graded.diagnoses),
    )


def verdict_of(exercise: Exercise, item: Misconception, *, seed: int = 0, hidden: bool = True) -> Verdict:
    """Return the verdict on a known mistake from its cached answers."""
    sheet = exercise.sheet(hidden=hidden, seed=seed)
    index = next(i for i, other in enumerate(exercise.misconceptions) if other is item)
    return judge_answers(
        sheet, CollectedAnswers(answers=[sheet.list_mistake_answers(index, j) for j in range(len(sheet.sections))])
    )


def _put(exercise: Exercise, candidate: Callable[..., Any], seed: int, *, hidden: bool) -> Verdict:
    return decide(exercise.sheet(hidden=hidden, seed=seed), LocalSubject(candidate))


def pages(qualities: Iterable[Quality], measured: Mapping[str, Measures] | None = None) -> dict[str, str]:
    """Return the pages by file name: a summary and one page per chapter. They depend only on the arguments.

    Args:
        qualities: the results of the known mistakes.
        measured: branches and mutants of each exercise; by default the committed measures.
    """
    qualities = list(qualities)
    measured = record.committed() if measured is None else measured
    figures = {quality.exercise: _Figures.of(quality.exercise, measured.get(quality.exercise)) for quality in qualities}
    outcomes = [outcome for quality in qualities for outcome in quality.outcomes]
    lines = [
        _GENERATED,
        "",
        "# Does the grader grade?",
        "",
        "A check is only as good as the wrong solutions that it catches. To find those that nobody has thought of, every reference is",
        "changed in one place by standard operators: a comparison, a constant, a condition, an error that is not raised, an argument",
        "left out. A guard against wrong input is changed only where the docstring promises an error. Such a *mutant* is *killed* if",
        "the check gives it less than all the points. One that nobody could tell from the",
        "reference is recorded as *equivalent*, with the reason.",
        "",
        *_headline(list(figures.values())),
        "",
        "For every exercise, `autograder/checks` also declares *known mistakes*: wrong implementations of the kind that students write.",
        "",
        f"- Exercises: {len(qualities)}. Known mistakes: {len(outcomes)}.",
        f"- They keep what their class may keep: {_share(sum(outcome.caught for outcome in outcomes), len(outcomes))}.",
        f"- They are recognised as what they are, and as nothing else: {_share(sum(o.recognised for o in outcomes), len(outcomes))}.",
        "",
        "| a mistake of class | keeps |",
        "|---|---|",
        *(f"| {kind} | {low:.0%} to {high:.0%} |" for kind, (low, high) in BANDS.items()),
        "",
        "*For nothing* is the most that a solution earns which computes nothing: it returns None, its first argument, or zeros. *Unproven*",
        "rows are failed by no known mistake: nothing here shows that they can fail. *By lookup* is the most that a solution earns which",
        "answers every question from the recorded answers in the student package.",
        "",
        "| exercise | points | branches | mutants killed | equivalent | mistakes | in band | recognised | for nothing "
        "| by lookup | unproven rows |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
        *(_summary(quality, figures[quality.exercise]) for quality in qualities),
        "",
    ]
    texts = {"README.md": "\n".join(lines)}
    for chapter in dict.fromkeys(quality.chapter for quality in qualities):
        texts[f"{chapter}.md"] = "\n".join(
            [
                _GENERATED,
                "",
                f"# Known mistakes of chapter {chapter}",
                "",
                "*Visible* questions are those that students can ask as often as they like; the grader asks *all*: those, and hidden",
                "ones with other sizes and numbers.",
                "",
                *(line for quality in qualities if quality.chapter == chapter for line in _section(quality)),
            ]
        )
    return texts


_GENERATED = f"<!-- Generated by `{COMMAND}` from autograder/checks; change the checks, not this page. -->"


def _share(part: int, total: int) -> str:
    return f"{part} of {total} ({100 * part / total if total else 100:.0f} %)"


@dataclass(frozen=True)
class _Figures:
    """The numbers of branches and mutants of one exercise; all 0 before the first measurement."""

    branches: int = 0
    run: int = 0
    mutants: int = 0
    killed: int = 0
    equivalent: int = 0

    @classmethod
    def of(cls, name: str, measures: Measures | None) -> _Figures:
        if measures is None:
            return cls()
        alive, unknown = len(measures.survivors), len(record.unexplained(exercises()[name], measures))
        run = measures.branches - len(measures.missed)
        return cls(measures.branches, run, measures.mutants, measures.mutants - alive, alive - unknown)


def _headline(figures: Sequence[_Figures]) -> list[str]:
    mutants, branches = sum(f.mutants for f in figures), sum(f.branches for f in figures)
    killed, equivalent = sum(f.killed for f in figures), sum(f.equivalent for f in figures)
    if not mutants:
        return ["- Mutants and branches are not measured yet."]
    return [
        f"- **Mutants killed: {_share(killed, mutants)}.** Recorded as equivalent: {_share(equivalent, mutants)}. "
        f"Neither, and so a hole to be filled: {mutants - killed - equivalent}.",
        f"- **Branches of the references that the questions run: {_share(sum(f.run for f in figures), branches)}.**",
    ]


def _summary(quality: Quality, figures: _Figures) -> str:
    caught = sum(outcome.caught for outcome in quality.outcomes)
    recognised = sum(outcome.recognised for outcome in quality.outcomes)
    return (
        f"| [`{quality.exercise}`]({quality.chapter}.md#{quality.exercise.lower()}) | {quality.points:g} "
        f"| {figures.run} of {figures.branches} | {figures.killed} of {figures.mutants} | {figures.equivalent} "
        f"| {len(quality.outcomes)} | {caught} | {recognised} | {quality.for_nothing:g} "
        f"| {quality.by_lookup:g} | {', '.join(quality.unproven) or '–'} |"
    )


def _section(quality: Quality) -> list[str]:
    return [
        f"## `{quality.exercise}`",
        "",
        f"{quality.points:g} points; for nothing at most {quality.for_nothing:g}.",
        "",
        "| known mistake | class | keeps, visible | keeps, all | fails | taken for | what the student is told |",
        "|---|---|---:|---:|---|---|---|",
        *map(_row, quality.outcomes),
        "",
    ]


def _row(outcome: MistakeResult) -> str:
    taken_for = "itself" if outcome.recognised else ", ".join(outcome.taken_for) or "nothing known"
    caught_by = ", ".join(outcome.caught_by) or "**nothing**"
    explanation = outcome.explanation.replace("|", "\\|")
    shares = f"{outcome.visible:.0%} | {outcome.all:.0%}"
    return f"| {outcome.mistake} | {outcome.kind} | {shares} | {caught_by} | {taken_for} | {explanation} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write results and pages; 0 if every mistake is in its band and recognised, else 1."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Put every known mistake to its check.")
    parser.add_argument("names", nargs="*", help="measure these exercises only, and print their tables")
    parser.add_argument(
        "--pages", action="store_true", help="measure nothing; write the pages from the committed results"
    )
    parser.add_argument("--seeds", type=int, default=0, help="write nothing; compare so many seeds, half a minute each")
    parser.add_argument("--mutants", action="store_true", help="print changes of the references that no check finds")
    parser.add_argument(
        "--coverage", action="store_true", help="print branches of the references that no question runs"
    )
    parser.add_argument("--chapter", metavar="NN", help="with --mutants or --coverage: the exercises of this chapter")
    parser.add_argument("--toml", action="store_true", help="with --mutants: print tables [[equivalent]] to paste")
    parser.add_argument("--write", action="store_true", help="with --mutants: update mutants.json")
    options = parser.parse_args(arguments)
    if options.mutants or options.coverage:
        from tools.quality.command import run  # only developers have coverage.py

        if unknown := set(options.names) - set(exercises()):
            parser.error(f"there is no exercise named {', '.join(sorted(unknown))}")
        names = options.names or [n for n, e in exercises().items() if e.chapter.startswith(options.chapter or "")]
        return run(names, mutants=options.mutants, coverage=options.coverage, toml=options.toml, write=options.write)
    if options.seeds:
        differences = list(seed_sensitivity(range(options.seeds), options.names or list(exercises())))
        print("\n".join(differences) or f"Every known mistake keeps the same with each of {options.seeds} seeds.")
        return 1 if differences else 0
    names = [] if options.pages else options.names or list(exercises())
    qualities = parallel_map(_examine_known, [(name, 0) for name in names])
    if options.names:
        print("\n".join(line for quality in qualities for line in _section(quality)))
    faults = [fault for quality in qualities for fault in faults_of(quality)]
    print("\n".join(faults))
    _write(qualities)
    return 1 if faults else 0


def faults_of(quality: Quality) -> list[str]:
    """Report mistakes of an exercise that are outside their band or not recognised, and trivial solutions that score too much."""
    rows = [_row(outcome) for outcome in quality.outcomes if not (outcome.caught and outcome.recognised)]
    faults = [f"{quality.exercise}: {row}" for row in rows]
    most = BANDS["nothing"][1] * (2 if isinstance(exercises()[quality.exercise].reference, type) else 1)
    if quality.for_nothing > most * quality.points:
        faults.append(f"{quality.exercise}: doing nothing keeps {quality.for_nothing:g} of {quality.points:g} points")
    if quality.by_lookup > most * quality.points:
        faults.append(f"{quality.exercise}: recorded answers earn {quality.by_lookup:g} of {quality.points:g} points")
    return faults


def _write(qualities: Iterable[Quality]) -> None:
    """Add results to the committed ones, and write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    record = write_record(FOLDER, qualities, list(exercises()))
    texts = pages(from_record(exercises()[name], record[name]) for name in record)
    for path in FOLDER.glob("*.md"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
