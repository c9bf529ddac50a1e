"""The trainings that are recorded, in small: a few steps train, and a model is examined as its lesson says."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import BOS, EOS
from tfcourse.gpt import Gpt, next_token_loss
from tfcourse.t5 import T5, restore_spans


@pytest.fixture(scope="module")
def bert(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("bert")


def test_a_few_steps_of_bert_lower_the_loss_and_find_replaced_tokens(bert: Any) -> None:
    torch.manual_seed(0)
    model, head, seconds = bert.pretrain(0, steps=2)
    assert seconds > 0
    assert 0 <= bert.tuned(model, 32, 0) <= 1
    sets = bert.guesses(model, head, 342)
    assert [len(gaps) for gaps in sets] == [bin(number).count("1") for number in range(32)]
    _, share, _ = bert.pretrain_electra(0, steps=2)
    assert 0 < share < 0.3


@pytest.fixture(scope="module")
def gpt(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("gpt")


def test_counts_are_distributions_and_by_hand_what_the_rule_says(gpt: Any) -> None:
    tokens = [1, 2, 1, 2, 3]
    counts = gpt.Counts(tokens, 3)
    for before in ((), (1,), (1, 2), (9, 9)):
        assert sum(counts.probability(before, token) for token in range(gpt.V)) == pytest.approx(1)
    # Five tokens of three kinds, then behind 2 one token each of two kinds.
    alone = (2 + 3 / gpt.V) / (5 + 3)
    assert counts.probability((), 1) == pytest.approx(alone)
    assert counts.probability((2,), 1) == pytest.approx((1 + 2 * alone) / (2 + 2))
    assert gpt.Counts(tokens, 1).surprise([1]) == pytest.approx(-math.log(alone))


def test_surprise_of_a_long_text_is_that_of_its_windows(gpt: Any) -> None:
    torch.manual_seed(0)
    model = Gpt(gpt.V, gpt.WINDOW, d_model=8, n_heads=2, n_layers=1).eval()
    text = torch.randint(gpt.V, (gpt.WINDOW // 2 + 1,)).tolist()
    with torch.no_grad():
        whole = next_token_loss(model(torch.tensor([text]))[0], torch.tensor([text]))
    assert gpt.surprise(model, text) == pytest.approx(whole.item(), rel=1e-5)


def test_a_few_steps_of_gpt_train_and_a_tuned_model_is_examined(gpt: Any) -> None:
    torch.manual_seed(0)
    model, seen = Gpt(gpt.V, gpt.WINDOW, d_model=8, n_heads=2, n_layers=1), []
    gpt.train(model, list(range(400)), 2, peak=1e-3, seed=0, examine=lambda step, seconds: seen.append(step))
    assert seen == [1, 2]
    small = gpt.pretrained(0, steps=1)
    for care in (False, True):
        assert 0 <= gpt.tuned(small, 32, 0, care=care) <= 1


@pytest.fixture(scope="module")
def t5(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("t5")


@pytest.fixture(scope="module")
def texts(t5: Any) -> Any:
    return t5.Texts()


def test_a_corrupted_text_can_be_restored(t5: Any, texts: Any) -> None:
    draws = torch.Generator().manual_seed(0)
    for text in texts.alone[:20]:
        source, target = texts.corrupted(text, draws)
        assert (source[-1], target[0], target[-1]) == (EOS, BOS, EOS)
        restored = restore_spans(torch.tensor(source[:-1]), torch.tensor(target[1:-1]), texts.sentinels)
        assert restored.tolist() == texts.vocabulary.encode(text, bos=True)


def test_a_few_steps_of_t5_train_and_a_model_is_examined(t5: Any, texts: Any) -> None:
    found = t5.run(texts, 50, 0, steps_before=2, steps=2)
    assert len(found["before"]) == len(found["after"]) == 1
    assert all(0 <= share <= 1 for share in found["right"])
    torch.manual_seed(0)
    loss = t5.loss_of(T5(len(texts.vocabulary), **t5.SIZES), texts.labelled(4))
    assert loss.item() == pytest.approx(math.log(len(texts.vocabulary)), abs=1.5)


@pytest.fixture(scope="module")
def queries(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("grouped_queries")


@pytest.fixture(scope="module")
def queries_text(queries: Any) -> Any:
    return queries.Text()


def test_models_differ_in_their_heads_of_keys_alone(queries: Any, queries_text: Any) -> None:
    shapes = [
        {name: tuple(parameter.shape) for name, parameter in queries.model_of(queries_text, groups).named_parameters()}
        for groups in queries.GROUPS
    ]
    for groups, found in zip(queries.GROUPS, shapes, strict=True):
        differing = {name.rsplit(".", 2)[-2] for name in found if found[name] != shapes[0][name]}
        assert differing == (set() if groups == queries.H else {"k_proj", "v_proj"})
        assert found["layers.0.self_attention.k_proj.weight"] == (groups * queries.D // queries.H, queries.D)


def test_a_converted_model_keeps_all_weights_but_those_of_keys_and_values(queries: Any, queries_text: Any) -> None:
    torch.manual_seed(0)
    many = queries.model_of(queries_text, queries.H)
    before = {name: weight.clone() for name, weight in many.state_dict().items()}
    for way in queries.WAYS:
        few = queries.converted(many, queries_text, 2, way).state_dict()
        kept = [name for name, weight in few.items() if torch.equal(weight, before[name])]
        assert [name for name in few if name not in kept] == [name for name in few if re.search("[kv]_proj", name)]
        assert all(torch.equal(weight, before[name]) for name, weight in many.state_dict().items())
    weight = before["layers.0.self_attention.k_proj.weight"]
    assert torch.equal(queries.first_of(weight, 8, 2), torch.cat([weight[:8], weight[32:40]]))


def test_a_few_steps_of_grouped_queries_train_and_a_model_is_examined(queries: Any, queries_text: Any) -> None:
    torch.manual_seed(0)
    model = queries.model_of(queries_text, 2)
    untrained = queries.examined(model, queries_text)
    assert untrained == pytest.approx(math.log(len(queries_text.characters)), abs=0.5), "an even guess"
    queries.train(model, queries_text, steps=3, seed=0, rate=queries.RATE)
    assert queries.examined(model, queries_text) < untrained


@pytest.fixture(scope="module")
def positions(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("positions")


@pytest.fixture(scope="module")
def positions_text(positions: Any) -> Any:
    return positions.Text()


@pytest.mark.parametrize("kind", ["none", "sinusoidal", "shaw", "t5", "alibi", "rotary"])
def test_every_kind_looks_back_only_and_begins_with_an_even_guess(
    positions: Any, positions_text: Any, kind: str
) -> None:
    torch.manual_seed(0)
    model = positions.Reader(len(positions_text.characters), kind)
    tokens = positions_text.batch(96, 2, torch.Generator().manual_seed(0))[:, :-1]
    changed = tokens.clone()
    changed[:, 50:] = (changed[:, 50:] + 1) % len(positions_text.characters)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens)[:, :50], model(changed)[:, :50], atol=1e-4, rtol=1e-4)
        assert model(tokens).log_softmax(-1).mean().item() == pytest.approx(
            -math.log(len(positions_text.characters)), abs=0.6
        )


def test_a_few_steps_of_positions_train(positions: Any, positions_text: Any) -> None:
    torch.manual_seed(0)
    model = positions.Reader(len(positions_text.characters), "rotary")
    before = positions.losses(model, positions_text, 64)[0]
    positions.train(model, positions_text, steps=8, length=64, seed=0, rate=positions.RATE)
    assert positions.losses(model, positions_text, 64)[0] < before - 0.5
