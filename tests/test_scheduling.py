"""Which tests one process runs together when pytest-xdist shares them out."""

from __future__ import annotations

import pytest

from .scheduling import unit_of

CHECKS = "tests/autograder/checks"


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
