"""What is asked of a function or class, here or in a student's process, and what is seen of it."""

import warnings

import pytest
import torch

from autograder.checking.judges import is_same_answer, judge
from autograder.checking.request import Request, make_cotangent

from .subjects import ACTIONS, local, remote

X = torch.tensor([[0.5, -1.25, 2.0], [3.5, -0.75, 1.5]])
ROW = torch.tensor([2.0, 3.0, 5.0])
SQUARE = torch.tensor([[2.0, 3.0, 5.0], [7.0, -1.0, 4.0], [0.5, 1.5, -2.5]])
WAVE = make_cotangent(X)
NAN = X.masked_fill(X == 0.5, float("nan"))

# Multiplies by a learnt row, with dropout that evaluation switches off, and by something that it does not learn.
SCALER = """
class f(nn.Module):
    def __init__(self, width, constant=None):
        super().__init__()
        self.width, self.constant = width, constant
        self.row, self.drop = nn.Parameter(torch.rand(width)), nn.Dropout(0.9)
        table = torch.ones(width)
        if constant in ("buffer", "passing"):
            self.register_buffer("table", table, persistent=constant == "buffer")
        elif constant:
            self.table = nn.Parameter(table, requires_grad=False) if constant == "frozen" else table
    def forward(self, x):
        return self.drop(x * self.row) * (self.table if self.constant else 1)
"""
# One weight under three names, of which the one that is asked for comes last.
TIED = """
class f(nn.Module):
    def __init__(self, width, apart=False):
        super().__init__()
        self.there, self.back = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.embedding = nn.Embedding(width, width)
        if not apart:
            self.there.weight = self.embedding.weight
            self.back = self.there
    def forward(self, x):
        return self.back(self.there(x))
"""
WIDTH = {"width": 3}


# --------------------------------------------------------------------------------------------------------------- call


def test_a_call_gives_named_outputs_and_leaves_the_request_as_it_is(ask):
    x = X.clone()
    seen = ask("lambda x, n: (x.mul_(n), [n, 'text'])", x=x, n=3)
    torch.testing.assert_close(seen.outputs["output[0]"], X * 3)
    assert (seen.outputs["output[1][0]"], seen.outputs["output[1][1]"]) == (3, "text")
    assert seen.mutated == ("x",)
    torch.testing.assert_close(x, X, rtol=0, atol=0, msg="the candidate works on a copy")


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ((X, X), "x[1].add_(1)"),
        ((NAN, X), "x[1].add_(1)"),
        (["b", "a"], "x.sort()"),
        (["a", "b"], "x.reverse()"),
        (["a", "b"], "x.clear()"),
        ([1, 2], "x[0] = 1.0"),
        ([X, X], "x[1] = x[1] + 1"),
        ([(X, X)], "x[0] = list(x[0])"),
        ([X], "x[0] = x[0].double()"),
        ({"a": 1.0, "b": 2.0}, "x['b'] = 3.0"),
        ({"a": 1.0, "b": 2.0}, "x['a'] = x.pop('a')"),
        ({"a": 1.0, "b": 1.0}, "x['a'] = x.pop('a')"),
        ([{"a": [1, 2]}], "x[0]['a'].pop()"),
    ],
)
def test_a_change_in_place_is_noticed_only_where_it_happened(ask, argument, change):
    assert ask(f"def f(x, y, z):\n    {change}", x=argument, y=[float("nan")], z=NAN).mutated == ("x",)


@pytest.mark.parametrize("again", [False, True])
def test_a_generator_that_is_seeded_anew_is_noticed(ask, again):
    source = "lambda generator, again: again and generator.manual_seed(4) is None or torch.rand(2, generator=generator)"
    seen = ask(source, props={"generator": {"kind": "Generator", "init": {"seed": 3}}}, again=again)
    assert seen.mutated == ("generator",) * again


@pytest.mark.parametrize(
    ("returned", "expected", "message"),
    [
        ("{0: x}", "[x]", "the result is a dictionary, expected a list or tuple"),
        ("[x]", "{0: x}", "the result is a list or tuple, expected a dictionary"),
        ("[x, {0: 2}]", "(x, [2])", "result[1] is a dictionary, expected a list or tuple"),
        ("{}", "[]", "the result is an empty dictionary, expected an empty list or tuple"),
        ("[[]]", "[]", "the result is a list or tuple, expected an empty list or tuple"),
        ("[]", "[[]]", "the result is an empty list or tuple, expected a list or tuple"),
        ("[x, []]", "[x]", "result[1] is an empty list or tuple, expected nothing there"),
        ("[x]", "[x, []]", "result[1] is missing, expected an empty list or tuple"),
        ("{'a': x, 'b': 1}", "{'b': 1, 'a': x}", None),
        ("(x, [1])", "[x, (1,)]", None),
    ],
)
def test_a_result_in_another_container_is_wrong(ask, returned, expected, message):
    seen, right = ([ask(f"lambda x: {value}", x=X)] for value in (returned, expected))
    for name in ("matches", "shapes"):
        assert judge(name, seen, right, {}) == message
    assert judge("matches_part", seen, right, {"outputs": []}) == message
    assert is_same_answer(seen[0], right[0]) == (message is None)


