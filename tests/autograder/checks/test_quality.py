"""Grade the grader, for every exercise of the course: right solutions get everything, wrong ones lose, and each for its own reason.

Nothing here names an exercise: a new chapter is examined as soon as its checks, its notebook and its alternatives are there.
"""

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import tfcourse
from autograder import quality
from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checking.recorded import read_sheet, write_sheet
from autograder.checking.request import Request
from autograder.checking.sheet import Sheet, decide, reach
from autograder.checking.subject import LocalSubject
from autograder.checks import check, exercise, exercises

ROOT = Path(__file__).parents[3]
NAMES = list(exercises())
# Modules of the course's package that lessons use and nobody is asked to write.
NOT_EXERCISES = {
    "alignment_explorer",
    "block_explorer",
    "data",
    "explorer",
    "figures",
    "gradient_explorer",
    "translation",
}
LARGEST_RECORDING = 500_000
# Kinds of errors that code makes which is broken, and mistakes that consist in making one of them.
BROKEN = {"AttributeError", "NameError", "TypeError", "UnboundLocalError"}
ERRORS_BY_NATURE = {
    ("BidirectionalEncoder", "no mask, no annotations"),
    ("MultiHeadAttention", "number of heads hidden"),
}

every_exercise = pytest.mark.parametrize("name", NAMES)
visible_and_hidden = pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Tensors this small are faster on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def examined(name: str) -> quality.Quality:
    """The quality of one exercise's check."""
    return quality.examine(exercise(name))


def recorded(name: str, folder: Path) -> Sheet:
    """The visible sheet of an exercise, written to a file and read from it."""
    path = folder / f"{name}.safetensors"
    write_sheet(exercise(name).sheet(), path)
    return read_sheet(path)


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


ALTERNATIVES = alternatives()
one_alternative = pytest.mark.parametrize(
    ("name", "solution"),
    [
        pytest.param(name, solution, id=f"{name}-{solution.__qualname__}")
        for name, solutions in ALTERNATIVES.items()
        for solution in solutions
    ],
)


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


@every_exercise
def test_every_known_mistake_loses_points_visibly_and_in_the_grader(name):
    survivors = [outcome.mistake for outcome in examined(name).outcomes if not outcome.caught]
    assert not survivors, f"full marks for wrong solutions of {name}: {survivors}. Sharpen an aspect, or add a case"


@every_exercise
def test_every_known_mistake_is_recognised_as_itself_and_as_nothing_else(name):
    taken_for = {outcome.mistake: outcome.taken_for for outcome in examined(name).outcomes if not outcome.recognised}
    assert not taken_for, f"{name}: two mistakes with the same answers? Ask a question that tells them apart"


@every_exercise
def test_no_known_mistake_is_broken_code_itself(name):
    # An error is like any other of its kind, so broken code would be caught, and recognised, and never met in a student's work.
    sheet = exercise(name).sheet()
    expected = [answer for section in sheet.sections for answers in section.expected for answer in answers]
    for i, item in enumerate(exercise(name).misconceptions):
        theirs = (sheet.answers_of(i, j) for j in range(len(sheet.sections)))
        given = [answer for section in theirs for answers in section for answer in answers]
        errors = {(a.error or "").partition(":")[0] for a, e in zip(given, expected, strict=True) if not e.error}
        by_nature = (name, item.name) in ERRORS_BY_NATURE
        assert bool(errors & BROKEN) == by_nature, f"{item.name} raises {errors & BROKEN} where the reference answers"


@every_exercise
def test_recorded_answers_give_every_mistake_the_verdict_of_the_live_check(name, tmp_path):
    sheet, live = recorded(name, tmp_path), exercise(name).sheet()
    for item in exercise(name).misconceptions:
        verdict = decide(sheet, LocalSubject(item.wrong))
        assert {diagnosis.name for diagnosis in verdict.diagnoses} == {item.name}
        assert verdict.to_dict() == decide(live, LocalSubject(item.wrong)).to_dict()


