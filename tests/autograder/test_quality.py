"""The command that grades the grader, on a course of one exercise whose check is a bad one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, Misconception
from tools.quality import __main__ as quality
from tools.quality import quality_record


def twice(x: Tensor) -> Tensor:
    """Return 2 x."""
    return 2 * x


def number(draw: Draw) -> Case:
    """Something to double."""
    return Case({"x": draw.normal(3, 4)})


def mistake(name: str, wrong: Callable[..., Any], kind: str = "wrong") -> Misconception:
    """A known mistake, made of a function."""
    return Misconception(name=name, explanation="Three | times.", read="here", kind=kind, make=lambda: wrong)


TRIPLED = mistake("tripled", lambda x: 3 * x)
TRIPLED_AGAIN = mistake("tripled again", lambda x: x + x + x)
NO_MISTAKE = mistake("no mistake", lambda x: x + x)
TOO_CHEAP = mistake("tripled, an edge", lambda x: 3 * x, kind="edge")
SOMETIMES = mistake("tripled where the first number is positive", lambda x: 3 * x if x[0, 0] > 0 else 2 * x)


@pytest.fixture
def course(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Exercise]:
    """Make a course of one exercise, with the mistakes that are given."""
    monkeypatch.setattr(quality, "FOLDER", tmp_path / "pages")
    monkeypatch.setattr(quality, "parallel_map", lambda work, items: [work(item) for item in items])

    def make(*mistakes: Misconception) -> Exercise:
        one = Exercise(
            reference=twice,
            chapter="00_test",
            rows=(rows.numbers(1, number), rows.inputs_kept(0.5, number)),
            misconceptions=mistakes,
        )
        monkeypatch.setattr(quality, "exercises", lambda: {one.name: one})
        return one

    return make


def test_a_mistake_that_survives_or_is_taken_for_another_is_told(
    course: Callable[..., Exercise], capsys: pytest.CaptureFixture[str]
) -> None:
    found = quality.examine(course(TRIPLED, TRIPLED_AGAIN, NO_MISTAKE))
    assert [(o.visible, o.all, o.caught_by, o.taken_for) for o in found.outcomes] == [
        (0.0, 0.0, ("values",), ("tripled",)),
        (0.0, 0.0, ("values",), ("tripled",)),
        (1.0, 1.0, (), ()),
    ]
    assert [outcome.caught for outcome in found.outcomes] == [True, True, False]
    assert [outcome.recognised for outcome in found.outcomes] == [True, False, False]
    assert (found.points, found.unproven, found.for_nothing) == (1.5, ("inputs",), 0.0)
    pages = quality.pages([found])
    assert "They keep what their class may keep: 2 of 3 (67 %)." in pages["README.md"]
    assert "| tripled again | wrong | 0% | 0% | values | tripled | Three \\| times. |" in pages["00_test.md"]
    assert quality.main([]) == 1
    said = capsys.readouterr().out
    assert "no mistake" in said
    assert "tripled again" in said


def test_a_mistake_outside_of_the_band_of_its_class_is_a_fault(course: Callable[..., Exercise]) -> None:
    (fault,) = quality.faults_of(quality.examine(course(TOO_CHEAP)))
    assert "tripled, an edge" in fault
    assert quality.faults_of(quality.examine(course(TRIPLED))) == []


def test_doing_nothing_must_not_pay(course: Callable[..., Exercise], monkeypatch: pytest.MonkeyPatch) -> None:
    one = course(TRIPLED)
    monkeypatch.setattr(quality, "trivial_solutions", lambda exercise: [twice])
    (fault,) = quality.faults_of(quality.examine(one))
    assert fault == "twice: doing nothing keeps 1.5 of 1.5 points"


def test_a_mistake_that_another_seed_does_not_show_is_told(
    course: Callable[..., Exercise], capsys: pytest.CaptureFixture[str]
) -> None:
    course(TRIPLED, SOMETIMES)
    (line,) = quality.seed_sensitivity(range(8), ["twice"])
    assert line.startswith("twice: tripled where the first number is positive: fails ")
    assert "with seed" in line
    assert quality.main(["--seeds", "8"]) == 1
    assert line in capsys.readouterr().out
    course(TRIPLED)
    assert quality.main(["--seeds", "3"]) == 0
    assert "keeps the same with each of 3 seeds" in capsys.readouterr().out


def test_the_command_writes_results_and_pages(course: Callable[..., Exercise]) -> None:
    one = course(TRIPLED, TRIPLED_AGAIN)
    assert quality.main([]) == 1
    (quality.FOLDER / "99_gone.md").write_text("a chapter that is no more", encoding="utf-8")
    assert quality.main(["--pages"]) == 0
    assert sorted(path.name for path in quality.FOLDER.iterdir()) == ["00_test.md", "README.md", quality_record.FILE]
    assert quality_record.from_record(one, quality_record.read_record(quality.FOLDER)["twice"]) == quality.examine(one)
    pages = {path.name: path.read_text("utf-8") for path in quality.FOLDER.glob("*.md")}
    assert pages == quality.pages([quality.examine(one)])


def test_names_print_tables_and_change_only_their_results(
    course: Callable[..., Exercise], capsys: pytest.CaptureFixture[str]
) -> None:
    course(TRIPLED)
    quality.FOLDER.mkdir()
    (quality.FOLDER / quality_record.FILE).write_text('{"gone": {}}', encoding="utf-8")
    assert quality.main(["twice"]) == 0
    assert "| tripled | wrong | 0% | 0% | values | itself |" in capsys.readouterr().out
    assert list(quality_record.read_record(quality.FOLDER)) == ["twice"], (
        "results of exercises that are gone are dropped"
    )
