"""BERT and its family against Hugging Face's models with the same weights, and PyTorch's losses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    RobertaConfig,
    RobertaModel,
    get_linear_schedule_with_warmup,
)

from tfcourse.bert import (
    Albert,
    Bert,
    MaskedLanguageHead,
    bert_parameters,
    distillation_loss,
    linear_warmup_rate,
    mask_tokens,
    masked_language_loss,
    roberta_positions,
)

V, D, H, L, FF, N = 23, 12, 3, 2, 20, 10
SIZES = {"d_model": D, "n_heads": H, "n_layers": L, "d_ff": FF, "max_length": N}
THEIR_SIZES = {
    "vocab_size": V,
    "hidden_size": D,
    "num_hidden_layers": L,
    "num_attention_heads": H,
    "intermediate_size": FF,
    "max_position_embeddings": N,
}
# What a layer's parts are called there and here.
LAYER = {
    "attention.self.query": "self_attention.q_proj",
    "attention.self.key": "self_attention.k_proj",
    "attention.self.value": "self_attention.v_proj",
    "attention.output.dense": "self_attention.o_proj",
    "attention.output.LayerNorm": "self_attention_norm",
    "intermediate.dense": "feed_forward.up_proj",
    "output.dense": "feed_forward.down_proj",
    "output.LayerNorm": "feed_forward_norm",
}
EMBEDDINGS = {
    "word_embeddings": "token_embedding",
    "position_embeddings": "position_embedding",
    "token_type_embeddings": "segment_embedding",
    "LayerNorm": "norm",
}


def randomise(model: nn.Module, seed: int = 0) -> None:
    """Normal numbers for all weights, biases and norms among them, or half of a mapping would go untested."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator, dtype=weight.dtype))


def copy_part(theirs: nn.Module, ours: nn.Module, names: dict[str, str]) -> None:
    for there, here in names.items():
        ours.get_submodule(here).load_state_dict(theirs.get_submodule(there).state_dict())


def copied(theirs: BertModel, **options: int) -> Bert:
    ours = Bert(V, **(SIZES | options)).double().eval()
    copy_part(theirs.embeddings, ours.embeddings, EMBEDDINGS)
    for one, other in zip(theirs.encoder.layer, ours.layers, strict=True):
        copy_part(one, other, LAYER)
    if theirs.pooler is not None:
        ours.pooler.load_state_dict(theirs.pooler.dense.state_dict())
    return ours


