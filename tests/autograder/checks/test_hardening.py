"""What a student gains by tricks that need no forged verdict: nothing. And what a notebook's settings cost an honest one: nothing."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import torch

from autograder.checking.decision import decide
from autograder.checking.subject import LocalSubject
from autograder.checks import check, exercise, exercises
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from tfcourse import attention, bert

from .test_fairness import spans_one_by_one
from .test_quality import ERRORS_BY_NATURE


def named(name, function):
    function.__name__ = name
    return function


def honest(q, k, v, mask=None):
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(mask.dtype)
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        return torch.softmax(scores, -1).to(q.dtype) @ v
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(wide).min), -1).masked_fill(~mask, 0)
    return weights.to(q.dtype) @ v


honest.__name__ = "scaled_dot_product_attention"


def test_where_attention_in_one_call_is_forbidden_it_is_under_all_its_names():
    forbidding = [item for item in exercises().values() if "scaled_dot_product_attention" in item.forbidden]
    assert {item.chapter[:2] for item in forbidding} == {"02", "03", "04", "05", "08", "09", "10", "11", "12", "13"}
    assert {item.name for item in forbidding if not set(FUSED) <= set(item.forbidden)} == set()


def swallows_the_first_refusal(q, k, v, mask=None):
    with suppress(Exception):
        attention.scaled_dot_product_attention(q, k, v, mask)
    return attention.scaled_dot_product_attention(q, k, v, mask)


def in_a_thread(q, k, v, mask=None):
    found = []
    worker = threading.Thread(target=lambda: found.append(attention.scaled_dot_product_attention(q, k, v, mask)))
    worker.start()
    worker.join()
    return found[0]


def in_a_pool(q, k, v, mask=None):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attention.scaled_dot_product_attention, q, k, v, mask).result()


def looks_away(q, k, v, mask=None):
    import sys

    sys.setprofile(None)
    return attention.scaled_dot_product_attention(q, k, v, mask)


def from_the_checks(q, k, v, mask=None):
    from autograder.checks import exercise

    nearly_right = exercise("scaled_dot_product_attention").misconceptions
    return next(mistake for mistake in nearly_right if mistake.kind == "manner").implementation(q, k, v, mask)


@pytest.mark.parametrize(
    "trick", [swallows_the_first_refusal, in_a_thread, in_a_pool, looks_away, from_the_checks], ids=lambda t: t.__name__
)
def test_a_borrowed_solution_earns_nothing_however_it_is_called(trick):
    verdict = check(named("scaled_dot_product_attention", trick), hidden=True)
    assert verdict.score == 0
    assert {finding.message.split()[0] for finding in verdict.findings} == {"it"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_the_notebooks_default_dtype_costs_an_honest_solution_nothing(dtype):
    torch.set_default_dtype(dtype)
    try:
        verdict = check(honest, seed=11)
        assert torch.get_default_dtype() == dtype, "and the notebook keeps its setting"
    finally:
        torch.set_default_dtype(torch.float32)
    assert verdict.passed, str(verdict)


def test_the_notebooks_default_device_neither_crashes_the_check_nor_costs_anything():
    torch.set_default_device("meta")
    try:
        verdict = check(honest, seed=12)
        assert torch.get_default_device().type == "meta"
    finally:
        torch.set_default_device(None)
    assert verdict.passed, str(verdict)


class Equal(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.isclose, torch.allclose, torch.equal):
            return torch.tensor(True)
        return super().__torch_function__(func, types, args, kwargs or {})


def liar(q, k, v, mask=None):
    return torch.zeros(*q.shape[:-1], v.shape[-1]).as_subclass(Equal)


def boasts(q, k, v, mask=None):
    """More numbers than there is memory."""
    return torch.zeros(1).expand(10**12)


def first_value(query, keys, values):
    return values[0] + 0 * query.sum() + 0 * keys.sum()


class Unspeakable(BaseException):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "result",
    [Unspeakable, KeyError, SystemExit, GeneratorExit],
)
def test_no_exception_of_the_examined_code_escapes(result):
    def raises(q, k, v, mask=None):
        raise result

    assert check(named("scaled_dot_product_attention", raises), hidden=True).score == 0


def test_a_table_of_the_lengths_that_a_student_can_see_does_not_reach_the_hidden_ones():
    seen = {
        request.arguments["T"]
        for section in exercise("causal_mask").sheet().sections
        for probe in section.probes
        for request in probe.requests
    }

    def table(T, device=None):
        return (
            torch.ones(T, T, dtype=torch.bool, device=device).tril()
            if T in seen
            else torch.ones(T, T, dtype=torch.bool)
        )

    assert check(named("causal_mask", table)).score == 4
    assert check(named("causal_mask", table), hidden=True).score <= 2


def crashing(reference, kind, *, where):
    """What raises an exception whenever it is used, or, a class, as soon as it is made."""

    def crash(*args, **kwargs):
        raise kind("a slip of the pen")

    if not isinstance(reference, type):
        return named(reference.__name__, crash)
    if where == "made":
        return type(reference.__name__, (torch.nn.Module,), {"__init__": crash})
    methods = [name for name, value in vars(reference).items() if callable(value) and not name.startswith("_")]
    return type(reference.__name__, (reference,), dict.fromkeys(methods, crash))


@pytest.mark.parametrize("name", list(exercises()))
def test_a_crash_is_no_known_mistake(name):
    reference = exercise(name).reference
    # The exception that exercises ask for. Hardly any known mistake raises another one (test_no_known_mistake_is_broken_code_itself).
    for where in ("made", "used") if isinstance(reference, type) else ("used",):
        assert not check(crashing(reference, ValueError, where=where)).diagnoses, f"when it is {where}"


@pytest.mark.parametrize("name", sorted({name for name, _ in ERRORS_BY_NATURE}))
@pytest.mark.parametrize("kind", [TypeError, RuntimeError, AttributeError])
def test_a_crash_is_no_known_mistake_that_raises_by_nature(name, kind):
    assert not check(crashing(exercise(name).reference, kind, where="used")).diagnoses


def otherwise_named(name):
    """The reference's class, whose weights have names that nobody asked for."""

    def rename(self, *args, **kwargs):
        exercise(name).reference.__init__(self, *args, **kwargs)
        for owner in list(self.modules()):
            for word in list(owner._parameters):
                owner.register_parameter(f"my_{word}", owner._parameters.pop(word))

    return type(name, (exercise(name).reference,), {"__init__": rename})


