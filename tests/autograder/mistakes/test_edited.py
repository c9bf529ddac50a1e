"""Mistaken code is the reference with one piece changed, and says so where an edit does not fit."""

from __future__ import annotations

import math
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.mistakes.source_edits import Edit, EditError, apply_edits, edited_source
from autograder.static_analysis.standalone import standalone_source
from tfcourse.attention import causal_mask, scaled_dot_product_attention
from tfcourse.layers import EncoderLayer, layer_norm
from tfcourse.transformer import Transformer

FILE = Path("checks/ch00_test/exercise.toml")
X, ONES, ZEROS = torch.tensor([[1.0, 2.0, 4.0]]), torch.ones(3), torch.zeros(3)


def made(reference: Any, *edits: Edit, body: str | None = None) -> Any:
    """The edited reference."""
    return apply_edits(reference, edits, body=body, name="a mistake", file=FILE)


def test_text_that_stands_once_is_replaced() -> None:
    doubled = made(layer_norm, Edit(find=" * gamma", replace=" * gamma * 2"))
    torch.testing.assert_close(doubled(X, ONES, ZEROS), 2 * layer_norm(X, ONES, ZEROS))


def test_the_reference_itself_stays_as_it_is() -> None:
    before = layer_norm(X, ONES, ZEROS)
    made(layer_norm, Edit(find=" * gamma", replace=" * gamma * 2"))(X, ONES, ZEROS)
    torch.testing.assert_close(layer_norm(X, ONES, ZEROS), before, rtol=0, atol=0)


def test_a_statement_is_dropped_as_a_whole() -> None:
    accepts = made(layer_norm, Edit(drop="if gamma.shape"))
    with pytest.raises(ValueError, match="gamma"):
        layer_norm(X, ONES[:1], ZEROS)
    assert accepts(X, ONES[:1], ZEROS).shape == X.shape


def test_the_only_statement_of_a_block_leaves_something_behind() -> None:
    accepts = made(layer_norm, Edit(drop='raise ValueError(f"rows'))
    assert accepts(X.long(), ONES.long(), ZEROS.long()).shape == X.shape


def test_every_return_is_wrapped_and_a_function_within_keeps_its_own() -> None:
    shifted = made(layer_norm, Edit(returns="{result} + 1"))
    torch.testing.assert_close(shifted(X, ONES, ZEROS), layer_norm(X, ONES, ZEROS) + 1)
    layer = made(EncoderLayer, Edit(returns="0 * {result}"))(4, 2, 8)
    assert not layer(torch.randn(1, 3, 4)).any()


def test_statements_come_first() -> None:
    ignores = made(layer_norm, Edit(first="eps = 100.0"))
    torch.testing.assert_close(ignores(X, ONES, ZEROS), layer_norm(X, ONES, ZEROS, eps=100.0))


def test_a_helper_is_edited_where_the_exercise_reaches_it_through_others() -> None:
    blind = Edit(of="scaled_dot_product_attention", returns="0 * {result}")
    names = [line for line in edited_source(EncoderLayer, [blind]).splitlines() if line.startswith(("def ", "class "))]
    # Attention lies two modules away; what lies between is copied, what does not is imported.
    assert [name.partition("(")[0].split()[1] for name in names] == [
        "scaled_dot_product_attention",
        "MultiHeadAttention",
        "EncoderLayer",
    ]
    torch.manual_seed(0)
    layer, x = made(EncoderLayer, blind)(4, 2, 8), torch.randn(1, 3, 4)
    assert not (layer.self_attention(x) - layer.self_attention.o_proj.bias).any()


def test_one_method_is_edited() -> None:
    pre = made(EncoderLayer, Edit(of="EncoderLayer.__init__", find="bool = False", replace="bool = True"))
    assert pre(4, 2, 8).pre_norm


def test_a_body_comes_in_the_place_of_another() -> None:
    mask = made(
        causal_mask, body="allowed = torch.ones(T, T, dtype=torch.bool)\nreturn F.dropout(allowed.float(), 0.0).bool()"
    )
    assert mask(3).all()


def test_edited_code_can_be_handed_in_from_a_notebook_cell() -> None:
    wrong = made(scaled_dot_product_attention, Edit(returns="{result} * 2"))
    scope: dict[str, Any] = {"math": math, "torch": torch, "Tensor": torch.Tensor, "nn": torch.nn}
    exec(compile(standalone_source(wrong, rename="attention"), "<cell>", "exec", dont_inherit=True), scope)
    q = torch.randn(2, 3, 4)
    torch.testing.assert_close(scope["attention"](q, q, q), wrong(q, q, q))


def test_a_traceback_names_the_file_and_shows_the_line() -> None:
    crashes = made(layer_norm, Edit(first="raise OverflowError"))
    with pytest.raises(OverflowError) as caught:
        crashes(X, ONES, ZEROS)
    told = "".join(traceback.format_exception(caught.value))
    assert f'File "{FILE}#a mistake"' in told
    assert "    raise OverflowError\n" in told


@pytest.mark.parametrize(
    ("reference", "edit", "told"),
    [
        # Docstrings are not looked at.
        *((layer_norm, Edit(find=text, replace=""), "0 times") for text in ("nowhere to be found", "Normalise every")),
        (layer_norm, Edit(find="keepdim=True", replace=""), "2 times"),
        (layer_norm, Edit(drop="raise ValueError("), "2 statements"),
        (EncoderLayer, Edit(of="EncoderLayer.backward", first="pass"), "'backward'"),
        (Transformer, Edit(of="lstm_cell", first="pass"), "0 definitions.*gelu"),
        (layer_norm, Edit(find="return (", replace="return (("), "valid Python"),
        (layer_norm, Edit(first="unheard_of(x)"), "undefined"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(reference: Any, edit: Edit, told: str) -> None:
    with pytest.raises(EditError, match=told):
        made(reference, edit)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ({}, "this one has none"),
        ({"find": "a"}, "replace"),
        ({"drop": "a", "first": "b"}, r"\['drop', 'first'\]"),
        ({"returns": "0"}, "{result}"),
    ],
)
def test_an_edit_is_of_exactly_one_kind(edit: dict[str, str], told: str) -> None:
    with pytest.raises(EditError, match=told):
        Edit(**edit)