def test_a_class_is_made_loaded_and_put_in_evaluation_and_its_outputs_are_cut_off_from_the_graph(ask):
    for x, row in ((X, ROW), (X.double(), ROW.double())):
        seen = ask(SCALER, init=WIDTH, state={"row": row}, x=x)
        torch.testing.assert_close(seen.outputs["output"], x * row)
        assert not seen.outputs["output"].requires_grad


@pytest.mark.parametrize(
    ("source", "init", "state", "error"),
    [
        (SCALER, {}, {"weight": ROW}, "it lacks weight; it has further parameters: row"),
        (SCALER, {}, {}, "gives: it has further parameters: row"),
        (SCALER, {}, {"row": ROW[:2]}, "WeightsError: row should have shape (2,), but it has (3,)"),
        (TIED, {"apart": True}, {"embedding.weight": SQUARE}, "it has further parameters: back.weight, there.weight"),
    ],
)
def test_weights_that_do_not_fit_are_named(ask, source, init, state, error):
    assert error in ask(source, init=WIDTH | init, state=state, x=X).error


@pytest.mark.parametrize("constant", ["buffer", "passing", "frozen"])
def test_what_is_not_learned_is_no_weight(ask, constant):
    request = {"init": WIDTH | {"constant": constant}, "state": {"row": ROW.double()}, "x": X.double()}
    torch.testing.assert_close(ask(SCALER, **request).outputs["output"], X.double() * ROW.double())
    assert set(ask(SCALER, "gradients", wrt=("x",), **request).outputs) == {"gradient of x", "gradient of row"}


def test_a_buffer_that_is_among_the_weights_is_loaded(ask):
    seen = ask(SCALER, init=WIDTH | {"constant": "buffer"}, state={"row": ROW, "table": 2 * ROW}, x=X)
    torch.testing.assert_close(seen.outputs["output"], X * ROW * 2 * ROW)


@pytest.mark.parametrize("action", ["call", "gradients", "meta"])
def test_a_weight_that_is_used_twice_is_one_weight_by_the_name_that_is_asked_for(ask, action):
    seen = ask(TIED, action, init=WIDTH, state={"embedding.weight": SQUARE}, wrt=("x",), x=X)
    expected = ask("lambda x, weight: x @ weight.T @ weight.T", action, wrt=("x", "weight"), x=X, weight=SQUARE)
    renamed = {name.replace("of weight", "of embedding.weight"): value for name, value in expected.outputs.items()}
    torch.testing.assert_close(dict(seen.outputs), renamed)


def test_attributes_are_read_by_name(ask):
    seen = ask(SCALER, "attributes", init=WIDTH, wrt=("width", "training"))
    assert seen.outputs == {"width": 3, "training": False}
    assert "no attribute 'depth'" in ask(SCALER, "attributes", init=WIDTH, wrt=("depth",)).error


# ----------------------------------------------------------------------------------------------------- what goes wrong

MODULE = "class f(nn.Module):\n    "


@pytest.mark.parametrize(
    ("source", "init", "error", "unfinished"),
    [
        ("def f(x): raise KeyError('a long  story\\n' * 100)", None, "KeyError: 'a long story", False),
        ("lambda x: next(iter([]))", None, "StopIteration", False),
        ("import sys\ndef f(x): sys.exit(3)", None, "SystemExit: 3", False),
        ("def f(x): return f(x)", None, "RecursionError", False),
        ("def f(x): raise NotImplementedError", None, "NotImplementedError", True),
        ("lambda x: torch.empty(2, device='meta').to('cpu')", None, "NotImplementedError", False),
        (f"{MODULE}def forward(self, x): raise NotImplementedError", {}, "NotImplementedError", True),
        (f"{MODULE}def __init__(self): raise NotImplementedError", {}, "NotImplementedError", True),
        (
            "def f(width): return {}",
            WIDTH,
            "TypeError: f(…) should create a torch.nn.Module, but it created a dict",
            False,
        ),
        ("def f(y): return y", None, "TypeError", False),
    ],
)
def test_an_exception_is_told_in_one_short_line_and_a_stub_is_known(ask, source, init, error, unfinished):
    seen = ask(source, init=init, x=X)
    assert seen.error.startswith(error)
    assert "\n" not in seen.error
    assert len(seen.error) < 350
    assert seen.unfinished is unfinished