@pytest.fixture
def text() -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, segments and the mask of two texts, one of them shorter."""
    tokens = torch.randint(3, V, (2, 7))
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0]])
    mask = torch.arange(7) < torch.tensor([[7], [5]])
    return tokens, segments, mask


# ---------------------------------------------------------------------------------------------- masking


@pytest.mark.parametrize("seed", range(4))
def test_masked_texts_are_those_of_the_collator_from_the_same_seed(seed: int) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(40))]
    tokenizer = BertTokenizer(vocab={word: n for n, word in enumerate(words)})
    tokens = torch.randint(5, len(words), (6, 50))
    special = torch.rand(6, 50) < 0.2
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=seed)
    collator.create_rng()
    theirs = collator.torch_mask_tokens(tokens.clone(), special_tokens_mask=special)
    generator = torch.Generator().manual_seed(seed)
    ours = mask_tokens(tokens, special, mask_id=4, vocab_size=len(tokenizer), generator=generator)
    assert torch.equal(ours[0], theirs[0])
    assert torch.equal(ours[1], theirs[1])


# ---------------------------------------------------------------------------------------------- the models


def test_bert_is_that_of_hugging_face(text: tuple[Tensor, Tensor, Tensor]) -> None:
    theirs = BertModel(BertConfig(**THEIR_SIZES)).double().eval()
    randomise(theirs)
    tokens, segments, mask = text
    for given, of_texts in ((segments, mask), (None, None)):
        expected = theirs(
            input_ids=tokens,
            token_type_ids=given,
            attention_mask=None if of_texts is None else of_texts.long(),
        )
        hidden, pooled = copied(theirs)(tokens, given, of_texts)
        torch.testing.assert_close(hidden, expected.last_hidden_state, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(pooled, expected.pooler_output, atol=1e-9, rtol=1e-9)


def test_roberta_looks_up_these_positions() -> None:
    theirs = RobertaModel(
        RobertaConfig(**(THEIR_SIZES | {"max_position_embeddings": N + 2}), pad_token_id=1, type_vocab_size=1)
    )
    theirs = theirs.double().eval()
    randomise(theirs)
    tokens = torch.tensor([[5, 6, 7, 8, 1, 1], [9, 4, 1, 6, 5, 1]])
    expected = theirs(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
    ours = theirs(
        input_ids=tokens, attention_mask=torch.ones_like(tokens), position_ids=roberta_positions(tokens, 1)
    ).last_hidden_state
    torch.testing.assert_close(ours, expected)
    assert roberta_positions(tokens, 1).tolist() == [[2, 3, 4, 5, 1, 1], [2, 3, 1, 4, 5, 1]]


def test_albert_is_that_of_hugging_face(text: tuple[Tensor, Tensor, Tensor]) -> None:
    config = AlbertConfig(**THEIR_SIZES, embedding_size=5, hidden_act="gelu", classifier_dropout_prob=0.0)
    theirs = AlbertModel(config).double().eval()
    randomise(theirs)
    ours = Albert(V, d_embedding=5, **SIZES).double().eval()
    copy_part(theirs.embeddings, ours.embeddings, EMBEDDINGS)
    ours.project.load_state_dict(theirs.encoder.embedding_hidden_mapping_in.state_dict())
    ours.pooler.load_state_dict(theirs.pooler.state_dict())
    names = {
        "attention.query": "self_attention.q_proj",
        "attention.key": "self_attention.k_proj",
        "attention.value": "self_attention.v_proj",
        "attention.dense": "self_attention.o_proj",
        "attention.LayerNorm": "self_attention_norm",
        "ffn": "feed_forward.up_proj",
        "ffn_output": "feed_forward.down_proj",
        "full_layer_layer_norm": "feed_forward_norm",
    }
    copy_part(theirs.encoder.albert_layer_groups[0].albert_layers[0], ours.layer, names)
    tokens, segments, mask = text
    expected = theirs(input_ids=tokens, token_type_ids=segments, attention_mask=mask.long())
    hidden, pooled = ours(tokens, segments, mask)
    torch.testing.assert_close(hidden, expected.last_hidden_state, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(pooled, expected.pooler_output, atol=1e-9, rtol=1e-9)


# ---------------------------------------------------------------------------------------------- heads and losses


def test_logits_of_hidden_tokens_are_those_of_hugging_face(text: tuple[Tensor, Tensor, Tensor]) -> None:
    theirs = BertForPreTraining(BertConfig(**THEIR_SIZES)).double().eval()
    randomise(theirs)
    head = MaskedLanguageHead(D, V).double()
    predictions = theirs.cls.predictions
    head.transform.load_state_dict(predictions.transform.dense.state_dict())
    head.norm.load_state_dict(predictions.transform.LayerNorm.state_dict())
    with torch.no_grad():
        head.bias.copy_(predictions.decoder.bias)
    model = copied(theirs.bert)
    tokens, segments, mask = text
    hidden, _ = model(tokens, segments, mask)
    expected = theirs(input_ids=tokens, token_type_ids=segments, attention_mask=mask.long()).prediction_logits
    logits = head(hidden, model.embeddings.token_embedding.weight)
    torch.testing.assert_close(logits, expected, atol=1e-9, rtol=1e-9)


def test_the_loss_is_hugging_faces_and_zero_without_labels() -> None:
    theirs = BertForMaskedLM(BertConfig(**THEIR_SIZES)).double().eval()
    tokens, labels = torch.randint(0, V, (3, 6)), torch.randint(0, V, (3, 6))
    labels[torch.rand(3, 6) < 0.5] = -100
    labels[0] = -100
    output = theirs(input_ids=tokens, labels=labels)
    torch.testing.assert_close(masked_language_loss(output.logits, labels), output.loss)
    assert masked_language_loss(output.logits, torch.full((3, 6), -100)) == 0


@pytest.mark.parametrize("pooler", [True, False])
def test_parameters_are_counted_as_hugging_face_has_them(pooler: bool) -> None:
    with torch.device("meta"):
        model = BertModel(BertConfig(**THEIR_SIZES), add_pooling_layer=pooler)
    counts = bert_parameters(V, D, L, FF, max_length=N, pooler=pooler)
    assert counts.total == sum(weight.numel() for weight in model.parameters())
    assert counts.embeddings == sum(weight.numel() for weight in model.embeddings.parameters())
    assert counts.layers == sum(weight.numel() for weight in model.encoder.parameters())
    assert counts.total == counts.embeddings + counts.layers + counts.pooler


def test_published_models_have_these_parameters() -> None:
    base, large = bert_parameters(30_522, 768, 12, 3072), bert_parameters(30_522, 1024, 24, 4096)
    assert base == (23_837_184, 85_054_464, 590_592, 109_482_240)
    assert large.total == 335_141_888
    assert bert_parameters(50_265, 768, 12, 3072, max_length=514, segments=1).total == 124_645_632


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_distillation_is_pytorchs_divergence_times_the_squared_temperature(temperature: float) -> None:
    student = torch.randn(2, 5, 7, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(2, 5, 7, dtype=torch.float64, requires_grad=True)
    log_q, p = (student / temperature).log_softmax(-1), (teacher / temperature).softmax(-1)
    expected = temperature**2 * F.kl_div(log_q.flatten(0, 1), p.flatten(0, 1), reduction="batchmean")
    loss = distillation_loss(student, teacher, temperature)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert teacher.grad is None
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    only = F.kl_div(log_q[mask], p[mask], reduction="batchmean") * temperature**2
    torch.testing.assert_close(distillation_loss(student, teacher, temperature, mask), only)
    with pytest.raises(ValueError, match="above 0"):
        distillation_loss(student, teacher, 0.0)


# ---------------------------------------------------------------------------------------------- training


def test_rates_are_those_of_hugging_faces_schedule() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.3)
    schedule = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=4, num_training_steps=11)
    for step in range(14):
        assert linear_warmup_rate(step, peak=0.3, warmup=4, total=11) == pytest.approx(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert linear_warmup_rate(0, peak=1.0, warmup=0, total=2) == 1.0
