"""The check of ``NeuralProbabilisticLM``: a language model that sees a fixed window of tokens."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.cases import joined
from autograder.checks.variants import built
from tfcourse import recurrent

VOCABULARY, WINDOW = 7, 3


def _model(draw: Draw, windows: int, *, direct: bool = True, batch: int = 2, widths: tuple[int, ...] = ()) -> Case:
    """A model with random weights and tokens for so many windows; its widths are drawn if they are not given."""
    e, d = widths or draw.sizes(2, low=4)
    init: dict[str, int | bool] = {"vocab_size": VOCABULARY, "window": WINDOW, "d_embedding": e, "d_hidden": d}
    state = draw.weights(recurrent.NeuralProbabilisticLM(VOCABULARY, WINDOW, e, d, direct=direct))
    if not direct:
        init["direct"] = False
    return Case({"tokens": draw.integers(0, VOCABULARY, batch, WINDOW - 1 + windows)}, init=init, state=state)


def one_window(draw: Draw) -> Case:
    """As many tokens as the window holds."""
    return _model(draw, 1)


def several_windows(draw: Draw) -> Case:
    """More tokens than the window holds."""
    return _model(draw, 4)


def single_size(draw: Draw) -> Case:
    """A batch of one, and as many windows as columns: the shapes do not show which axis is which."""
    return _model(draw, WINDOW, batch=1, widths=(WINDOW, WINDOW))


def no_direct(draw: Draw) -> Case:
    """A model without direct connections."""
    return _model(draw, 2, direct=False)


def many_windows(draw: Draw, size: int) -> Case:
    """More sequences, and longer ones."""
    return _model(draw, 2 * size, batch=size, widths=(4, 5))


def too_few_tokens(draw: Draw) -> Case:
    """Fewer tokens than the window holds."""
    return _model(draw, 0)


def a_single_sequence(draw: Draw) -> Case:
    """Tokens without an axis for the batch."""
    case = several_windows(draw)
    return case.with_arguments(tokens=case.arguments["tokens"][0])


def three_dimensions(draw: Draw) -> Case:
    """Tokens with an axis too many."""
    case = several_windows(draw)
    return case.with_arguments(tokens=case.arguments["tokens"][..., None])


def fresh(draw: Draw) -> Case:
    """A model as it is drawn, and as many different windows of one token as there are tokens."""
    init = {"vocab_size": 24, "window": 1, "d_embedding": 32, "d_hidden": 32}
    return Case({"tokens": draw.permutation(24)[:, None]}, init=init)


NEURAL_PROBABILISTIC_LM = Exercise(
    reference=recurrent.NeuralProbabilisticLM,
    rows=(
        rows.numbers(3.25, several_windows, gradients=False, title="Every window of a sequence gets its logits."),
        rows.numbers(
            2,
            no_direct,
            name="no direct",
            gradients=False,
            title="With direct=False there are no direct connections.",
        ),
        rows.numbers(
            1,
            one_window,
            single_size,
            name="gradients",
            title="Gradients reach every weight, also where a sequence is a single window or the batch a single example.",
        ),
        joined(
            rows.initialisation(
                0.5,
                (fresh, 0),
                title="The layers are initialised as PyTorch does it by default, and window is an attribute.",
            ),
            rows.attributes(0, one_window, names=("window",)),
        ),
        rows.device(0.25, several_windows),
        rows.no_loop(0.5, many_windows, over="examples or windows"),
        rows.errors(
            0.5,
            one_window,
            too_few_tokens,
            a_single_sequence,
            three_dimensions,
            built(one_window, window=0),
            title="An empty window, too few tokens, and tokens without two dimensions are a ValueError.",
        ),
    ),
)
