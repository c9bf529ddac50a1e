"""The check of ``AttentionSeq2Seq``: encoder and decoder, made into a translator that looks back."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker
from autograder.checks.ch02_alignment.source_masks import prefix_mask
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from tfcourse import alignment

B, T, S, D = 2, 3, 4, 4


def translate(score: str | None = None, *, longest: int | None = None, method: str | None = None) -> Maker:
    """A batch of sources and targets; source and target vocabulary differ."""

    def make(draw: Draw) -> Case:
        init: dict[str, int | str] = {"source_vocab_size": 6, "target_vocab_size": 5, "d_embedding": 3, "d_model": D}
        init |= {} if score is None else {"score": score}
        init |= {} if longest is None else {"max_source": longest}
        model = alignment.AttentionSeq2Seq(6, 5, 3, D, score=score or "additive", max_source=longest or 64)
        arguments = {"source": draw.integers(1, 6, B, S), "target": draw.integers(0, 5, B, T)}
        return Case(arguments, init=init, state=draw.weights(model), method=method)

    return make


def padded(draw: Draw) -> Case:
    """Padding behind the first source."""
    return translate()(draw).with_arguments(source_mask=prefix_mask(draw, B, S))


ATTENTION_SEQ2SEQ = Exercise(
    reference=alignment.AttentionSeq2Seq,
    rows=(
        rows.numbers(3, translate(), gradients=False, title="The logits are the decoder's."),
        rows.numbers(1.75, padded, name="padding", gradients=False, title="Encoder and decoder know what is padding."),
        rows.numbers(
            1.25,
            translate(method="align"),
            name="alignment",
            gradients=False,
            title="align gives the weights of every step.",
        ),
        rows.numbers(
            1.25,
            translate("location", longest=S + 1),
            translate("location"),
            translate("general"),
            name="score",
            title="The score and the longest source are handed on to the decoder, and gradients reach every weight.",
        ),
    ),
    forbidden=FUSED,
    rule_case=translate("scaled_dot"),
)
