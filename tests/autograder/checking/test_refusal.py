"""What an exercise forbids is refused, whatever way leads to it, and afterwards everything is as it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import einops
import functorch.einops.rearrange  # noqa: F401 - an older copy, found in sys.modules
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._decomp import decompositions
from torch._functorch import einops as copied_einops
from torch.fx.experimental.proxy_tensor import make_fx

from autograder.checking import refusal
from autograder.checking.draw import Case
from autograder.checking.refusal import ForbiddenFunctionError, refusing_functions
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from autograder.checks.ch05_transformer.ready_made import NORMS
from autograder.checks.ch11_vision.patches import CUTTING
from autograder.engine.student import forbidden

Way = Callable[[Tensor], Any]
X = torch.rand(2, 3, 4)
WIDTH = X.shape[-1]

taken_before = F.scaled_dot_product_attention
attention = nn.MultiheadAttention(WIDTH, 1, batch_first=True).requires_grad_(False).eval()
layer = nn.TransformerEncoderLayer(WIDTH, 1, 8, batch_first=True).requires_grad_(False).eval()


def composed(x: Tensor) -> Tensor:
    """Attend by a function of PyTorch's that consists of ordinary operations."""
    eye = torch.eye(WIDTH)
    return F.multi_head_attention_forward(x, x, x, WIDTH, 1, eye.repeat(3, 1), None, None, None, False, 0.0, eye, None)[
        0
    ]


def in_a_thread(x: Tensor) -> Tensor:
    """Attend in another thread."""
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(F.scaled_dot_product_attention(x, x, x))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0]


def below_autograd(x: Tensor) -> Tensor:
    """Attend with autograd's keys switched off."""
    with torch._C._AutoDispatchBelowAutograd():
        return F.scaled_dot_product_attention(x, x, x)


ATTENDING: dict[str, Way] = {
    "the function": lambda x: F.scaled_dot_product_attention(x, x, x),
    "a reference taken before": lambda x: taken_before(x, x, x),
    "the extension module": lambda x: torch._C._nn.scaled_dot_product_attention(x, x, x),
    "the operator": lambda x: torch.ops.aten.scaled_dot_product_attention(x, x, x),
    "its overload": lambda x: torch.ops.aten.scaled_dot_product_attention.default(x, x, x),
    "the mathematical kernel": lambda x: torch.ops.aten._scaled_dot_product_attention_math(x, x, x)[0],
    "the fused kernel": lambda x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*3 * (x[None],))[0],
    "a module": lambda x: attention(x, x, x)[0],
    "a module without weights": lambda x: attention(x, x, x, need_weights=False)[0],
    "a whole layer": layer,
    "plain operations of PyTorch's": composed,
    "vmap": lambda x: torch.vmap(lambda one: F.scaled_dot_product_attention(one, one, one))(x),
    "a nested tensor": lambda x: F.scaled_dot_product_attention(*3 * (torch.nested.nested_tensor([x, x]),)),
    "the meta device": lambda x: F.scaled_dot_product_attention(*3 * (x.to("meta"),)),
    "with a gradient": lambda x: F.scaled_dot_product_attention(*3 * (x.clone().requires_grad_(),)),
    "another thread": in_a_thread,
    "keys switched off": below_autograd,
}
STATE = torch.zeros(1, 3, WIDTH)


def weights(gates: int) -> list[Tensor]:
    """Return a recurrent layer's weights and biases."""
    return [torch.rand(gates * WIDTH, *shape) for shape in ((WIDTH,), (WIDTH,), (), ())]


OPTIONS = (True, 1, 0.0, False, False, False)
READING: dict[str, Way] = {
    "a layer": lambda x: nn.LSTM(WIDTH, WIDTH)(x)[0],
    "a cell": lambda x: nn.GRUCell(WIDTH, WIDTH)(x[0]),
    "the LSTM's decomposition": lambda x: decompositions.lstm_impl(x, (STATE, STATE), weights(4), *OPTIONS)[0],
    "the GRU's decomposition": lambda x: decompositions.gru_impl(x, STATE, weights(3), *OPTIONS)[0],
    "the plain network's decomposition": lambda x: decompositions.rnn_tanh_input(x, STATE, weights(1), *OPTIONS)[0],
}
NORMALISING: dict[str, Way] = {
    "the function": lambda x: F.layer_norm(x, (WIDTH,)),
    "the kernel": lambda x: torch.ops.aten.native_layer_norm(x, [WIDTH], None, None, 1e-5)[0],
    "a module": nn.LayerNorm(WIDTH),
    "built-in functions": lambda x: torch._C._VariableFunctions.layer_norm(x, (WIDTH,)),
    "another norm": lambda x: F.group_norm(x, 1),
    "a local norm": lambda x: F.local_response_norm(x, 3),
}