@every_exercise
def test_a_stub_earns_nothing_and_is_told_that_it_is_not_written_yet(name, tmp_path):
    stub = stub_of(exercise(name).reference)
    verdicts = [check(stub), check(stub, hidden=True), decide(recorded(name, tmp_path), LocalSubject(stub))]
    for verdict in verdicts:
        assert verdict.score == 0
        assert {finding.message for finding in verdict.findings} == {"not written yet"}
        assert not verdict.diagnoses


@every_exercise
def test_a_solution_that_does_nothing_earns_less_than_half(name):
    assert examined(name).for_nothing < examined(name).points / 2


# --------------------------------------------------------------------------------------------------- right solutions


@every_exercise
@visible_and_hidden
def test_the_reference_gets_all_the_points_live_and_recorded(name, hidden, tmp_path):
    subject = LocalSubject(exercise(name).reference)
    verdict = decide(exercise(name).sheet(hidden=hidden), subject)
    assert verdict.passed, str(verdict)
    assert verdict.score == verdict.max_score == exercise(name).points
    if not hidden:
        assert decide(recorded(name, tmp_path), subject).to_dict() == check(exercise(name).reference).to_dict()


@one_alternative
def test_another_right_solution_gets_all_the_points_visible_hidden_and_recorded(name, solution, tmp_path):
    assert solution.__name__ == name, "a check finds its exercise by the solution's name"
    for verdict in (check(solution), check(solution, hidden=True), check(solution, hidden=True, seed=1)):
        assert verdict.passed, str(verdict)
    verdict = decide(recorded(name, tmp_path), LocalSubject(solution))
    assert verdict.passed, str(verdict)


@every_exercise
def test_every_exercise_has_other_right_solutions_to_be_fair_to(name):
    wanted = 5 if isinstance(exercise(name).reference, type) else 2
    assert len(ALTERNATIVES.get(name, ())) >= wanted, f"add to tests/autograder/checks/alternatives_*.py: {name}"


def test_alternatives_are_solutions_of_exercises_that_exist():
    assert set(ALTERNATIVES) <= set(NAMES)


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


@every_exercise
def test_only_the_questions_about_errors_make_the_reference_fail(name):
    for section in exercise(name).sheet(hidden=True).sections:
        for probe, answers in zip(section.probes, section.expected, strict=True):
            errors = [answer.error for answer in answers if answer.error]
            assert not errors or probe.judge == "answers", f"{section.aspect}: the reference raised {errors}"


@every_exercise
def test_an_aspect_about_errors_asks_for_a_right_answer_too(name):
    for section in exercise(name).sheet().sections:
        if any(probe.judge == "answers" for probe in section.probes):
            refused = [any(answer.error for answer in answers) for answers in section.expected]
            assert set(refused) == {True, False}, f"{section.aspect}: code that always raises would earn its points"


@every_exercise
def test_hidden_questions_are_other_questions(name):
    visible, hidden = exercise(name).sheet(), exercise(name).sheet(hidden=True)
    for aspect, some, more in zip(exercise(name).rows, visible.sections, hidden.sections, strict=True):
        assert aspect.once or len(more.probes) > len(some.probes)
    asked = Counter(repr(probe.requests) for section in visible.sections for probe in section.probes)
    added = Counter(repr(probe.requests) for section in hidden.sections for probe in section.probes) - asked
    assert set(added) - set(asked), "every hidden question is a visible one over again"


@every_exercise
def test_another_seed_asks_other_questions_and_each_mistake_fails_the_same(name):
    other = exercise(name).sheet(hidden=True, seed=1)
    assert repr(other.sections[0].probes) != repr(exercise(name).sheet(hidden=True).sections[0].probes)
    for item, outcome in zip(exercise(name).misconceptions, examined(name).outcomes, strict=True):
        findings = decide(other, LocalSubject(item.wrong)).findings
        failed = tuple(finding.aspect for finding in findings if not finding.passed)
        assert failed == outcome.caught_by, f"whether {item.name} is seen is luck; ask something that always shows it"


