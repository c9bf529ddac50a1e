"""Both measures, on an exercise of the course with its own check and with a check that asks too little."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor

from autograder.checking.exercise import Exercise
from autograder.checks import exercise
from autograder.errors import CourseError
from autograder.mistakes.mistake_file import MistakeFile
from tools.quality import effects, record
from tools.quality.branches import branches_of
from tools.quality.measure import Measures, Survivor, measure
from tools.quality.mutants import own_definitions

SURVIVOR = Survivor("top_k", 2, "if k < 1:", "k < 1", "k <= 1", "comparison")
ENTRY = """
[[equivalent]]
line = "if k < 1:"
before = "k < 1"
after = "k <= 1"
reason = "for the test's sake"
"""


def asks_numbers_only(name: str) -> Exercise:
    """An exercise whose check asks for numbers and nothing else."""
    return replace(exercise(name), rows=exercise(name).rows[:1])


def explained(folder: Path, text: str) -> Exercise:
    """The exercise top_k with such a file of mistakes."""
    path = folder / "top_k.toml"
    path.write_text(text, encoding="utf-8")
    return replace(exercise("top_k"), misconceptions=MistakeFile(path, exercise("top_k").reference))


def test_an_error_that_nobody_asks_for_survives() -> None:
    found = measure(asks_numbers_only("top_k"))
    assert found.mutants > len(found.survivors) > 0
    assert "error not raised" in {survivor.operator for survivor in found.survivors}
    assert any("is never run: raise" in line for line in found.missed)
    assert found.branches > len(found.missed)


def test_questions_that_run_everything_miss_no_branch() -> None:
    assert branches_of(exercise("top_k")).missed == ()


def test_a_check_that_refuses_the_reference_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.quality.measure.find_first_failure", lambda sheet, subject: "values")
    with pytest.raises(CourseError, match="nothing changed in top_k does not get all the points"):
        measure(exercise("top_k"))


def test_a_helper_of_one_exercise_is_changed_with_it() -> None:
    names = {node.name for name in ("beam_search", "greedy_search") for node in own_definitions(exercise(name))}
    assert {"beam_search", "greedy_search"} <= names
    shared = {node.name for node in own_definitions(exercise("top_k"))}
    assert shared == {"top_k"}, "what several samplers share belongs to none of them"


def test_a_survivor_is_explained_by_an_entry_of_its_own(tmp_path: Path) -> None:
    measures = Measures(3, (SURVIVOR, replace(SURVIVOR, after="k > 1")), 2, ())
    target = explained(tmp_path, ENTRY)
    assert [survivor.after for survivor in record.unexplained(target, measures)] == ["k > 1"]
    assert record.stale(target, measures) == []


def test_an_entry_without_a_survivor_is_stale(tmp_path: Path) -> None:
    (entry,) = record.stale(explained(tmp_path, ENTRY), Measures(3, (), 2, ()))
    assert entry.reason == "for the test's sake"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY.replace("after", "afterwards"), "lacks the keys .'after'.; it has unknown keys .'afterwards'."),
        (ENTRY.replace("for the test's sake", ""), "no reason"),
        (ENTRY.replace("equivalent", "equivalents"), "unknown tables .'equivalents'."),
    ],
)
def test_an_entry_that_is_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CourseError, match=message):
        record.unexplained(explained(tmp_path, text), Measures(1, (SURVIVOR,), 0, ()))


def test_measures_are_cached_until_the_key_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measures = Measures(3, (SURVIVOR,), 2, ("a line",))
    made: list[Exercise] = []
    monkeypatch.setattr(record, "ROOT", tmp_path)
    monkeypatch.setattr(record, "MEASURES", tmp_path / "mutants.json")
    monkeypatch.setattr(record, "measure", lambda item: made.append(item) or measures)
    for key in ("key", "key", "other"):
        monkeypatch.setattr(record, "key_of", lambda _, key=key: key)
        assert record.measures_of(exercise("top_k")) == measures
    assert len(made) == 2


def test_measures_are_committed_and_unexplained_survivors_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "MEASURES", tmp_path / "mutants.json")
    assert record.write({"top_k": Measures(9, (), 0, ())}) == []
    survivors = Measures(9, (SURVIVOR,) * 2, 0, ())
    assert record.write({"top_k": survivors}) == [
        "top_k: 2 unexplained survivors; add cases, or record them as equivalent"
    ]
    assert record.measures_of(exercise("top_k")) == survivors, "committed measures with this key are not repeated"


def test_a_cut_without_a_gradient_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "_state", {"changed": False})
    plain = Tensor([1.0, 2.0])
    assert effects.detached((plain, 3)) == (plain, 3)
    assert not effects.had_an_effect()
    leaf = plain.clone().requires_grad_()
    (effects.detached(leaf * 2).sum() + leaf.sum()).backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [1.0, 1.0]
    assert effects.had_an_effect()


def test_rounding_has_an_effect_on_float64_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "_state", {"changed": False})
    effects.rounded(Tensor([0.1]))
    effects.rounded(Tensor([0.5]).double())
    assert not effects.had_an_effect()
    effects.rounded(Tensor([0.5]).double() + 1e-12)
    assert effects.had_an_effect()