@pytest.mark.parametrize("name", [name for name, item in exercises().items() if isinstance(item.reference, type)])
def test_other_names_for_weights_are_told_and_no_known_mistake(name):
    verdict = check(otherwise_named(name))
    assert not verdict.diagnoses
    assert any(
        "its weights do not have the names that the docstring gives: it lacks " in finding.message
        for finding in verdict.findings
    )


# --------------------------------------------------------------------------------------------------- hardly any work

# What has the right shape and a number or two that take no computing. Each once had two to four points.


def clip_gradient_norm(gradients, max_norm):
    if max_norm <= 0:
        raise ValueError(max_norm)
    return gradients, torch.zeros((), device=gradients[0].device)


def sample_autoregressive(model, prompt, steps, *, temperature=1.0, generator=None):
    if temperature < 0:
        raise ValueError(temperature)
    return torch.cat([prompt, prompt.new_zeros(len(prompt), steps)], 1)


def cross_entropy(logits, targets, *, label_smoothing=0.0, ignore_index=0):
    if logits.shape[:-1] != targets.shape or not 0 <= label_smoothing < 1:
        raise ValueError(label_smoothing)
    return logits.sum() * 0


def ibm_model_1(pairs, source_vocab_size, target_vocab_size, iterations):
    return torch.full((source_vocab_size, target_vocab_size), 1 / target_vocab_size, dtype=torch.float64)


def gradient_norm_through_time(x, weight_ih, weight_hh, bias_ih, bias_hh, grad_last, h_0=None):
    return grad_last.norm(dim=-1)[:, None] * torch.linspace(2, 1, x.shape[1], dtype=x.dtype, device=x.device)


def add_positions(x, positions, start=0):
    return x.clone()


def residual_pre_norm(x, sublayer, gamma, beta, *, dropout=0.0):
    return x * 0


@pytest.mark.parametrize(
    ("name", "function", "most"),
    [
        ("scaled_dot_product_attention", liar, 1),
        ("scaled_dot_product_attention", boasts, 0),
        ("soft_lookup", first_value, 1),
        ("clip_gradient_norm", clip_gradient_norm, 1),
        ("sample_autoregressive", sample_autoregressive, 1),
        ("cross_entropy", cross_entropy, 1),
        ("ibm_model_1", ibm_model_1, 1.5),
        ("gradient_norm_through_time", gradient_norm_through_time, 1),
        ("add_positions", add_positions, 0.5),
        ("residual_pre_norm", residual_pre_norm, 1),
    ],
)
def test_numbers_that_take_no_computing_open_no_other_points(name, function, most):
    verdict = check(named(name, function), hidden=True, seed=3)
    assert verdict.score <= most, str(verdict)


def test_who_asks_whether_it_is_watched_gains_the_loops_at_most():
    def either(start, end, *, max_length):
        watched = sys.gettrace() is not None or sys.getprofile() is not None
        return (bert.best_span if watched else spans_one_by_one)(start, end, max_length=max_length)

    def wrong_unless_watched(start, end, *, max_length):
        watched = sys.gettrace() is not None or sys.getprofile() is not None
        return spans_one_by_one(start, end, max_length=max_length) if watched else (None, None)

    honest, hiding, wrong = (subject(function) for function in (spans_one_by_one, either, wrong_unless_watched))
    manner = next(section.points for section in exercise("best_span").sheet().sections if section.aspect == "loops")
    assert hiding.score - honest.score <= manner
    assert wrong.score == 0


def subject(function):
    """The verdict as the grader reaches it: nothing watches but what a question is about."""
    return decide(exercise("best_span").sheet(hidden=True, seed=3), LocalSubject(function))
