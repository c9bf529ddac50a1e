"""What only a subject in this process is asked: whose code it runs, how often, and under which of PyTorch's settings."""

import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from autograder.checking.request import Request
from autograder.checking.subject import LocalSubject, list_code_objects

from .subjects import ACTIONS, local

X = torch.tensor([[0.5, -1.25, 2.0], [3.5, -0.75, 1.5]])
ROW = torch.tensor([2.0, 3.0, 5.0])
WIDTH = {"width": 3}


def solution(x):
    """Stands for the course's own."""
    return x * 2


class SolutionLayer(nn.Module):
    """Stands for the course's own layer."""

    def __init__(self):
        super().__init__()
        self.row = nn.Parameter(torch.rand(3))

    def forward(self, x):
        return x * self.row


class BorrowedForward(SolutionLayer):
    """Writes the constructor and borrows the rest."""

    def __init__(self):
        nn.Module.__init__(self)
        self.row = nn.Parameter(torch.rand(3))


def watched(candidate, off_limits, action="call", **more):
    """Ask one thing of a candidate that must not run some code."""
    request = Request(action, {"x": X}, wrt=("x",) if "init" not in more else (), **more)
    return LocalSubject(candidate, off_limits).observe(request).error


def test_a_decorated_solution_is_known_by_its_own_code_and_not_by_its_decorator_s():
    decorated = torch.no_grad()(solution)
    assert list_code_objects(decorated) == list_code_objects(solution)
    assert watched(torch.no_grad()(lambda x: x * 2), list_code_objects(decorated)) is None, "everybody may decorate"


@pytest.mark.parametrize(
    "borrowed",
    [
        solution,
        lambda x: solution(x),
        lambda x: (lambda y: solution(y) + 0)(x),
        lambda x: next(map(solution, [x])),
    ],
)
@pytest.mark.parametrize("action", ACTIONS)
def test_the_course_s_own_solution_may_not_run_inside_a_candidate(borrowed, action):
    assert watched(borrowed, frozenset(), action) is None
    assert "UsesReferenceError: it calls the course's own solution" in watched(
        borrowed, list_code_objects(solution), action
    )


def test_a_class_that_borrows_one_method_is_refused():
    assert list_code_objects(SolutionLayer) == {SolutionLayer.__init__.__code__, SolutionLayer.forward.__code__}
    request = {"init": {}, "state": {"row": ROW}}
    assert watched(BorrowedForward, frozenset(), **request) is None
    assert "SolutionLayer.forward" in watched(BorrowedForward, list_code_objects(SolutionLayer), **request)


def test_watching_for_borrowed_code_ends_with_the_request():
    before = sys.getprofile()
    watched(lambda x: 1 / 0, list_code_objects(solution))
    assert sys.getprofile() is before
    assert solution(2) == 4


def test_a_layer_whose_weights_are_read_one_by_one_is_made_once_and_no_other_question_meets_it():
    made = []

    class Counted(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.row, self.shift = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(width))
            made.append(self)

        def forward(self, x):
            return self.row.data.zero_() + x

    subject = LocalSubject(Counted)
    row, shift = (Request("call", {"target": n}, init=WIDTH, method="get_parameter") for n in ("row", "shift"))
    first, second = subject.observe(row), subject.observe(shift)
    assert len(made) == 1
    assert not torch.equal(first.outputs["output"], second.outputs["output"])
    subject.observe(Request("call", {"x": X}, init=WIDTH))
    assert len(made) == 2
    torch.testing.assert_close(subject.observe(row).outputs["output"], first.outputs["output"], rtol=0, atol=0)
    subject.observe(replace(row, init={"width": 2}))
    assert len(made) == 3


def test_what_several_aspects_ask_is_done_once_and_what_is_almost_the_same_is_done():
    called = []
    x = torch.tensor([0.0, 1.0])
    requests = [
        Request("call", {"x": x}),
        Request("call", {"x": x.clone()}),
        Request("call", {"x": -x}),  # a zero of another sign
        Request("call", {"x": x.double()}),
        Request("gradients", {"x": x}, wrt=("x",)),
    ]
    subject = LocalSubject(lambda x: called.append(x) or x)
    asked = [subject.observe_groups(groups)[0] for groups in ([requests[:1], requests[1:]], [requests[1:]])]
    first, second, *others = asked[0] + asked[1]
    assert first is second
    assert len(called) == 1 + len(others)


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_products_are_exact_whatever_was_set(precision: str) -> None:
    torch.set_float32_matmul_precision(precision)
    try:
        seen = local("lambda x: torch.get_float32_matmul_precision()").observe(Request("call", {"x": X}))
        assert (seen.outputs["output"], torch.get_float32_matmul_precision()) == ("highest", precision)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_stop_from_the_keyboard_stops_the_check():
    with pytest.raises(KeyboardInterrupt):
        local("def f(x): raise KeyboardInterrupt").observe(Request("call", {"x": X}))