def test_a_stub_is_known_whatever_is_asked_of_it(ask):
    for action in ACTIONS:
        assert ask("def f(x): raise NotImplementedError", action, x=X, wrt=("x",)).unfinished, action


def test_warnings_stay_inside_because_nbgrader_takes_them_for_failure(ask):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask("import warnings\ndef f(x): warnings.warn('careful', stacklevel=1)", x=X).error is None


def test_random_numbers_are_the_same_in_every_request_and_go_on_outside(ask):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first = ask("lambda x: torch.rand(4)", x=X).outputs["output"]
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
    torch.testing.assert_close(ask("lambda x: torch.rand(4)", x=X).outputs["output"], first, rtol=0, atol=0)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    print('hello')\n    return x",
        "def f(x): raise ValueError('no  such\\nthing')",
        "lambda x: ('text', None, [1.5, {'a': x}])",
        "lambda x: x / 0 - x / 0",
        "lambda x: x.numpy()",
        "lambda x: object()",
        "def f(x):\n    out = torch.zeros(())\n    for i in x.flatten(): out = out + i\n    return out",
    ],
)
def test_an_odd_function_is_seen_in_a_students_process_as_it_is_here(one_student, source):
    for action in ACTIONS:
        request = Request(action, {"x": X}, wrt=("x",))
        here, there = (each.observe(request) for each in (local(source), remote(one_student, source)))
        assert vars(there) | {"outputs": list(there.outputs)} == vars(here) | {"outputs": list(here.outputs)}


# ---------------------------------------------------------------------------------------------------------- gradients

EXCLUDED = torch.tensor([[False, True, False]]).expand_as(X)
ADDED = torch.zeros(X.shape).masked_fill(EXCLUDED, -torch.inf)


@pytest.mark.parametrize(
    ("source", "wrt", "arguments", "expected"),
    [
        ("lambda x, y: (x * 2, {'b': x * 3, 'n': 5})", ("x", "y"), {"x": X, "y": X}, {"x": WAVE * 5, "y": 0 * X}),
        ("lambda x, added: x + added", ("x",), {"x": X, "added": ADDED}, {"x": WAVE.masked_fill(EXCLUDED, 0)}),
        ("lambda x, m: x.masked_fill(m, -math.inf)", ("x",), {"x": X, "m": EXCLUDED}, {"x": WAVE.masked_fill(EXCLUDED, 0)}),
        ("lambda x, p: x * p[0] + p[1].detach()", ("p",), {"x": X, "p": (X, X)}, {"p[0]": WAVE * X, "p[1]": 0 * X}),
        ("lambda x: x.mul_(2)", ("x",), {"x": X}, {"x": WAVE * 2}),
    ],
    ids=["several outputs and an unused input", "added infinity", "filled infinity", "nested", "in place"],
)  # fmt: skip
def test_gradients_are_those_of_the_fixed_wave(ask, source, wrt, arguments, expected):
    seen = ask(source, "gradients", wrt=wrt, **arguments)
    torch.testing.assert_close(dict(seen.outputs), {f"gradient of {name}": value for name, value in expected.items()})


def test_gradients_by_parameters_are_asked_for_too(ask):
    seen = ask(SCALER, "gradients", init=WIDTH, state={"row": ROW}, wrt=("x",), x=X)
    expected = {"gradient of x": WAVE * ROW, "gradient of row": (WAVE * X).sum(0)}
    torch.testing.assert_close(dict(seen.outputs), expected)


@pytest.mark.parametrize(
    ("cut", "error"),
    [("x.detach()", "cut off"), ("torch.tensor(x.tolist())", "cut off"), ("5", "cut off"), ("None", "returns nothing")],
)
def test_a_result_that_is_cut_off_from_its_inputs_or_missing_is_told(ask, cut, error):
    assert error in ask(f"lambda x: {cut}", "gradients", wrt=("x",), x=X).error


# -------------------------------------------------------------------------------------------------------- meta device

IMPORTS = "from torch.nn.utils.rnn import pack_padded_sequence\n"
HALVED = "def f(x):\n    while {}:\n        x = x / 2\n    return x"


