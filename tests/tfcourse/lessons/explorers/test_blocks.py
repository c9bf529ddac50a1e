"""The block explorer's shapes are those of the real layers."""

import json
from html.parser import HTMLParser
from itertools import chain

import pytest
import torch
from torch import nn

from tfcourse.layers import DecoderLayer, EncoderLayer
from tfcourse.lessons.explorers.blocks import Layer, Norm, block_explorer, layer_parts
from tfcourse.lessons.explorers.heads import record_heads

# All of them different, so that no letter can stand for another.
SIZES = {"B": 2, "T": 5, "S": 7, "D": 12, "H": 3, "F": 20}
NUMBERS = SIZES | {"Dh": 4, "1": 1}

KINDS = [(layer, norm) for layer in ("encoder", "decoder") for norm in ("post", "pre")]
every_kind = pytest.mark.parametrize(("layer", "norm"), KINDS)


class Page(HTMLParser):
    """The elements of a page, its JSON, and the text of its table cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.json = ""
        self.cells: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.json += data
        elif self._inside in ("td", "th"):
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def real(layer: Layer, norm: Norm) -> EncoderLayer | DecoderLayer:
    torch.manual_seed(0)
    kind = EncoderLayer if layer == "encoder" else DecoderLayer
    return kind(SIZES["D"], SIZES["H"], SIZES["F"], pre_norm=norm == "pre")


def numbers(shape: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(NUMBERS[letter] for letter in shape)


def run(module: EncoderLayer | DecoderLayer) -> dict[str, tuple[int, ...]]:
    """Run a layer, and return the output shape of each of its linear maps and norms by name."""
    seen: dict[str, tuple[int, ...]] = {}
    handles = []
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            handles.append(
                part.register_forward_hook(lambda _, __, output, name=name: seen.update({name: tuple(output.shape)}))
            )
    memory, x = torch.randn(2, 7, 12), torch.randn(2, 5, 12)
    module(memory) if isinstance(module, EncoderLayer) else module(x, memory)
    for handle in handles:
        handle.remove()
    return seen


@every_kind
def test_parameters_are_those_of_the_layer_by_name_and_shape(layer: Layer, norm: Norm) -> None:
    told = dict(chain.from_iterable(p.weights for s in layer_parts(layer, norm) for p in s.parts))
    assert {name: numbers(shape) for name, shape in told.items()} == {
        name: tuple(parameter.shape) for name, parameter in real(layer, norm).named_parameters()
    }


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
        tensors = dict(part.tensors)
        assert record is not None
        assert (
            tuple(record.weights.shape)
            == numbers(tensors["weights, after mask and softmax"])
            == numbers(tensors["scores"])
        )
        assert tuple(record.outputs.shape) == numbers(tensors["what each head brings"])


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


@every_kind
def test_table_counts_the_parameters_of_the_layer(layer: Layer, norm: Norm) -> None:
    page = Page(block_explorer(**SIZES, layer=layer, norm=norm, caption="c")._repr_html_())
    totals = [page.cells[i + 1] for i, cell in enumerate(page.cells) if cell == "parameters of the layer"]
    expected = sum(parameter.numel() for parameter in real(layer, norm).parameters())
    assert totals[KINDS.index((layer, norm))] == f"{expected:,}"


def test_json_holds_every_kind_of_layer_and_the_sizes() -> None:
    data = json.loads(Page(block_explorer(**SIZES, layer="decoder", norm="pre", caption="c")._repr_html_()).json)
    assert data["sizes"] == SIZES
    assert data["start"] == {"layer": "decoder", "norm": "pre"}
    assert sorted(data["layers"]) == sorted(f"{layer} {norm}" for layer, norm in KINDS)


def test_only_the_kind_that_is_shown_first_is_unfolded() -> None:
    text = block_explorer(layer="decoder", norm="pre", caption="c")._repr_html_()
    assert text.count("<details open>") == 1
    assert "<details open><summary>Decoder layer, pre-norm</summary>" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"H": 5, "D": 12}, "H divides D"),
        ({"T": 0}, "positive"),
        ({"layer": "both"}, "'both'"),
        ({"norm": "no"}, "'no'"),
    ],
)
def test_block_that_cannot_be_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block_explorer(**{"caption": "c", **given})  # type: ignore[arg-type]


def test_text_form_says_what_there_is_to_see() -> None:
    assert repr(block_explorer(**SIZES, caption="What shape?")) == (
        "BlockExplorer: Encoder layer, post-norm, B=2, T=5, S=7, D=12, H=3, F=20. What shape?"
    )
