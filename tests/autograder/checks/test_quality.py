"""Grade the grader, for every exercise of the course: right solutions get everything, wrong ones lose, and each for its own reason.

Nothing here names an exercise: a new chapter is examined as soon as its checks, its notebook and its alternatives are there. Tests that
run code are believed as long as nothing changes that an exercise's verdicts depend on (``tests/believed.py``).
"""

import importlib
import importlib.util
import inspect
import pickle
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import tfcourse
from autograder.atomic_files import write_atomically
from autograder.checking.decision import CollectedAnswers, decide, judge_answers
from autograder.checking.recorded import read_sheet
from autograder.checking.request import content_key
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import check, exercise, exercises
from autograder.course.release.answer_keys import record_answer_keys
from tools.quality import __main__ as quality
from tools.quality import quality_record

pytestmark = pytest.mark.usefixtures("one_thread")

ROOT = Path(__file__).parents[3]
NAMES = list(exercises())
# Modules of the course's package that lessons use and nobody is asked to write.
NOT_EXERCISES = {
    "data",
    "dtypes",
    "lessons",
    "number_names",
    "pretrained",
    "translation",
}
# Functions that stand beside exercises and are given.
GIVEN = {"assign"}
# In bytes. A model has dozens of weights, and each known mistake gradients by all of them.
LARGEST_RECORDING, LARGEST_OF_A_MODEL = 500_000, 2_500_000
MODELS = {
    *("Seq2Seq", "AttentionSeq2Seq", "Transformer", "Bert", "Albert", "Gpt", "GptBlock", "T5", "VisionTransformer"),
    "Llama",
}
# Kinds of errors that code makes which is broken, and mistakes that consist in making one of them.
BROKEN = {"AttributeError", "NameError", "TypeError", "UnboundLocalError"}
ERRORS_BY_NATURE = {
    ("T5", "always tied"),
    ("T5", "gate not handed on"),
    ("BidirectionalEncoder", "no mask, no annotations"),
    ("MultiHeadAttention", "number of heads hidden"),
}

every_exercise = pytest.mark.parametrize("name", NAMES)
believed = pytest.mark.believed
visible_and_hidden = pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])