@pytest.mark.parametrize(
    ("names", "way"),
    [
        *(pytest.param(FUSED, way, id=f"attention: {name}") for name, way in ATTENDING.items()),
        *(pytest.param(RECURRENT_LAYERS, way, id=f"recurrent: {name}") for name, way in READING.items()),
        *(pytest.param(NORMS, way, id=f"norm: {name}") for name, way in NORMALISING.items()),
        pytest.param(("relu",), lambda x: torch.relu_(x.clone()), id="an operator in place"),
        pytest.param(CUTTING, lambda x: einops.rearrange(x, "a b c -> b a c"), id="einops"),
        pytest.param(CUTTING, lambda x: copied_einops.rearrange(x, "a b c -> b a c"), id="PyTorch's copy of einops"),
        pytest.param(
            CUTTING,
            lambda x: sys.modules["functorch.einops.rearrange"].rearrange(x, "a b c -> b a c"),
            id="PyTorch's old copy of einops",
        ),
    ],
)
def test_no_way_leads_to_what_is_forbidden(names: tuple[str, ...], way: Way) -> None:
    before = way(X)
    with refusing_functions("attend", names) as called, pytest.raises(ForbiddenFunctionError, match="attend"):
        way(X)
    assert called
    assert called <= set(names)
    after = way(X)
    assert isinstance(after, type(before))


RECORDING: dict[str, Callable[[], Any]] = {
    "trace": lambda: torch.jit.trace(composed, (X,)),
    "trace_module": lambda: torch.jit.trace_module(attention, {"forward": (X, X, X)}),
    "make_fx": lambda: make_fx(composed)(X),
    "symbolic_trace": lambda: torch.fx.symbolic_trace(layer),
    "export": lambda: torch.export.export(attention, (X, X, X)),
}


@pytest.mark.parametrize("way", RECORDING.values(), ids=RECORDING.keys())
def test_no_graph_is_recorded(way: Callable[[], Any]) -> None:
    with refusing_functions("attend", FUSED) as called, pytest.raises(ForbiddenFunctionError):
        way()
    assert called


def test_other_functions_work_meanwhile() -> None:
    expected = torch.softmax(X @ X.transpose(-2, -1), -1) @ X
    with refusing_functions("attend", FUSED) as called:
        torch.testing.assert_close(torch.softmax(X @ X.transpose(-2, -1), -1) @ X, expected)
        F.layer_norm(X, (WIDTH,))
        torch.eye(2).trace()  # the name of a recorder is that of an operator, too
    assert not called


def test_a_layer_may_be_made_and_its_call_is_refused_under_its_own_name() -> None:
    with refusing_functions("cell", RECURRENT_LAYERS) as called:
        layer = nn.LSTM(WIDTH, 2)
        assert not called
        with pytest.raises(ForbiddenFunctionError, match=r"^LSTM is refused"):
            layer(X)
    assert called == {"LSTM"}


def test_every_way_of_observing_refuses() -> None:
    subject = LocalSubject(lambda x: F.scaled_dot_product_attention(x, x, x))
    case = Case({"x": X})
    requests = [case.request(action) for action in ("call", "meta", "operations", "functions")]
    requests.append(case.request("gradients", ("x",)))
    for observation in subject.observe_groups([requests], forbidden=FUSED)[0]:
        assert observation.functions == ("scaled_dot_product_attention",)
        assert observation.error is not None


def test_a_refused_call_counts_though_it_is_caught() -> None:
    def caught(x: Tensor) -> Tensor:
        try:
            return F.scaled_dot_product_attention(x, x, x)
        except RuntimeError:
            return x

    ((first, second),) = LocalSubject(caught).observe_groups(
        [[Case({"x": X}).request(), Case({"x": X + 1}).request("meta")]], forbidden=FUSED
    )
    assert first.functions == second.functions == ("scaled_dot_product_attention",)


FLEX = {"flex_attention", "math_attention", "_math_attention_inner", "sdpa_dense", "sdpa_dense_backward"}


def test_every_forbidden_name_exists() -> None:
    names = {name for exercise in exercises().values() for name in exercise.forbidden}
    forbidden.prepare()
    unknown = {
        name for name in names if name not in refusal.list_kernels() and name not in refusal.list_python_functions()
    }
    # PyTorch 2.13 has these no more, or loads them where they are asked for.
    assert unknown <= {"_kl_div", "space_to_depth", *FLEX}, unknown