@pytest.mark.parametrize(
    "stray",
    [
        "x + torch.tensor([1.5, 2.5, 3.5])",
        "x @ torch.tensor([[1.5], [2.5], [3.5]])",
        "torch.cat([x, torch.rand(2, 3)])",
        "torch.where(torch.tensor([True, False, True]), x, 0.5)",
        "torch.rand(2, 3)",
        "(x, torch.rand(2))",
        "x.cpu() * 2",
        "x * x.detach().cpu()",
        "x.numpy() is None or x",
        "pack_padded_sequence(torch.rand(2, 3, 1), [3, 2], batch_first=True).data",
        "(x if (x > 9).any() else x * 2) + torch.tensor([1.5, 2.5, 3.5])",
        "x + torch.rand(3) if not (x > 9).any() else torch.linalg.inv(x)",
        "torch.rand(2, 3) if x.isfinite().all() else x",
        "x if x.isfinite().all() else torch.rand(2, 3)",
        "x * 2 if (x < 9).all() else x + torch.rand(3)",
    ],
)
def test_a_tensor_made_on_another_device_is_found_without_one(ask, stray):
    source = f"{IMPORTS}f = lambda x: {stray}"
    assert ask(source, x=X).error is None, "on the CPU nobody notices"
    assert ask(source, "meta", x=X).error


@pytest.mark.parametrize(
    "fine",
    [
        "x + torch.tensor([1.5, 2.5, 3.5], device=x.device)",
        "x * torch.tensor(2.5)",
        "x @ x.new_ones(3, 1)",
        "x * torch.arange(3, device=x.device)",
        "x * 2 if x.sum() > 0 else x",
        "x.masked_fill(~x.any(-1, keepdim=True), 0.5) if bool((x > 0).all()) else x",
        "x * float(x.max())",
        "x if not x.isnan().any() else torch.linalg.inv(x)",
        "x * 2 if (x < 9).all().item() else torch.linalg.inv(x)",
        HALVED.format("(x > 9).any()"),
        HALVED.format("not (x < 9).all()"),
        "x[:, : int((x > 9).sum()) or 2] if (x < 9).any() else torch.linalg.inv(x)",
        "torch.stack([row[:n].sum() for row, n in zip(x, (x > 0).sum(1).tolist(), strict=True)])",
        "pack_padded_sequence(x[..., None], (x > 0).sum(1).cpu(), batch_first=True, enforce_sorted=False).data",
        "pack_padded_sequence(x[..., None], [3, 2], batch_first=True).data",
        "print(f'{x.max():.3f}') or x",
        "print(x.cpu(), x.detach().cpu().numpy(), x.tolist()) or x",
    ],
)
def test_code_that_follows_its_inputs_or_looks_at_their_numbers_passes_on_the_meta_device(ask, fine):
    source = fine if fine.startswith("def") else f"{IMPORTS}f = lambda x: {fine}"
    seen, expected = ask(source, "meta", x=X), ask(source, x=X)
    assert seen.error is None
    assert seen.outputs == {"output": tuple(expected.outputs["output"].shape)}


@pytest.mark.parametrize(
    ("constant", "moves"), [("passing", True), ("buffer", True), ("frozen", True), ("plain", False)]
)
def test_a_constant_of_a_layer_must_be_registered_to_move_with_it(ask, constant, moves):
    seen = ask(SCALER, "meta", init=WIDTH | {"constant": constant}, state={"row": ROW}, x=X)
    assert (seen.error is None) is moves


def test_a_result_on_another_device_is_not_said_to_have_been_raised(ask):
    seen, expected = ask("lambda x: torch.rand(2, 3)", "meta", x=X), ask("lambda x: x * 2", "meta", x=X)
    assert "raised" not in judge("shapes", [seen], [expected], {})


# --------------------------------------------------------------------------------------------------------- operations


def test_operations_are_counted_and_a_loop_shows(ask):
    sources = ("lambda x: torch.stack([row * 2 for row in x])", "lambda x: x * 2")
    counts = [[ask(f, "operations", x=X.repeat(n, 1)).operations for n in (1, 3)] for f in sources]
    assert counts == [[4, 8], [1, 1]]


def test_the_largest_tensor_counts_what_is_stored_and_not_what_is_shown(ask):
    assert ask("lambda x: x[:, :, None] * x[:, None, :]", "operations", x=X).largest == 18
    assert ask("lambda x: (x + 1).expand(100, 2, 3)", "operations", x=X).largest == 6