@pytest.fixture(scope="session")
def examined(shared_folder: Path) -> Callable[[str], quality.Quality]:
    """Return a function that measures the quality of one exercise's check, once for all processes of the test run."""
    folder = shared_folder / "quality"
    folder.mkdir(exist_ok=True)

    @cache
    def measured(name: str) -> quality.Quality:
        path = folder / name
        if not path.exists():
            write_atomically(path, pickle.dumps(quality.examine(exercise(name))), durable=False)
        result: quality.Quality = pickle.loads(path.read_bytes())
        return result

    return measured


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that gives the recorded visible sheet of an exercise as a file, as the students' package has it.

    The builds of students' packages in other tests find the recordings that these tests have made.
    """
    folder = tmp_path_factory.mktemp("recordings")

    @cache
    def written(name: str) -> Path:
        (data,) = record_answer_keys([exercise(name)], ROOT).values()
        (folder / name).write_bytes(data)
        return folder / name

    return written


@pytest.fixture(scope="session")
def recorded(recording: Callable[[str], Path]) -> Callable[[str], Sheet]:
    """Return a function that reads the recorded sheet of an exercise, once."""
    return cache(lambda name: read_sheet(recording(name)))


@pytest.fixture
def subjects(monkeypatch: pytest.MonkeyPatch) -> list[LocalSubject]:
    """Have all checks of a test examine a solution as one subject, which does nothing twice; return those subjects."""
    made: dict[tuple[Any, ...], LocalSubject] = {}
    kept: list[LocalSubject] = []

    def subject(*arguments: Any) -> LocalSubject:
        if arguments not in made:
            made[arguments] = LocalSubject(*arguments)
            kept.append(made[arguments])
        return made[arguments]

    monkeypatch.setattr("autograder.checks.LocalSubject", subject)
    return kept


@cache
def alternatives() -> dict[str, list[Callable[..., Any]]]:
    """Other right solutions of the exercises, from every module ``alternatives_*.py`` beside this one."""
    found: dict[str, list[Callable[..., Any]]] = {}
    for path in sorted(Path(__file__).parent.glob("alternatives_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, solutions in module.ALTERNATIVES.items():
            found.setdefault(name, []).extend(solutions)
    return found


def stub_of(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference as students get it: the same names, and every body raises NotImplementedError."""

    def unwritten(*args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    if not isinstance(reference, type):
        unwritten.__name__ = reference.__name__
        return unwritten
    methods = [method for method, value in vars(reference).items() if inspect.isfunction(value)]
    return type(reference.__name__, reference.__bases__, dict.fromkeys(methods, unwritten))


# --------------------------------------------------------------------------------------------------- wrong solutions


# A sentence begins with a capital letter, or with code: `low`, optimizer.step() is, 1 / t is.
_SENTENCE = r"(?:[A-Z`ε\d]|[a-z]+(?:\.\w+)?(?:\(\))? (?:is|are|and|returns) ).{12,}[.)]"


@believed
@every_exercise
def test_every_known_mistake_keeps_what_its_class_may_keep_and_is_recognised_as_itself(name, examined):
    faults = quality.faults_of(examined(name))
    assert not faults, "sharpen a row, weigh it otherwise, or ask a question that tells two mistakes apart"


@believed
@every_exercise
def test_no_known_mistake_is_broken_code_itself(name):
    # An error is like any other of its kind, so broken code would be caught, and recognised, and never met in a student's work.
    sheet = exercise(name).sheet()
    expected = [answer for section in sheet.sections for answers in section.expected for answer in answers]
    for i, item in enumerate(exercise(name).misconceptions):
        theirs = (sheet.list_mistake_answers(i, j) for j in range(len(sheet.sections)))
        given = [answer for section in theirs for answers in section for answer in answers]
        errors = {(a.error or "").partition(":")[0] for a, e in zip(given, expected, strict=True) if not e.error}
        by_nature = (name, item.name) in ERRORS_BY_NATURE
        assert bool(errors & BROKEN) == by_nature, f"{item.name} raises {errors & BROKEN} where the reference answers"


@believed
@every_exercise
def test_every_edit_of_a_known_mistake_fits_the_reference(name):
    for item in exercise(name).misconceptions:
        assert callable(item.implementation), item.name  # an edit that does not fit raises, and says why


@believed
@every_exercise
def test_recorded_answers_give_every_mistake_the_verdict_of_the_live_check(name, recorded):
    sheet, live = recorded(name), exercise(name).sheet()
    for i, item in enumerate(exercise(name).misconceptions):
        heard = CollectedAnswers(answers=[live.list_mistake_answers(i, j) for j in range(len(live.sections))])
        verdict = judge_answers(sheet, heard)
        assert {diagnosis.name for diagnosis in verdict.diagnoses} == {item.name}
        assert verdict.to_dict() == judge_answers(live, heard).to_dict()


@believed
@every_exercise
def test_a_recording_tells_results_and_not_how_the_reference_came_by_them(name, recorded):
    sheet = recorded(name)
    places = product(range(len(sheet.misconceptions)), range(len(sheet.sections)))
    mistakes = [sheet.list_mistake_answers(mistake, section) for mistake, section in places]
    for answers, counted in [*((s.expected, False) for s in sheet.sections), *((given, True) for given in mistakes)]:
        for observation in (seen for given in answers for seen in given):
            assert observation.functions == ()
            kind, _, text = (observation.error or "").partition(": ")
            assert not text or kind == "WeightsError", "of weights that do not fit, names and shapes"
            assert counted or observation.operations is observation.largest is None


@believed
@every_exercise
def test_a_stub_earns_nothing_and_is_told_that_it_is_not_written_yet(name, recorded):
    stub = stub_of(exercise(name).reference)
    verdicts = [check(stub), check(stub, hidden=True), decide(recorded(name), LocalSubject(stub))]
    for verdict in verdicts:
        assert verdict.score == 0
        assert {finding.message for finding in verdict.findings} == {"not written yet"}
        assert not verdict.diagnoses


# --------------------------------------------------------------------------------------------------- right solutions


@believed
@every_exercise
@visible_and_hidden
def test_the_reference_gets_all_the_points_live_and_recorded(name, hidden, recorded):
    subject = LocalSubject(exercise(name).reference)
    verdict = decide(exercise(name).sheet(hidden=hidden), subject)
    assert verdict.passed, str(verdict)
    assert verdict.score == verdict.max_score == exercise(name).points
    if not hidden:
        assert decide(recorded(name), subject).to_dict() == check(exercise(name).reference).to_dict()


@believed
@every_exercise
def test_other_right_solutions_get_all_the_points_visible_hidden_and_recorded(name, recorded, subjects):
    solutions = alternatives().get(name, [])
    wanted = 3 if isinstance(exercise(name).reference, type) else 2
    assert len(solutions) >= wanted, f"add to tests/autograder/checks/alternatives_*.py: {name}"
    for solution in solutions:
        assert solution.__name__ == name, "a check finds its exercise by the solution's name"
        # The questions of the visible sheet are the first ones of the hidden sheet.
        for verdict in (check(solution, hidden=True), check(solution, hidden=True, seed=1)):
            assert verdict.passed, f"{solution.__qualname__}\n{verdict}"
        verdict = decide(recorded(name), subjects.pop())
        assert not subjects
        assert verdict.passed, f"{solution.__qualname__}\n{verdict}"


def test_alternatives_are_solutions_of_exercises_that_exist():
    assert set(alternatives()) <= set(NAMES)


@believed
@every_exercise
def test_the_course_s_own_solution_is_refused_where_hidden_questions_are_asked(name):
    reference = exercise(name).reference
    if isinstance(reference, type):
        borrowed = type(name, (reference,), {})
    else:

        def borrowed(*args, **kwargs):
            return reference(*args, **kwargs)

        borrowed.__name__ = name
    for candidate in (reference, borrowed):
        verdict = check(candidate, hidden=True)
        assert verdict.score == 0
        assert all("the course's own" in finding.message for finding in verdict.findings)
        assert check(candidate).passed, "without hidden questions it is an instructor's way to try a check"


# ------------------------------------------------------------------------------------------------------ declarations


@believed
@every_exercise
def test_only_the_questions_about_errors_make_the_reference_fail(name):
    for section in exercise(name).sheet(hidden=True).sections:
        for probe, answers in zip(section.probes, section.expected, strict=True):
            errors = [answer.error for answer in answers if answer.error]
            assert not errors or probe.judge == "answers", f"{section.aspect}: the reference raised {errors}"


@believed
@every_exercise
def test_an_aspect_about_errors_asks_for_a_right_answer_too(name):
    for section in exercise(name).sheet().sections:
        if any(probe.judge == "answers" for probe in section.probes):
            refused = [any(answer.error for answer in answers) for answers in section.expected]
            assert set(refused) == {True, False}, f"{section.aspect}: code that always raises would earn its points"


def has_one_question(name):
    """Whether an exercise has no inputs, so that there is one question only; its answer is all that there is to write."""
    return not inspect.signature(exercise(name).reference).parameters


def asked_by(sections):
    """What each question of some sections asks, as something to compare."""
    return [tuple(map(content_key, probe.requests)) for section in sections for probe in section.probes]


@believed
@every_exercise
def test_hidden_questions_are_other_questions(name):
    visible, hidden = exercise(name).sheet(), exercise(name).sheet(hidden=True)
    for some, more in zip(visible.sections, hidden.sections, strict=True):
        assert len(more.probes) > len(some.probes)
    if has_one_question(name):
        return
    asked = Counter(asked_by(visible.sections))
    added = Counter(asked_by(hidden.sections)) - asked
    assert set(added) - set(asked), "every hidden question is a visible one over again"


@believed
@every_exercise
def test_another_seed_asks_other_questions_and_each_mistake_fails_the_same(name, examined):
    first, other = (exercise(name).sheet(hidden=True, seed=seed).sections for seed in (0, 1))
    assert (asked_by(first) == asked_by(other)) == has_one_question(name)
    for item, outcome in zip(exercise(name).misconceptions, examined(name).outcomes, strict=True):
        findings = quality.verdict_of(exercise(name), item, seed=1).findings
        failed = tuple(finding.aspect for finding in findings if not finding.passed)
        assert failed == outcome.caught_by, f"whether {item.name} is seen is luck; ask something that always shows it"


@believed
@every_exercise
def test_what_is_asked_about_the_device_is_asked_for_numbers_too(name):
    # Code that knows the meta device when it sees it must not be able to answer otherwise elsewhere.
    for section in exercise(name).sheet(hidden=True).sections:
        asked = [request for probe in section.probes for request in probe.requests if request.action == "meta"]
        for request in asked:
            if "device" in request.arguments:
                continue  # it is asked for a device by name, and makes all its tensors itself
            elsewhere = [
                other
                for place in exercise(name).sheet(hidden=True).sections
                if not place.side
                for probe in place.probes
                for other in probe.requests
                if other.action == "call" and content_key(other) == content_key(replace(request, action="call"))
            ]
            assert elsewhere, f"{section.aspect}: give device() a maker that a row of numbers uses too"


def _changeable(value):
    """Whether an argument can be changed in place."""
    return isinstance(value, (torch.Tensor, list, dict)) or (isinstance(value, tuple) and any(map(_changeable, value)))


@believed
@every_exercise
def test_an_inputs_row_watches_every_argument_that_can_change(name):
    sheet = exercise(name).sheet()
    asked = [
        (request, probe.judge) for section in sheet.sections for probe in section.probes for request in probe.requests
    ]
    calls = [
        (request.method, argument, judge)
        for request, judge in asked
        for argument, value in request.arguments.items()
        if request.action == "call" and _changeable(value)
    ]
    watched = {(method, argument) for method, argument, judge in calls if judge == "unmutated"}
    if watched:
        assert {(method, argument) for method, argument, _ in calls} == watched, "give inputs_kept() another maker"


@believed
@every_exercise
def test_a_verdict_has_no_more_rows_than_a_student_reads(name):
    target = exercise(name)
    low, high = (2, 4) if target.points < 4 else (4, 9 if name in MODELS else 7)
    assert low <= len(target.rows) <= high, [row.name for row in target.rows]
    assert target.points >= 3


@every_exercise
def test_names_points_and_explanations_are_fit_to_be_read_by_students(name):
    target = exercise(name)
    assert 4 <= len(target.misconceptions) <= 24
    for things in ([item.name for item in target.misconceptions], [aspect.name for aspect in target.rows]):
        assert len(set(things)) == len(things), "each needs a name of its own"
    assert all(aspect.points > 0 and aspect.points * 4 % 1 == 0 for aspect in target.rows), "quarter points at least"
    for text in (item.explanation for item in target.misconceptions):
        assert re.fullmatch(_SENTENCE, text), f"a sentence, please: {text}"
        assert "  " not in text, text


@every_exercise
def test_what_a_diagnosis_sends_a_student_to_read_is_in_the_chapter_s_lesson(name):
    assert exercise(name).headings, "the chapter has a lesson with labelled sections"
    for read in sorted({item.read for item in exercise(name).misconceptions}):
        assert read in exercise(name).headings, (
            f"the lesson of {exercise(name).chapter} has no section labelled {read!r}"
        )


def test_every_exercise_of_the_course_s_package_has_a_check():
    modules = [info.name for info in pkgutil.iter_modules(tfcourse.__path__) if info.name not in NOT_EXERCISES]
    assert modules
    public = {
        item: getattr(module, item)
        for module in (importlib.import_module(f"tfcourse.{name}") for name in modules)
        for item in module.__all__
    }
    wanted = {
        item
        for item, value in public.items()
        if (inspect.isfunction(value) or inspect.isclass(value)) and not hasattr(value, "_fields")
    }
    assert wanted - GIVEN == set(NAMES), "declare a check in autograder/checks, or name the module in NOT_EXERCISES"
    assert wanted > GIVEN
    assert all(exercise(item).reference is public[item] for item in NAMES)


@believed
@every_exercise
def test_a_recording_is_small_enough_to_be_handed_out(name, recording):
    largest = LARGEST_OF_A_MODEL if name in MODELS else LARGEST_RECORDING
    assert recording(name).stat().st_size <= largest


@believed
@every_exercise
def test_the_committed_results_are_those_of_the_check(name, examined):
    assert quality_record.to_record(examined(name)) == quality_record.read_record(quality.FOLDER)[name], (
        f"run: {quality.COMMAND} {name}"
    )


def test_the_pages_about_the_grader_s_quality_show_the_committed_results():
    assert quality.FOLDER == ROOT / "docs" / "grader-quality"
    record = quality_record.read_record(quality.FOLDER)
    assert list(record) == NAMES
    results = [quality_record.from_record(exercise(name), record[name]) for name in NAMES]
    assert not [fault for result in results for fault in quality.faults_of(result)]
    written = {path.name: path.read_text(encoding="utf-8") for path in quality.FOLDER.glob("*.md")}
    assert written == quality.pages(results), f"run: {quality.COMMAND} --pages"