def sizes_in(value: Any) -> Any:
    """A question's values with the shape of each tensor in its place."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, Mapping):
        return {key: sizes_in(item) for key, item in value.items()}
    return [sizes_in(item) for item in value] if isinstance(value, (tuple, list)) else value


@every_exercise
def test_what_is_asked_in_the_visible_round_alone_would_be_asked_alike_in_every_other(name):
    for aspect in exercise(name).rows:
        if aspect.once:
            rounds = [
                [request for probe in aspect.probes(Draw(seed)) for request in probe.requests] for seed in range(3)
            ]
            first, *others = [[what_matters(request) for request in asked] for asked in rounds]
            assert all(other == first for other in others), f"{aspect.name}: its sizes are drawn"


def test_nothing_is_judged_before_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    monkeypatch.setattr(
        "autograder.checks.reach", lambda sheet, heard: judged.append(sheet.exercise) or reach(sheet, heard)
    )
    verdict = check(exercise("causal_mask").reference)
    assert judged == []
    assert verdict.passed
    assert judged == ["causal_mask"]


def what_matters(request: Request) -> Any:
    """Of a question, what its answer is judged by: on the meta device that is where tensors lie, however large they are."""
    if request.action == "meta":
        return request.method, request.training, sorted(request.arguments), sorted(request.init or {})
    return sizes_in(vars(request))


@every_exercise
def test_names_points_and_explanations_are_fit_to_be_read_by_students(name):
    target = exercise(name)
    assert len(target.misconceptions) >= (12 if isinstance(target.reference, type) else 5)
    for things in ([item.name for item in target.misconceptions], [aspect.name for aspect in target.rows]):
        assert len(set(things)) == len(things), "each needs a name of its own"
    assert all(aspect.points > 0 and aspect.points * 2 % 1 == 0 for aspect in target.rows), "half points at least"
    for text in (item.explanation for item in target.misconceptions):
        assert re.fullmatch(r"[A-Z].{20,}[.)]", text), f"a sentence, please: {text}"
        assert "  " not in text, text


@every_exercise
def test_what_a_diagnosis_sends_a_student_to_read_is_in_the_chapter_s_lesson(name):
    lesson = ROOT / "chapters" / exercise(name).chapter / "lesson.md"
    found = re.findall(r"^\(([\w-]+)\)=\n+#+ (.+)$", lesson.read_text(encoding="utf-8"), re.MULTILINE)
    headings = {label: re.sub(r"[$`]", "", heading) for label, heading in found}
    for read in sorted({item.read for item in exercise(name).misconceptions}):
        assert read in headings, f"{lesson} has no section labelled {read!r}"
        told = exercise(name).headings.get(read)
        assert told == headings[read], f"{read}: the student is told {told!r}, the lesson says {headings[read]!r}"


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
    assert wanted == set(NAMES), "declare a check in autograder/checks, or name the module in NOT_EXERCISES"
    assert all(exercise(item).reference is public[item] for item in wanted)


@every_exercise
def test_a_recording_is_small_enough_to_be_handed_out(name, tmp_path):
    recorded(name, tmp_path)
    assert (tmp_path / f"{name}.safetensors").stat().st_size <= LARGEST_RECORDING


# -------------------------------------------------------------------------------------------------------- the library


def twice(x):
    """Return 2 x."""
    return 2 * x


def number(draw):
    """Something to double."""
    return Case({"x": draw.normal(3, 4)})


@misconception("tripled", read="here")
def tripled(x):
    """Three times."""
    return 3 * x


@misconception("tripled again", read="here")
def tripled_again(x):
    """Three times, in other words."""
    return x + x + x


@misconception("no mistake", read="here")
def no_mistake(x):
    """Right: |x| is not asked."""
    return x + x


@pytest.fixture
def badly_graded(monkeypatch, tmp_path) -> Exercise:
    """A course of one exercise, whose check lets a mistake through and takes one for another."""
    one = Exercise(
        reference=twice,
        chapter="00_test",
        rows=(look.shape(0.5, number), look.values(1, number)),
        misconceptions=(tripled, tripled_again, no_mistake),
    )
    monkeypatch.setattr(quality, "exercises", lambda: {one.name: one})
    monkeypatch.setattr(quality, "PAGE", tmp_path / "page.md")
    return one


def test_a_mistake_that_survives_or_is_taken_for_another_is_told(badly_graded, capsys):
    found = quality.examine(badly_graded)
    assert [(o.visible, o.all, o.caught_by, o.taken_for) for o in found.outcomes] == [
        (1.0, 1.0, ("values",), ("tripled",)),
        (1.0, 1.0, ("values",), ("tripled",)),
        (0.0, 0.0, (), ()),
    ]
    assert [outcome.caught for outcome in found.outcomes] == [True, True, False]
    assert [outcome.recognised for outcome in found.outcomes] == [True, False, False]
    assert (found.points, found.unproven, found.for_nothing) == (1.5, ("shape",), 0.5), "x itself has the right shape"
    text = quality.page([found])
    assert "They lose points: 2 of 3 (67 %)." in text
    assert "| tripled again | 1 | 1 | values | tripled | Three times, in other words. |" in text
    assert "| no mistake | 0 | 0 | **nothing** | nothing known | Right: \\|x\\| is not asked. |" in text
    assert quality.main([]) == 1
    said = capsys.readouterr().out
    assert "no mistake" in said
    assert "tripled again" in said


@misconception("tripled where the first number is positive", read="here")
def sometimes_tripled(x):
    """Three times, now and then."""
    return 3 * x if x[0, 0] > 0 else 2 * x


def test_a_mistake_that_another_seed_does_not_show_is_told(badly_graded, capsys, monkeypatch):
    monkeypatch.setattr(quality, "spread", lambda work, items: [work(item) for item in items])
    lucky = Exercise(**{**vars(badly_graded), "misconceptions": (tripled, sometimes_tripled)})
    monkeypatch.setattr(quality, "exercises", lambda: {lucky.name: lucky})
    (line,) = quality.luck(range(8))
    assert line.startswith("twice: tripled where the first number is positive: fails ")
    assert "with seed" in line
    assert quality.main(["--seeds", "8"]) == 1
    assert line in capsys.readouterr().out
    steady = Exercise(**{**vars(badly_graded), "misconceptions": (tripled,)})
    monkeypatch.setattr(quality, "exercises", lambda: {steady.name: steady})
    assert quality.main(["--seeds", "3"]) == 0
    assert "loses the same with each of 3 seeds" in capsys.readouterr().out


def test_the_command_writes_the_page_and_notices_when_it_is_out_of_date(badly_graded, capsys, monkeypatch):
    good = Exercise(**{**vars(badly_graded), "misconceptions": (tripled,)})
    monkeypatch.setattr(quality, "exercises", lambda: {good.name: good})
    assert quality.main(["--check"]) == 1, "there is no page yet"
    assert quality.COMMAND in capsys.readouterr().out
    assert quality.main([]) == 0
    assert quality.main(["--check"]) == 0
    quality.PAGE.write_text(quality.PAGE.read_text(encoding="utf-8") + "\nmore", encoding="utf-8")
    assert quality.main(["--check"]) == 1


def test_the_page_about_the_grader_s_quality_is_up_to_date():
    assert quality.PAGE == ROOT / "docs" / "grader-quality.md"
    text = quality.PAGE.read_text(encoding="utf-8")
    assert quality.COMMAND in text.partition("\n")[0], "a generated file says so in its first line"
    assert text == quality.page(map(examined, NAMES)), f"run: {quality.COMMAND}"
