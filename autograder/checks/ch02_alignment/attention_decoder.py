"""The check of ``AttentionDecoder``: it looks back at the source before every token."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Maker, Row
from autograder.checks.ch02_alignment.source_masks import prefix_mask
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from autograder.checks.variants import built
from tfcourse import alignment

# Six columns, so that neither the square root of the width nor half of it equals another size.
B, T, S, V, E, D = 2, 3, 4, 5, 3, 6


def _decoder(draw: Draw, score: str | None, longest: int | None = None) -> Case:
    """A decoder with random weights and the given or the default score, and annotations for it."""
    init: dict[str, int | str] = {"vocab_size": V, "d_embedding": E, "d_model": D}
    init |= {} if score is None else {"score": score}
    init |= {} if longest is None else {"max_source": longest}
    model = alignment.AttentionDecoder(V, E, D, score=score or "additive", max_source=longest or 64)
    return Case({"annotations": draw.normal(B, S, D)}, init=init, state=draw.weights(model))


def teacher(score: str | None = None, *, longest: int | None = None) -> Maker:
    """A whole target with teacher forcing."""
    return lambda draw: _decoder(draw, score, longest).with_arguments(target=draw.integers(0, V, B, T))


def padded(draw: Draw) -> Case:
    """The same, with padding behind the source."""
    return teacher()(draw).with_arguments(source_mask=prefix_mask(draw, B, S))


def one_step(draw: Draw) -> Case:
    """A step from any state."""
    case = _decoder(draw, None).with_arguments(token=draw.integers(0, V, B), state=draw.normal(B, D))
    return Case(case.arguments, init=case.init, state=case.state, method="step")


def first_state(draw: Draw) -> Case:
    """The state before the first step."""
    case = _decoder(draw, "dot")
    return Case(case.arguments, init=case.init, state=case.state, method="initial_state")


def scores_by(score: str) -> Maker:
    """The scores of queries against annotations."""

    def make(draw: Draw) -> Case:
        case = _decoder(draw, score, S + 2).with_arguments(queries=draw.normal(B, T, D))
        return Case(case.arguments, init=case.init, state=case.state, method="scores")

    return make


def drawn(draw: Draw, score: str, name: str) -> Case:
    """A parameter of a decoder as it is made."""
    init = {"vocab_size": 4, "d_embedding": 3, "d_model": 6, "score": score}
    return Case({"target": name}, init=init, method="get_parameter")


def made_with(**init: int | str) -> Maker:
    """Make a decoder with such arguments, and ask for one of its weights, which no sense can be made of."""
    return lambda draw: built(lambda stream: drawn(stream, "dot", "bridge.weight"), **init)(draw)


def fresh(score: str, name: str, width: int) -> Maker:
    """A parameter of a decoder as it is drawn, of a few hundred numbers."""
    init = {"vocab_size": 4, "d_embedding": 3, "d_model": width, "score": score, "max_source": width}
    return lambda draw: Case({"target": name}, init=init, method="get_parameter")


def one_place(draw: Draw) -> Case:
    """The shortest source that there is."""
    case = _decoder(draw, "location", 1)
    arguments = {"annotations": case.arguments["annotations"][:, :1], "target": draw.integers(0, V, B, T)}
    return case.with_arguments(**arguments)


def and_its_name(row: Row) -> Row:
    """Return a row that asks as well for the attribute that names the score."""

    def probes(draw: Draw) -> list[rows.Probe]:
        return [
            *row.probes(draw),
            rows.Probe((draw.case(teacher("general")).request("attributes", ("score",)),), "matches"),
        ]

    return replace(row, probes=probes)


ATTENTION_DECODER = Exercise(
    reference=alignment.AttentionDecoder,
    rows=(
        rows.numbers(
            5, teacher(), gradients=False, title="With teacher forcing, logits and weights of all steps are right."
        ),
        rows.numbers(
            1.5,
            first_state,
            one_step,
            name="step",
            gradients=False,
            title="The first state comes from the backward half of the first annotation; then the state before asks.",
        ),
        rows.numbers(3, padded, name="padding", gradients=False, title="Padding gets no weight."),
        rows.numbers(
            1.25,
            *(scores_by(score) for score in alignment.SCORES),
            teacher("location", longest=S + 1),
            teacher("location"),
            one_place,
            name="scores",
            title="Each of the six names stands for its score, and gradients reach every weight.",
        ),
        and_its_name(
            rows.initialisation(
                0.25,
                (fresh("additive", "w_q", 20), 0),
                (fresh("additive", "w_k", 20), 0),
                (fresh("additive", "v", 300), 0),
                (fresh("general", "w", 20), 0),
                (fresh("location", "w", 20), 0),
                title="The weights of the scores are drawn within 1 / sqrt(D), and the attribute score names the score.",
            )
        ),
        rows.device(0.75, teacher()),
        rows.errors(
            0.75,
            teacher("dot"),
            made_with(score="bilinear"),
            made_with(d_model=9),
            made_with(max_source=0),
            title="A name that belongs to no score, an odd width and sources of less than one position are a ValueError.",
        ),
    ),
    forbidden=FUSED,
    rule_case=teacher("scaled_dot"),
)
