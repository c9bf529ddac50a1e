"""``check`` by name: against the live reference, from a notebook's point of view."""

import pytest
import torch
from torch import Tensor

import tfcourse
from autograder import checks
from autograder.checking.exercise import Exercise
from autograder.checks import check, exercise, exercises
from tfcourse.attention import masked_attention_weights


def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:
    """Another right solution of an exercise."""
    places = torch.arange(T, device=device)
    return places[:, None] >= places


def test_the_exercise_is_found_by_the_candidate_s_name():
    verdict = check(causal_mask)
    assert (verdict.exercise, verdict.chapter) == ("causal_mask", "03_scaled_dot_product")
    assert verdict.passed, str(verdict)
    assert check(causal_mask, hidden=True).passed


def test_the_course_s_package_checks_through_the_same_door():
    assert tfcourse.check(causal_mask).to_dict() == check(causal_mask).to_dict()
    assert tfcourse.check(causal_mask, hidden=True, seed=2, device="cpu").passed


def test_a_package_without_checks_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr(tfcourse, "entry_points", lambda group: ())
    tfcourse._installed_check.cache_clear()
    with pytest.raises(RuntimeError, match="install"):
        tfcourse.check(causal_mask)


@pytest.mark.parametrize(
    ("candidate", "advice"),
    [
        (lambda x: x, r"no exercise named '<lambda>'; an exercise is found by the name of its function or class\.$"),
        (5, "check takes a function or class, not an int$"),
        (torch.tensor([0.5]), "not a Tensor$"),
        ("causal_mask", r"check\(causal_mask\)$"),
    ],
)
def test_what_is_no_exercise_is_refused_with_advice(candidate, advice):
    with pytest.raises(LookupError, match=advice):
        check(candidate)


def test_an_unknown_exercise_is_named():
    with pytest.raises(LookupError, match="'split_hairs'"):
        exercise("split_hairs")
    assert exercise("split_heads") is exercises()["split_heads"]


def forget() -> None:
    """Let the declarations be looked for again."""
    checks._declared.cache_clear()
    exercises.cache_clear()


def test_two_exercises_of_one_name_are_refused(monkeypatch):
    forget()
    twice = exercise("causal_mask")
    modules = {
        "autograder.checks.a": type("M", (), {"A": twice, "__file__": "a.py"}),
        "autograder.checks.b": type("M", (), {"B": twice, "__file__": "b.py"}),
    }
    monkeypatch.setattr(checks, "_modules", lambda: iter(modules))
    monkeypatch.setattr(checks.importlib, "import_module", modules.__getitem__)
    forget()
    with pytest.raises(
        ValueError, match=r"two exercises are named 'causal_mask'; the second is declared in autograder\.checks\.b"
    ):
        exercises()
    forget()


def test_the_device_comes_from_the_argument_or_the_environment_or_is_the_cpu(monkeypatch):
    asked, sheet = [], exercise("causal_mask").sheet()

    def watch(self, **how):
        asked.append(how["device"])
        return sheet

    monkeypatch.setattr(Exercise, "sheet", watch)
    monkeypatch.delenv("TFCOURSE_DEVICE", raising=False)
    check(causal_mask)
    monkeypatch.setenv("TFCOURSE_DEVICE", "cuda")
    check(causal_mask)
    check(causal_mask, device="cpu")
    assert asked == ["cpu", "cuda", "cpu"]


def test_solutions_of_earlier_chapters_may_be_used_and_those_of_this_one_and_later_ones_may_not():
    secret_in_03, secret_in_04 = checks._solutions("03_scaled_dot_product"), checks._solutions("04_multi_head")
    attention, layer = masked_attention_weights.__code__, exercise("MultiHeadAttention").reference.forward.__code__
    assert {attention, layer} <= secret_in_03
    assert layer in secret_in_04
    assert attention not in secret_in_04


def test_checking_leaves_the_random_numbers_of_the_notebook_alone():
    check(causal_mask)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    check(causal_mask)
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
