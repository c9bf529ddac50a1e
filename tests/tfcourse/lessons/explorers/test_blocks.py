"""The block explorer's shapes are those of the real layers."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
from torch import nn

from tfcourse.layers import DecoderLayer, EncoderLayer
from tfcourse.lessons.explorers.blocks import Layer, Norm, block_explorer, layer_parts
from tfcourse.lessons.explorers.heads import record_heads

from .examples import tables_of

# All of them different, so that no letter can stand for another.
SIZES = {"B": 2, "T": 5, "S": 7, "D": 12, "H": 3, "F": 20}
NUMBERS = SIZES | {"Dh": 4, "1": 1}

KINDS = [(layer, norm) for layer in ("encoder", "decoder") for norm in ("post", "pre")]
every_kind = pytest.mark.parametrize(("layer", "norm"), KINDS)


def real(layer: Layer, norm: Norm) -> EncoderLayer | DecoderLayer:
    torch.manual_seed(0)
    kind = EncoderLayer if layer == "encoder" else DecoderLayer
    return kind(SIZES["D"], SIZES["H"], SIZES["F"], pre_norm=norm == "pre")


def numbers(shape: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(NUMBERS[letter] for letter in shape)


def run(module: EncoderLayer | DecoderLayer) -> dict[str, tuple[int, ...]]:
    """Run a layer, and return the output shape of each of its linear maps by name."""
    seen: dict[str, tuple[int, ...]] = {}
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            part.register_forward_hook(lambda _, __, output, name=name: seen.update({name: tuple(output.shape)}))
    memory, x = torch.randn(2, 7, 12), torch.randn(2, 5, 12)
    module(memory) if isinstance(module, EncoderLayer) else module(x, memory)
    return seen


@every_kind
def test_parameters_are_those_of_the_layer_by_name_and_shape_and_are_counted(layer: Layer, norm: Norm) -> None:
    parameters = dict(real(layer, norm).named_parameters())
    weights = dict(chain.from_iterable(p.weights for s in layer_parts(layer, norm) for p in s.parts))
    assert {name: numbers(shape) for name, shape in weights.items()} == {
        name: tuple(parameter.shape) for name, parameter in parameters.items()
    }
    table = tables_of(block_explorer(**SIZES, layer=layer, norm=norm, caption="c"))[KINDS.index((layer, norm))]
    assert table[-1][-1] == f"{sum(parameter.numel() for parameter in parameters.values()):,}"


@every_kind
def test_shapes_are_those_that_occur_while_the_layer_runs(layer: Layer, norm: Norm) -> None:
    module = real(layer, norm)
    attentions = [m for name, m in module.named_modules() if name.endswith("_attention")]
    with record_heads(attentions) as records:  # type: ignore[arg-type]
        seen = run(module)
    parts = [p for s in layer_parts(layer, norm) for p in s.parts if p.weights and p.name != "Layer norm"]
    for part in parts:
        prefix = part.weights[0][0].split(".")[0]
        for label, shape in part.tensors:
            if ", after " in label and label.endswith("_proj"):
                assert seen[f"{prefix}.{label.split(', after ')[1]}"] == numbers(shape), (part.name, label)
    for part, record in zip([p for p in parts if p.name != "Feed-forward"], records, strict=True):
        tensors = {label.partition(",")[0]: numbers(shape) for label, shape in part.tensors}
        assert record is not None
        assert tuple(record.weights.shape) == tensors["weights"] == tensors["scores"]
        assert tuple(record.outputs.shape) in tensors.values()


@every_kind
def test_parts_run_in_the_order_of_the_figure(layer: Layer, norm: Norm) -> None:
    residual = {
        "encoder": ["Self-attention", "Feed-forward"],
        "decoder": ["Causal self-attention", "Cross-attention", "Feed-forward"],
    }
    order = {"post": [[0, "Add"], ["Layer norm"]], "pre": [["Layer norm", 0, "Add"]]}[norm]
    expected = [[name if part == 0 else part for part in stretch] for name in residual[layer] for stretch in order]
    stretches = layer_parts(layer, norm)
    assert [[part.name for part in stretch.parts] for stretch in stretches] == expected
    assert all(stretch.bypass == (stretch.parts[-1].name == "Add") for stretch in stretches)
