"""The check of ``Seq2Seq``: an encoder, a context, a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import padding_behind
from tfcourse import seq2seq

# Token 0 is padding and 1 begins a sentence, in both languages. More source tokens than target tokens, so that a target looked up in the
# wrong table still finds a row.
SOURCE_WORDS = 8
TARGET_WORDS = 7
BOS = 1


def _translator(draw: Draw, *, n_layers: int | None = None, batch: int = 2) -> Case:
    """A translator with random weights, and sentences of two different lengths. Without ``n_layers`` the default is used."""
    s, t, e, d = draw.sizes(4, low=3)
    init = {"source_vocab_size": SOURCE_WORDS, "target_vocab_size": TARGET_WORDS, "d_embedding": e, "d_model": d}
    model = seq2seq.Seq2Seq(SOURCE_WORDS, TARGET_WORDS, e, d, n_layers=n_layers or 1)
    target = draw.integers(2, TARGET_WORDS, batch, t)
    target[:, 0] = BOS
    return Case(
        {"source": draw.integers(2, SOURCE_WORDS, batch, s), "target": target},
        init=init if n_layers is None else {**init, "n_layers": n_layers},
        state=draw.weights(model),
    )


def _padded(draw: Draw, case: Case) -> Case:
    source = case.arguments["source"]
    mask = padding_behind(draw, *source.shape)
    return case.with_arguments(source=source * mask, source_mask=mask)


def plain(draw: Draw) -> Case:
    """One layer, no padding."""
    return _translator(draw)


def two_layers(draw: Draw) -> Case:
    """Two layers, no padding."""
    return _translator(draw, n_layers=2)


def single_size(draw: Draw) -> Case:
    """A batch of one, and as many source tokens as target tokens."""
    case = _translator(draw, batch=1)
    return case.with_arguments(source=draw.integers(2, SOURCE_WORDS, *case.arguments["target"].shape))


def padded(draw: Draw) -> Case:
    """Sources of different lengths, padding behind them."""
    return _padded(draw, _translator(draw, batch=3))


def full_mask(draw: Draw) -> Case:
    """A mask that marks every token as real."""
    case = _translator(draw)
    return case.with_arguments(source_mask=torch.ones_like(case.arguments["source"], dtype=torch.bool))


def unfit_mask(draw: Draw) -> Case:
    """A mask with a place too few."""
    case = full_mask(draw)
    return case.with_arguments(source_mask=case.arguments["source_mask"][:, :-1])


def of_numbers(draw: Draw) -> Case:
    """A mask of zeros and ones that are integers."""
    case = full_mask(draw)
    return case.with_arguments(source_mask=case.arguments["source_mask"].long())


def padding_in_front(draw: Draw) -> Case:
    """Padding before the tokens."""
    case = full_mask(draw)
    mask = case.arguments["source_mask"].clone()
    mask[0, 0] = False
    return case.with_arguments(source_mask=mask)


def one_token(draw: Draw) -> Case:
    """A source of a single token, which is legal."""
    case = full_mask(draw)
    mask = case.arguments["source_mask"].clone()
    mask[1, 1:] = False
    return case.with_arguments(source_mask=mask)


def no_token(draw: Draw) -> Case:
    """One source without any token."""
    case = full_mask(draw)
    mask = case.arguments["source_mask"].clone()
    mask[1] = False
    return case.with_arguments(source_mask=mask)


def reading(draw: Draw) -> Case:
    """Only the encoder."""
    case = plain(draw)
    return Case({"source": case.arguments["source"]}, init=case.init, state=case.state, method="encode")


def writing(draw: Draw) -> Case:
    """Only the decoder, from any state."""
    case = plain(draw)
    assert case.init is not None
    b, d = len(case.arguments["target"]), case.init["d_model"]
    arguments = {"target": case.arguments["target"], "state": (draw.normal(1, b, d), draw.normal(1, b, d))}
    return Case(arguments, init=case.init, state=case.state, method="decode")


def _later_tokens(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
    """Change the later target tokens; the logits before them stay."""
    target = case.arguments["target"].clone()
    keep = target.shape[1] // 2
    target[:, keep:] = 2 + (target[:, keep:] - 1) % (TARGET_WORDS - 2)
    view = [("narrow", 1, 0, keep)]
    return case.with_arguments(target=target), view, view


def _more_padding(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
    """Add padding; nothing changes."""
    source, mask = case.arguments["source"], case.arguments["source_mask"]
    more = torch.zeros(len(source), 2, dtype=source.dtype)
    return case.with_arguments(source=torch.cat([source, more], 1), source_mask=torch.cat([mask, more > 0], 1)), [], []


SEQ2SEQ = Exercise(
    reference=seq2seq.Seq2Seq,
    rows=(
        rows.numbers(6.5, plain, gradients=False, title="The logits are right: one layer, no padding."),
        rows.numbers(
            3.75,
            padded,
            name="mask",
            gradients=False,
            title="Sources of different lengths: the padding is not read.",
        ),
        rows.numbers(
            2.5,
            two_layers,
            single_size,
            name="layers",
            title="They are right with two layers, gradients reach every weight, and a batch of one works.",
        ),
        rows.numbers(0.5, reading, name="encode", gradients=False, title="encode gives the last states and cells."),
        rows.numbers(
            1,
            writing,
            name="decode",
            gradients=False,
            title="decode writes on from any state, and hands the new one back.",
        ),
        rows.two_calls_agree(
            "padding",
            "It does not matter how much padding stands behind a source.",
            0.25,
            padded,
            _more_padding,
            claim="more padding changes the logits",
        ),
        rows.two_calls_agree(
            "causality",
            "Logits know nothing of the target tokens that come later.",
            0.25,
            plain,
            _later_tokens,
            claim="earlier logits move when a later target token does",
        ),
        rows.device(0.5, plain),
        rows.errors(
            1,
            full_mask,
            one_token,
            unfit_mask,
            of_numbers,
            padding_in_front,
            no_token,
            title="A mask that does not fit, is not boolean, pads in front or leaves no token is a ValueError.",
        ),
    ),
)
