"""What is asked of a function or class in this process, and what is seen of it."""

import re
import sys
import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from autograder.checking.judges import judge, same_answer
from autograder.checking.request import Request, cotangent
from autograder.checking.subject import LocalSubject, code_of

X = torch.tensor([[0.5, -1.25, 2.0], [3.5, -0.75, 1.5]])


def ask(candidate, action="call", *, init=None, state=None, wrt=(), off_limits=frozenset(), **arguments):
    """Ask one thing of a candidate."""
    return LocalSubject(candidate, off_limits).observe(Request(action, arguments, init=init, state=state, wrt=wrt))


class Scaler(nn.Module):
    """Multiplies by a learnt row, with dropout that evaluation switches off."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.row = nn.Parameter(torch.rand(width))
        self.drop = nn.Dropout(0.9)

    def forward(self, x):
        return self.drop(x * self.row)


ROW = torch.tensor([2.0, 3.0, 5.0])


# --------------------------------------------------------------------------------------------------------------- call


def test_a_call_gives_named_outputs_and_leaves_the_request_as_it_is():
    x = X.clone()
    seen = ask(lambda x, n: (x.mul_(n), [n, "text"]), x=x, n=3)
    torch.testing.assert_close(seen.outputs["output[0]"], X * 3)
    assert (seen.outputs["output[1][0]"], seen.outputs["output[1][1]"]) == (3, "text")
    assert seen.mutated == ("x",)
    torch.testing.assert_close(x, X, rtol=0, atol=0, msg="the candidate works on a copy")


def test_a_mutation_is_seen_inside_tuples_and_beside_nan_and_only_where_it_happened():
    def change(x, pair, y):
        pair[1].add_(1)
        return x + y

    nan = X.clone()
    nan[0, 0] = float("nan")
    seen = ask(change, x=nan, pair=(X, X.clone()), y=X)
    assert seen.mutated == ("pair",)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        (["b", "a"], list.sort),
        (["a", "b"], list.reverse),
        (["a", "b"], list.clear),
        ([1, 2], lambda argument: argument.__setitem__(0, 1.0)),
        ([X, X], lambda argument: argument.__setitem__(1, X + 1)),
        ([(X, X)], lambda argument: argument.__setitem__(0, [X, X])),
        ([X], lambda argument: argument.__setitem__(0, X.double())),
        ({"a": 1.0, "b": 2.0}, lambda argument: argument.update(b=3.0)),
        ({"a": 1.0, "b": 2.0}, lambda argument: argument.update(a=argument.pop("a"))),
        ([{"a": [1, 2]}], lambda argument: argument[0]["a"].pop()),
    ],
    ids=["sorted", "reversed", "emptied", "retyped", "item", "kind", "dtype", "value", "order", "nested"],
)
def test_lists_and_mappings_changed_in_place_are_noticed(argument, change):
    assert ask(lambda x, y: change(x), x=argument, y=[1]).mutated == ("x",)
    assert ask(lambda x, y: change(y) if False else None, x=argument, y=[float("nan")]).mutated == ()


def test_a_generator_that_is_seeded_anew_is_noticed():
    def reseed(generator, again):
        if again:
            generator.manual_seed(4)
        return torch.rand(2, generator=generator)

    props = {"generator": {"kind": "Generator", "init": {"seed": 3}}}
    for again in (False, True):
        seen = LocalSubject(reseed).observe(Request("call", {"again": again}, props=props))
        assert seen.mutated == ("generator",) * again


@pytest.mark.parametrize(
    ("returned", "expected", "message"),
    [
        ({0: X}, [X], "the result is a dictionary, expected a list or tuple"),
        ([X], {0: X}, "the result is a list or tuple, expected a dictionary"),
        ([X, {0: 2}], (X, [2]), "result[1] is a dictionary, expected a list or tuple"),
        ({}, [], "the result is an empty dictionary, expected an empty list or tuple"),
        ([[]], [], "the result is a list or tuple, expected an empty list or tuple"),
        ([], [[]], "the result is an empty list or tuple, expected a list or tuple"),
        ([X, []], [X], "result[1] is an empty list or tuple, expected nothing there"),
        ([X], [X, []], "result[1] is missing, expected an empty list or tuple"),
        ({"a": X, "b": 1}, {"b": 1, "a": X}, None),
        ((X, [1]), [X, (1,)], None),
    ],
)
def test_a_result_in_another_container_is_wrong(returned, expected, message):
    seen, right = ([ask(lambda value=value: value)] for value in (returned, expected))
    for name in ("matches", "shapes"):
        assert judge(name, seen, right, {}) == message
    assert judge("matches_part", seen, right, {"outputs": []}) == message
    assert same_answer(seen[0], right[0]) == (message is None)


def test_outputs_are_cut_off_from_the_graph():
    seen = ask(Scaler, init={"width": 3}, state={"row": ROW}, x=X)
    assert not seen.outputs["output"].requires_grad


def test_a_class_is_made_loaded_and_put_in_evaluation():
    seen = ask(Scaler, init={"width": 3}, state={"row": ROW}, x=X)
    torch.testing.assert_close(seen.outputs["output"], X * ROW)
    seen = ask(Scaler, init={"width": 3}, state={"row": ROW.double()}, x=X.double())
    torch.testing.assert_close(seen.outputs["output"], X.double() * ROW.double(), msg="it takes the weights' dtype")


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ({"weight": ROW}, r"WeightsError: its weights.*it lacks weight; it also learns row"),
        ({}, r"WeightsError: its weights.*gives: it also learns row"),
        ({"row": ROW[:2]}, r"WeightsError: row should have shape \(2,\), it has \(3,\)"),
    ],
)
def test_weights_that_do_not_fit_are_named(state, error):
    seen = ask(Scaler, init={"width": 3}, state=state, x=X)
    assert re.search(error, seen.error)


class Keeping(Scaler):
    """The same, with something that it does not learn."""

    def __init__(self, width, how):
        super().__init__(width)
        table = torch.ones(width)
        if how == "buffer":
            self.register_buffer("table", table)
        elif how == "passing":
            self.register_buffer("table", table, persistent=False)
        else:
            self.table = nn.Parameter(table, requires_grad=False)

    def forward(self, x):
        return super().forward(x) * self.table


@pytest.mark.parametrize("how", ["buffer", "passing", "frozen"])
def test_what_is_not_learned_is_no_weight(how):
    state = {"row": ROW.double()}
    seen = ask(Keeping, init={"width": 3, "how": how}, state=state, x=X.double())
    torch.testing.assert_close(seen.outputs["output"], X.double() * ROW.double())
    seen = ask(Keeping, "gradients", init={"width": 3, "how": how}, state=state, wrt=("x",), x=X.double())
    assert set(seen.outputs) == {"gradient of x", "gradient of row"}
    assert ask(Keeping, "meta", init={"width": 3, "how": how}, state=state, x=X.double()).error is None


def test_a_buffer_that_is_among_the_weights_is_loaded():
    seen = ask(Keeping, init={"width": 3, "how": "buffer"}, state={"row": ROW, "table": 2 * ROW}, x=X)
    torch.testing.assert_close(seen.outputs["output"], X * ROW * 2 * ROW)


class Tied(nn.Module):
    """One weight under three names, of which the one that is asked for comes last."""

    def __init__(self, width, apart=False):
        super().__init__()
        self.there, self.back = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.embedding = nn.Embedding(width, width)
        if not apart:
            self.there.weight = self.embedding.weight
            self.back = self.there

    def forward(self, x):
        return self.back(self.there(x))


SQUARE = torch.tensor([[2.0, 3.0, 5.0], [7.0, -1.0, 4.0], [0.5, 1.5, -2.5]])


@pytest.mark.parametrize("action", ["call", "gradients", "meta"])
def test_a_weight_that_is_used_twice_is_one_weight_by_the_name_that_is_asked_for(action):
    def twice(x, weight):
        return x @ weight.T @ weight.T

    request = {"init": {"width": 3}, "state": {"embedding.weight": SQUARE}}
    seen = ask(Tied, action, wrt=("x",), x=X, **request)
    if action == "meta":
        assert seen.outputs == {"output": (2, 3)}
        return
    expected = ask(twice, action, wrt=("x", "weight"), x=X, weight=SQUARE)
    for name, value in expected.outputs.items():
        torch.testing.assert_close(seen.outputs[name.replace("of weight", "of embedding.weight")], value)
    assert len(seen.outputs) == len(expected.outputs)


def test_weights_that_were_to_be_one_and_are_not_are_named():
    seen = ask(Tied, init={"width": 3, "apart": True}, state={"embedding.weight": SQUARE}, x=X)
    assert "it also learns back.weight, there.weight" in seen.error


def test_a_class_that_makes_no_module_is_told_so():
    seen = ask(dict, init={"width": 3}, x=X)
    assert seen.error == "TypeError: dict(…) should make a torch.nn.Module, it made a dict"


def test_attributes_are_read_by_name():
    seen = ask(Scaler, "attributes", init={"width": 3}, wrt=("width", "training"))
    assert seen.outputs == {"width": 3, "training": False}
    assert "no attribute 'depth'" in ask(Scaler, "attributes", init={"width": 3}, wrt=("depth",)).error


# ----------------------------------------------------------------------------------------------------- what goes wrong


def test_an_exception_is_told_in_one_short_line():
    def fail(x):
        raise KeyError("a long story\n" * 100)

    seen = ask(fail, x=X)
    assert seen.error.startswith("KeyError: ")
    assert "\n" not in seen.error
    assert len(seen.error) < 350
    assert not seen.unfinished
    assert ask(lambda x: next(iter([])), x=X).error == "StopIteration"


@pytest.mark.parametrize("leave", [sys.exit, exit, quit])
def test_leaving_python_ends_the_examined_code_and_not_the_check(leave):
    seen = ask(lambda x: leave(3), x=X)
    assert seen.error == "SystemExit: 3"


def test_endless_recursion_is_an_error_like_any_other():
    def again(x):
        return again(x)

    assert ask(again, x=X).error.startswith("RecursionError")


def test_a_stop_from_the_keyboard_stops_the_check():
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(stop, x=X)


def test_a_stub_is_known_and_what_pytorch_cannot_do_is_no_stub():
    def stub(x):
        raise NotImplementedError

    assert ask(stub, x=X).unfinished
    for action in ("call", "gradients", "meta", "operations", "functions"):
        assert ask(stub, action, x=X, wrt=("x",)).unfinished, action
    seen = ask(lambda x: torch.empty(2, device="meta").to("cpu"), x=X)
    assert "NotImplementedError" in seen.error
    assert not seen.unfinished


def test_a_class_whose_constructor_or_forward_is_missing_is_a_stub():
    class Half(nn.Module):
        def forward(self, x):
            raise NotImplementedError

    class Neither(nn.Module):
        def __init__(self):
            raise NotImplementedError

    assert ask(Half, init={}, x=X).unfinished
    assert ask(Neither, init={}, x=X).unfinished


def test_warnings_stay_inside_because_nbgrader_takes_them_for_failure():
    def warn(x):
        warnings.warn("careful", stacklevel=1)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(warn, x=X).error is None


def test_random_numbers_are_the_same_in_every_request_and_go_on_outside():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = ask(lambda x: torch.rand(4), x=X).outputs["output"]
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
    second = ask(lambda x: torch.rand(4), x=X).outputs["output"]
    torch.testing.assert_close(first, second, rtol=0, atol=0)


# ---------------------------------------------------------------------------------------------------------- gradients


def test_gradients_by_arguments_and_by_parameters_are_those_of_the_fixed_wave():
    seen = ask(Scaler, "gradients", init={"width": 3}, state={"row": ROW}, wrt=("x",), x=X)
    wave = cotangent(X)
    torch.testing.assert_close(seen.outputs["gradient of x"], wave * ROW)
    torch.testing.assert_close(seen.outputs["gradient of row"], (wave * X).sum(0))


def test_gradients_of_several_outputs_are_added_and_an_unused_input_has_gradient_zero():
    seen = ask(lambda x, y: (x * 2, {"b": x * 3, "n": 5}), "gradients", wrt=("x", "y"), x=X, y=X)
    torch.testing.assert_close(seen.outputs["gradient of x"], cotangent(X) * 5)
    torch.testing.assert_close(seen.outputs["gradient of y"], torch.zeros_like(X))


def test_nothing_flows_back_through_an_infinite_output():
    excluded = torch.tensor([[False, True, False]]).expand_as(X)
    added = torch.zeros(X.shape).masked_fill(excluded, -torch.inf)
    for write in (lambda x: x + added, lambda x: x.masked_fill(excluded, -torch.inf)):
        seen = ask(write, "gradients", wrt=("x",), x=X)
        torch.testing.assert_close(seen.outputs["gradient of x"], cotangent(X).masked_fill(excluded, 0))


def test_each_tensor_of_a_nested_argument_has_a_gradient():
    seen = ask(lambda x, pair: x * pair[0] + pair[1].detach(), "gradients", wrt=("pair",), x=X, pair=(X, X))
    assert set(seen.outputs) == {"gradient of pair[0]", "gradient of pair[1]"}
    assert bool(seen.outputs["gradient of pair[0]"].any())
    assert not bool(seen.outputs["gradient of pair[1]"].any())


@pytest.mark.parametrize("cut", [lambda x: x.detach(), lambda x: torch.tensor(x.tolist()), lambda x: 5])
def test_a_result_that_is_cut_off_from_its_inputs_is_told(cut):
    assert "cut off from the inputs" in ask(cut, "gradients", wrt=("x",), x=X).error


def test_of_what_returns_nothing_it_is_not_said_that_it_cut_anything_off():
    assert "it returns nothing" in ask(lambda x: None, "gradients", wrt=("x",), x=X).error


def test_an_input_may_be_changed_in_place_when_gradients_are_asked_for():
    seen = ask(lambda x: x.mul_(2), "gradients", wrt=("x",), x=X)
    torch.testing.assert_close(seen.outputs["gradient of x"], cotangent(X) * 2)


# -------------------------------------------------------------------------------------------------------- meta device


class Buffered(nn.Module):
    """Keeps a constant, registered or not."""

    def __init__(self, registered):
        super().__init__()
        if registered:
            self.register_buffer("constant", torch.tensor([2.0, 3.0, 5.0]), persistent=False)
        else:
            self.constant = torch.tensor([2.0, 3.0, 5.0])
        self.row = nn.Parameter(torch.rand(3))

    def forward(self, x):
        return x * self.constant * self.row


def halved(x, too_large):
    while too_large(x):
        x = x / 2
    return x


@pytest.mark.parametrize(
    "stray",
    [
        lambda x: x + torch.tensor([1.5, 2.5, 3.5]),
        lambda x: x @ torch.tensor([[1.5], [2.5], [3.5]]),
        lambda x: torch.cat([x, torch.rand(2, 3)]),
        lambda x: torch.where(torch.tensor([True, False, True]), x, 0.5),
        lambda x: torch.rand(2, 3),
        lambda x: (x, torch.rand(2)),
        lambda x: x.cpu() * 2,
        lambda x: x * x.detach().cpu(),
        lambda x: x.numpy() is None or x,
        lambda x: pack_padded_sequence(torch.rand(2, 3, 1), [3, 2], batch_first=True).data,
        lambda x: (x if (x > 9).any() else x * 2) + torch.tensor([1.5, 2.5, 3.5]),
        lambda x: x + torch.rand(3) if not (x > 9).any() else torch.linalg.inv(x),
        lambda x: torch.rand(2, 3) if x.isfinite().all() else x,
        lambda x: x if x.isfinite().all() else torch.rand(2, 3),
        lambda x: x * 2 if (x < 9).all() else x + torch.rand(3),
    ],
)
def test_a_tensor_made_on_another_device_is_found_without_one(stray):
    assert ask(stray, "call", x=X).error is None, "on the CPU nobody notices"
    assert ask(stray, "meta", x=X).error


@pytest.mark.parametrize(
    "fine",
    [
        lambda x: x + torch.tensor([1.5, 2.5, 3.5], device=x.device),
        lambda x: x * torch.tensor(2.5),
        lambda x: x @ x.new_ones(3, 1),
        lambda x: x * torch.arange(3, device=x.device),
        lambda x: x * 2 if x.sum() > 0 else x,
        lambda x: x.masked_fill(~x.any(-1, keepdim=True), 0.5) if bool((x > 0).all()) else x,
        lambda x: x * float(x.max()),
        lambda x: x if not x.isnan().any() else torch.linalg.inv(x),
        lambda x: x * 2 if (x < 9).all().item() else torch.linalg.inv(x),
        lambda x: halved(x, lambda x: (x > 9).any()),
        lambda x: halved(x, lambda x: not (x < 9).all()),
        lambda x: x[:, : int((x > 9).sum()) or 2] if (x < 9).any() else torch.linalg.inv(x),
        lambda x: torch.stack([row[:n].sum() for row, n in zip(x, (x > 0).sum(1).tolist(), strict=True)]),
        lambda x: pack_padded_sequence(x[..., None], (x > 0).sum(1).cpu(), batch_first=True, enforce_sorted=False).data,
        lambda x: pack_padded_sequence(x[..., None], [3, 2], batch_first=True).data,
        lambda x: print(f"{x.max():.3f}") or x,
        lambda x: print(x.cpu(), x.detach().cpu().numpy(), x.tolist()) or x,
    ],
)
def test_code_that_follows_its_inputs_or_looks_at_their_numbers_passes_on_the_meta_device(fine):
    seen, expected = ask(fine, "meta", x=X), ask(fine, "call", x=X)
    assert seen.error is None
    assert seen.outputs == {"output": tuple(expected.outputs["output"].shape)}


@pytest.mark.parametrize("registered", [True, False])
def test_a_constant_of_a_layer_must_be_registered_to_move_with_it(registered):
    seen = ask(Buffered, "meta", init={"registered": registered}, state={"row": ROW}, x=X)
    assert (seen.error is None) is registered


# --------------------------------------------------------------------------------------------------------- operations


def test_operations_are_counted_and_a_loop_shows():
    def loop(x):
        return torch.stack([row * 2 for row in x])

    def whole(x):
        return x * 2

    counts = {f: [ask(f, "operations", x=X.repeat(n, 1)).operations for n in (1, 3)] for f in (loop, whole)}
    assert counts == {loop: [4, 8], whole: [1, 1]}


def test_the_largest_tensor_counts_what_is_stored_and_not_what_is_shown():
    assert ask(lambda x: x[:, :, None] * x[:, None, :], "operations", x=X).largest == 18
    assert ask(lambda x: (x + 1).expand(100, 2, 3), "operations", x=X).largest == 6


# --------------------------------------------------------------------------------------------------- borrowed solutions


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


def test_a_decorated_solution_is_known_by_its_own_code_and_not_by_its_decorator_s():
    decorated = torch.no_grad()(solution)
    assert code_of(decorated) == code_of(solution)
    answered = ask(torch.no_grad()(lambda x: x * 2), "call", x=X, off_limits=code_of(decorated))
    assert answered.error is None, "everybody may decorate"


@pytest.mark.parametrize(
    "borrowed",
    [
        solution,
        lambda x: solution(x),
        lambda x: (lambda y: solution(y) + 0)(x),
        lambda x: next(map(solution, [x])),
    ],
)
@pytest.mark.parametrize("action", ["call", "gradients", "meta", "operations", "functions"])
def test_the_course_s_own_solution_may_not_run_inside_a_candidate(borrowed, action):
    assert ask(borrowed, action, x=X, wrt=("x",)).error is None
    seen = ask(borrowed, action, x=X, wrt=("x",), off_limits=code_of(solution))
    assert seen.error == "UsesReferenceError: it calls the course's own solution, which is what you are asked to write"


def test_a_class_that_borrows_one_method_is_refused():
    assert code_of(SolutionLayer) == {SolutionLayer.__init__.__code__, SolutionLayer.forward.__code__}
    request = {"init": {}, "state": {"row": ROW}, "x": X}
    assert ask(BorrowedForward, **request).error is None
    assert "SolutionLayer.forward" in ask(BorrowedForward, **request, off_limits=code_of(SolutionLayer)).error


def test_watching_for_borrowed_code_ends_with_the_request():
    before = sys.getprofile()
    ask(lambda x: 1 / 0, x=X, off_limits=code_of(solution))
    assert sys.getprofile() is before
    assert solution(2) == 4


def test_a_result_on_another_device_is_not_said_to_have_been_raised():
    seen = ask(lambda x: torch.rand(2, 3), "meta", x=X)
    expected = ask(lambda x: x * 2, "meta", x=X)
    assert (
        judge("shapes", [seen], [expected], {}) == "the result is on the CPU, although the inputs are on another device"
    )


def test_a_layer_whose_weights_are_read_one_by_one_is_made_once_and_no_other_question_meets_it():
    made = []

    class Counted(Scaler):
        def __init__(self, width):
            super().__init__(width)
            self.shift = nn.Parameter(torch.rand(width))
            made.append(self)

        def forward(self, x):
            self.row.data.zero_()
            return super().forward(x)

    subject = LocalSubject(Counted)
    row, shift, again = (
        Request("call", {"target": name}, init={"width": width}, method="get_parameter")
        for name, width in (("row", 3), ("shift", 3), ("row", 3))
    )
    first, second = subject.observe(row), subject.observe(shift)
    assert len(made) == 1
    assert not torch.equal(first.outputs["output"], second.outputs["output"])
    subject.observe(Request("call", {"x": X}, init={"width": 3}))
    assert len(made) == 2
    torch.testing.assert_close(subject.observe(again).outputs["output"], first.outputs["output"], rtol=0, atol=0)
    subject.observe(replace(row, init={"width": 2}))
    assert len(made) == 3


def test_what_several_aspects_ask_is_done_once_and_what_is_almost_the_same_is_done():
    called = []

    def noted(x):
        called.append(x)
        return x

    x = torch.tensor([0.0, 1.0])
    requests = [
        Request("call", {"x": x}),
        Request("call", {"x": x.clone()}),
        Request("call", {"x": -x}),  # a zero of another sign
        Request("call", {"x": x.double()}),
        Request("gradients", {"x": x}, wrt=("x",)),
    ]
    subject = LocalSubject(noted)
    first, second, *others = (
        subject.observe_groups([requests[:1], requests[1:]])[0] + subject.observe_groups([requests[1:]])[0]
    )
    assert first is second
    assert len(called) == 1 + len(others)


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_products_are_exact_whatever_was_set(precision: str) -> None:
    seen_inside: list[str] = []

    def product(x: torch.Tensor) -> torch.Tensor:
        seen_inside.append(torch.get_float32_matmul_precision())
        return x @ x

    torch.set_float32_matmul_precision(precision)
    try:
        LocalSubject(product).observe(Request("call", {"x": torch.eye(2)}))
        assert (seen_inside, torch.get_float32_matmul_precision()) == (["highest"], precision)
    finally:
        torch.set_float32_matmul_precision("highest")
