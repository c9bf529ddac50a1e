"""Make families of exam questions; a family has one question for each version of an exam.

The questions of a family are about the same exercise and have the same kind. They differ in the mistake and in the numbers. Only the
code distinguishes the right option, because each version has a different right option among the same four. So the longest option, or the
most unusual one, is right in one version of four.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from autograder.quizzes.exam.evidence import Evidence, InputResult, ShownMistake, answer_text
from autograder.quizzes.exam.shown_code import changed_lines, list_used_checks, list_used_names
from autograder.quizzes.questions.question import OPTIONS, MultipleChoice, group_by_key

_ATTEMPTS, _DRAWS = 400, 3
_FIRST_WEIGHTS = re.compile(r"\binit\.|normal_\(|uniform_\(|zeros_\(|ones_\(|fill_\(|nn\.Parameter|torch\.randn?\(")

#: The kinds of questions, each with the subject of its question.
KINDS = {
    "diagnosis": "which mistake the code makes",
    "input": "which input shows it",
    "result": "what it returns",
}


@dataclass(frozen=True)
class ExamQuestion(MultipleChoice):
    """A multiple-choice question about code with one mistake."""

    kind: str  # one of ``KINDS``
    chapter: str  # the exercise's chapter
    exercise: str
    task: str  # the first sentences of the exercise's docstring: what a right solution computes
    uses: tuple[str, ...]  # names of the course that the code uses
    checks: tuple[str, ...]  # names of used helpers that only check inputs
    code: str
    question: str
    options: tuple[str, ...]  # the options in display order
    key: int  # the index of the right option
    mistake: str  # the name of the known mistake in the code
    explanation: str  # the diagnosis that the check gives for the code
    proof: str  # the result of the run that proves the key
    refuted: tuple[str, ...]  # for each option, the result that refutes it; empty for the key

    def place_key(self, position: int, rng: random.Random) -> ExamQuestion:
        """Return the question with its options shuffled and the right option at a given position."""
        others = [index for index in range(len(self.options)) if index != self.key]
        order = rng.sample(others, len(others))
        order.insert(position, self.key)
        return self.reorder(order)

    def reorder(self, order: Sequence[int]) -> ExamQuestion:
        """Return the question with its options in another order, given as indices."""
        return replace(
            self,
            options=tuple(self.options[index] for index in order),
            refuted=tuple(self.refuted[index] for index in order),
            key=list(order).index(self.key),
        )


Family: TypeAlias = Sequence[ExamQuestion]
#: A function that makes a family from evidence, a random generator, the exam's seed and the number of versions; None if that is impossible.
Kind: TypeAlias = Callable[[Evidence, random.Random, object, int], Family | None]


def ask_diagnosis(evidence: Evidence, rng: random.Random, seed: object, versions: int) -> Family | None:
    """Make questions that ask which of four known mistakes the code has."""
    for _ in range(_DRAWS):
        four = rng.sample(evidence.mistakes, OPTIONS)
        refuted = [[_describe_refutation(evidence, one, other, seed) for other in four] for one in four]
        if all(text for i, row in enumerate(refuted) for j, text in enumerate(row) if i != j):
            return [
                _make_question(
                    *("diagnosis", evidence, four[v], "Which mistake does this code make?"),
                    options=[one.mistake.explanation for one in four],
                    key=v,
                    proof=f"The check of this code gives exactly this diagnosis. {_describe_first_failure(four[v])}",
                    texts=refuted[v],
                )
                for v in range(versions)
            ]
    return None


def _describe_refutation(evidence: Evidence, one: ShownMistake, other: ShownMistake, seed: object) -> str:
    """Describe how the answers of two mistakes differ; empty if they are equal."""
    title = "" if one is other else evidence.find_difference(one, other.mistake)
    if not title:
        return ""
    i, j = evidence.mistakes.index(one), evidence.mistakes.index(other)
    for result in evidence.run_inputs(seed, 0):
        texts = answer_text(result.wrong[i]), answer_text(result.wrong[j])
        if result.input.complete and all(texts) and texts[0] != texts[1]:
            return f"With this mistake, {result.input.text} would give: {texts[1]}. The code gives: {texts[0]}."
    return f"Code with this mistake answers otherwise in the row “{title}”"


def ask_input(evidence: Evidence, rng: random.Random, seed: object, versions: int) -> Family | None:
    """Make questions that ask which of four inputs shows the mistake, or which is the only input that does not."""
    rounds = [_results_by_place(evidence, seed, version) for version in range(versions)]
    places = [place for place in rounds[0] if all(place in one for one in rounds)]
    tables = [{place: _split_mistakes(evidence, one[place]) for place in places} for one in rounds]
    best: tuple[Sequence[tuple[str, int]], Sequence[_Choice]] = ([], [])
    for _ in range(_ATTEMPTS if len(places) >= OPTIONS else 0):
        four = rng.sample(places, OPTIONS)
        if all(len({one[place].input.text for place in four}) == OPTIONS for one in rounds):
            chosen = _choose_for_versions([[table[place] for place in four] for table in tables], rng)
            best = max(best, (four, chosen), key=lambda pair: len({key for _, key, _ in pair[1]}))
        if len({key for _, key, _ in best[1]}) == versions:
            break
    if len({key for _, key, _ in best[1]}) <= versions // 2:
        return None
    rows = [[one[place] for place in best[0]] for one in rounds]
    return [_make_input_question(evidence, row, *choice) for row, choice in zip(rows, best[1], strict=True)]


# A mistake, the position of the input that differs from the three others, and whether this input shows the mistake.
_Choice: TypeAlias = tuple[int, int, bool]


def _results_by_place(evidence: Evidence, seed: object, version: int) -> dict[tuple[str, int], InputResult]:
    return {one.input.place: one for one in evidence.run_inputs(seed, version)}


def _split_mistakes(evidence: Evidence, result: InputResult) -> tuple[set[int], set[int]]:
    """Return the mistakes that an input shows, and the mistakes that it leaves unnoticed."""
    every = range(len(evidence.mistakes))
    shown = {m for m in every if result.shows(m)}
    # A fresh instance's answer depends on its initial weights, which the input does not contain.
    fair = {m for m in every if not _changes_first_weights(evidence, m)}
    return {m for m in shown & fair if not result.has_equal_text(m)}, fair - shown


def _changes_first_weights(evidence: Evidence, mistake: int) -> bool:
    changed = set(evidence.mistakes[mistake].code.lines) ^ set(evidence.right.lines)
    return any(_FIRST_WEIGHTS.search(line) for line in changed)


def _choose_for_versions(tables: Sequence[Sequence[tuple[set[int], set[int]]]], rng: random.Random) -> list[_Choice]:
    """Choose a mistake and a key for each version, with different keys if possible; return an empty list if a version has none."""
    chosen: list[_Choice] = []
    for table in tables:
        usable: list[_Choice] = []
        for key in range(OPTIONS):
            for shows in (True, False):
                one = table[key][0 if shows else 1]
                others = [table[other][1 if shows else 0] for other in range(OPTIONS) if other != key]
                usable += [(m, key, shows) for m in sorted(one.intersection(*others))]
        usable = [choice for choice in rng.sample(usable, len(usable)) if choice[0] not in {m for m, _, _ in chosen}]
        if not usable:
            return []
        used = [key for _, key, _ in chosen]
        chosen.append(min(usable, key=lambda choice: used.count(choice[1])))
    return chosen


def _make_input_question(
    evidence: Evidence, results: Sequence[InputResult], mistake: int, key: int, shows: bool
) -> ExamQuestion:
    text = "differently from a right solution" if shows else "as a right solution does"
    texts = [_compare_answers(one, mistake) for one in results]
    question = f"For one of these inputs only, this code answers {text}. Which one?"
    options = [one.input.text for one in results]
    return _make_question("input", evidence, evidence.mistakes[mistake], question, options, key, texts[key], texts)


def _compare_answers(result: InputResult, mistake: int) -> str:
    right, wrong = answer_text(result.right), answer_text(result.wrong[mistake])
    if not result.shows(mistake):
        return f"Both give the same answer{f': {right}' if right else ''}."
    if right and wrong and right != wrong:
        return f"The code gives: {wrong}. Right is: {right}."
    return "The answers differ."


def ask_result(evidence: Evidence, rng: random.Random, seed: object, versions: int) -> Family | None:
    """Make questions that ask what the code returns for a small input."""
    rounds = [_results_by_place(evidence, seed, version) for version in range(versions)]
    first = {place: one for place, one in rounds[0].items() if one.input.complete}
    places = [place for place in first if all(place in other for other in rounds)]
    for place in rng.sample(places, len(places)):
        results = [one[place] for one in rounds]
        if not all(one.input.complete for one in results):
            continue
        usable = [m for m in range(len(evidence.mistakes)) if all(_is_distinguishable(one, m) for one in results)]
        four: list[int] = []
        for m in rng.sample(usable, len(usable)):
            if len(four) < OPTIONS and all(
                answer_text(one.wrong[m]) not in [answer_text(one.wrong[o]) for o in four] for one in results
            ):
                four.append(m)
        if len(four) == OPTIONS:
            return [_make_result_question(evidence, results[v], four, v) for v in range(versions)]
    return None


def _is_distinguishable(result: InputResult, mistake: int) -> bool:
    return answer_text(result.wrong[mistake]) not in ("", answer_text(result.right))


def _make_result_question(evidence: Evidence, result: InputResult, four: Sequence[int], key: int) -> ExamQuestion:
    texts = [f"The code with the mistake “{evidence.mistakes[m].mistake.name}” gives this." for m in four]
    question = f"For {result.input.text}: what does this code return?"
    options = [answer_text(result.wrong[m]) for m in four]
    proof = f"The run gave this. A right solution gives: {answer_text(result.right)}."
    return _make_question("result", evidence, evidence.mistakes[four[key]], question, options, key, proof, texts)


def _describe_first_failure(one: ShownMistake) -> str:
    finding = next((finding for finding in one.verdict.findings if not finding.passed), None)
    return "" if finding is None else f"The first failed row: “{finding.title}” {finding.message}"


def _make_question(
    kind: str,
    evidence: Evidence,
    one: ShownMistake,
    question: str,
    options: Sequence[str],
    key: int,
    proof: str,
    texts: Sequence[str],
) -> ExamQuestion:
    """Make a question; ``texts`` refute each option except the key."""
    return ExamQuestion(
        kind=kind,
        chapter=evidence.exercise.chapter,
        exercise=evidence.exercise.name,
        task=task_sentence(evidence),
        uses=tuple(list_used_names(one.code)),
        checks=tuple(list_used_checks(one.code)),
        code=one.code.source,
        question=question,
        options=tuple(options),
        key=key,
        mistake=one.mistake.name,
        explanation=one.mistake.explanation,
        proof=proof,
        refuted=tuple("" if index == key else text for index, text in enumerate(texts)),
    )


def task_sentence(evidence: Evidence) -> str:
    """Return the first paragraph of the exercise's docstring in one line."""
    text = inspect.getdoc(evidence.exercise.reference) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


_MAKERS: dict[str, Kind] = {"diagnosis": ask_diagnosis, "input": ask_input, "result": ask_result}


def make_family(kind: str, evidence: Evidence, rng: random.Random, seed: object, versions: int) -> Family | None:
    """Make a family of questions of one kind, about mistakes that change the same lines or have the same class, if possible."""
    made = (_MAKERS[kind](evidence.restrict_to(pool), rng, seed, versions) for pool in _list_pools(evidence, rng))
    return next(filter(None, made), None)


def _list_pools(evidence: Evidence, rng: random.Random) -> list[Sequence[ShownMistake]]:
    """Return pools of mistakes: with the same changed lines, so that no version reveals another's key; of the same class; and all."""
    by_place = group_by_key(evidence.mistakes, lambda one: changed_lines(evidence.right, one.code))
    by_class = group_by_key(evidence.mistakes, lambda one: one.mistake.kind.replace("rare ", ""))
    pools = [pool for groups in (by_place, by_class) for pool in rng.sample(list(groups.values()), len(groups))]
    return [pool for pool in [*pools, evidence.mistakes] if len({one.mistake.explanation for one in pool}) >= OPTIONS]
