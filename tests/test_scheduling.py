"""The order of the tests, and which of them one process runs together when pytest-xdist shares them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scheduling import DEEP, FIRST, HERE, part_of, place_of, unit_of

CHECKS = "tests/autograder/checks"
# In the order in which they have to run: students' packages use the recordings of the checks.
USERS = ("autograder/checks/test_quality.py", "autograder/authoring/test_leaks.py", "pages/test_site.py")


@pytest.mark.parametrize(
    "test",
    [
        "test_quality.py::test_reference[causal_mask]",
        "test_quality.py::test_reference[hidden-causal_mask]",
        "test_quality.py::test_alternative[causal_mask-mask_by_triu]",
        "test_hardening.py::test_crash[causal_mask-ValueError]",
    ],
)
def test_tests_of_an_exercise_stay_together(test: str) -> None:
    assert unit_of(f"{CHECKS}/{test}") == f"{CHECKS}/causal_mask"


@pytest.mark.parametrize(
    "test",
    [
        f"{CHECKS}/test_quality.py::test_pages",
        f"{CHECKS}/test_hardening.py::test_exceptions[KeyError]",
        "tests/tfcourse/test_attention.py::test_shapes[causal_mask]",
    ],
)
def test_other_tests_stay_with_their_file(test: str) -> None:
    assert unit_of(test) == test.partition("::")[0]


def test_lessons_of_students_are_shared_out_one_by_one() -> None:
    one, other = (f"tests/students/test_lessons_on_stubs.py::test_waits[{chapter}]" for chapter in ("01", "02"))
    assert unit_of(one) != unit_of(other)


def test_files_that_are_named_exist() -> None:
    assert [name for name in (*FIRST, *DEEP) if not (HERE / name).exists()] == []


def test_every_file_belongs_to_one_part() -> None:
    assert part_of(HERE / "attacks" / "ground.py") == "deep"
    assert part_of(HERE / "attacks") == "deep"
    assert part_of(HERE / "tfcourse" / "test_cuda.py") == "deep"
    assert part_of(HERE / "tfcourse" / "test_data.py") == "course"


def test_lessons_and_checks_come_before_what_uses_them() -> None:
    places = [place_of(Path(__file__).parent / path) for path in ("chapters/test_lesson_01.py", *USERS)]
    assert places == sorted(places)
    assert place_of(Path(__file__)) == len(FIRST)
