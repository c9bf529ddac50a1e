"""Checkpoints as Hugging Face writes them, in the models of the course: equal outputs, and an error for all that does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from tfcourse import pretrained
from tfcourse.gpt import Gpt, generate
from tfcourse.llama import Llama
from tfcourse.pretrained import CheckpointError, hugging_face_names, load_pretrained, read_checkpoint
from tfcourse.t5 import T5

V = 23
ROPE3 = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
BERT = BertConfig(
    vocab_size=V,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=16,
)
GPT2 = GPT2Config(vocab_size=V, n_positions=16, n_embd=12, n_layer=2, n_head=3, n_inner=20, layer_norm_epsilon=1e-3)
T5_ = T5Config(vocab_size=V, d_model=12, d_kv=5, d_ff=20, num_layers=2, num_heads=3)
GATED = T5Config(vocab_size=V, d_model=12, d_kv=5, d_ff=20, num_layers=2, num_heads=3, feed_forward_proj="gated-gelu")
VIT = ViTConfig(
    hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, image_size=12, patch_size=4, num_labels=5,
    layer_norm_eps=1e-6,
)  # fmt: skip
LLAMA = LlamaConfig(
    vocab_size=V,
    hidden_size=24,
    intermediate_size=20,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
)
LLAMA3 = LlamaConfig(**{**LLAMA.to_dict(), "rope_parameters": ROPE3, "tie_word_embeddings": True})
MODELS = {
    "bert": (BertModel, BERT),
    "bert with a head": (BertForMaskedLM, BERT),
    "gpt2": (GPT2LMHeadModel, GPT2),
    "gpt2 without prefix": (GPT2Model, GPT2),
    "t5": (T5ForConditionalGeneration, T5_),
    "t5 gated": (T5ForConditionalGeneration, GATED),
    "vit": (ViTForImageClassification, VIT),
    "vit without prefix": (ViTModel, VIT),
    "llama": (LlamaForCausalLM, LLAMA),
    "llama 3.1, tied": (LlamaForCausalLM, LLAMA3),
}
FIRST = ["bert", "gpt2", "t5", "vit", "llama"]


def drawn(name: str) -> PreTrainedModel:
    torch.manual_seed(0)
    made, config = MODELS[name]
    config._attn_implementation = "eager"
    model = made(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.3)
    return model


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., tuple[PreTrainedModel, Path]]:
    def save(name: str, **options: Any) -> tuple[PreTrainedModel, Path]:
        model = drawn(name)
        model.save_pretrained(tmp_path / "it", **options)
        return model, tmp_path / "it"

    return save


def pair(theirs: PreTrainedModel, ours: nn.Module) -> tuple[Tensor, Tensor]:
    """The outputs of both on the same input, with padding where the model takes a mask."""
    torch.manual_seed(1)
    tokens = torch.randint(1, V, (3, 9))
    mask = torch.arange(9) < torch.tensor([[9], [5], [7]])
    kind = theirs.config.model_type
    with torch.no_grad():
        if kind == "bert":
            segments = torch.randint(2, (3, 9))
            core = getattr(theirs, "bert", theirs)
            state, pooled = ours(tokens, segments, mask)
            there = core(tokens, attention_mask=mask.long(), token_type_ids=segments)
            if there.pooler_output is None:
                return there.last_hidden_state[mask], state[mask]
            return torch.cat([there.last_hidden_state[mask], there.pooler_output]), torch.cat([state[mask], pooled])
        if kind == "t5":
            target = torch.randint(1, V, (3, 6))
            return theirs(tokens, attention_mask=mask, decoder_input_ids=target).logits, ours(tokens, target, mask)
        if kind == "vit":
            images = torch.randn(3, 3, 12, 12)
            there = theirs(images)
            return (there.logits if hasattr(there, "logits") else there.last_hidden_state[:, 0]), ours(images)
        there = theirs(tokens, attention_mask=torch.ones_like(tokens))
        if isinstance(theirs, GPT2Model):
            return there.last_hidden_state @ theirs.wte.weight.mT, ours(tokens)[0]
        return there.logits, ours(tokens)[0]


def same(theirs: PreTrainedModel, ours: nn.Module, tolerance: float = 2e-5) -> None:
    expected, got = pair(theirs, ours)
    torch.testing.assert_close(got.float(), expected.float(), atol=tolerance, rtol=tolerance)


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    file = folder / "model.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in change(load_file(file)).items()}, file)


def configure(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = {key: value for key, value in {**config, **values}.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_hugging_face(saved: Any, name: str) -> None:
    theirs, folder = saved(name)
    ours = load_pretrained(folder)
    assert not ours.training
    assert not any(weight.is_meta for weight in ours.state_dict().values())
    same(theirs, ours)


@pytest.mark.parametrize("name", FIRST)
def test_six_files_are_as_good_as_one(saved: Any, name: str) -> None:
    theirs, folder = saved(name, max_shard_size="5KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    same(theirs, load_pretrained(folder))


@pytest.mark.parametrize("name", FIRST)
def test_weights_keep_the_type_of_the_file_unless_another_is_asked_for(saved: Any, name: str) -> None:
    _, folder = saved(name)
    rewrite(folder, lambda held: {key: tensor.bfloat16() for key, tensor in held.items()})
    assert {weight.dtype for weight in load_pretrained(folder).parameters()} == {torch.bfloat16}
    assert {weight.dtype for weight in load_pretrained(folder, dtype=torch.float64).parameters()} == {torch.float64}


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_of_a_file_is_used_or_known_to_be_left_out(saved: Any, name: str) -> None:
    _, folder = saved(name)
    config, tensors = read_checkpoint(folder)
    kind = config["model_type"]
    used = {source.name for source in hugging_face_names(config).values()}
    for held in pretrained._released_names(kind, tensors):
        assert held in used or re.fullmatch(pretrained._IGNORED[kind], held), held


@pytest.mark.parametrize("name", FIRST)
def test_a_class_of_another_making_is_filled(saved: Any, name: str) -> None:
    theirs, folder = saved(name)
    base = type(load_pretrained(folder))

    class Own(base):  # type: ignore[valid-type,misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.register_buffer("past", torch.ones(3, 3).tril().bool(), persistent=False)
            self.aside = torch.arange(4.0)

    torch.manual_seed(7)
    before = torch.get_rng_state()
    ours = load_pretrained(folder, into=Own)
    assert torch.equal(before, torch.get_rng_state())
    assert type(ours) is Own
    assert ours.past.device.type == ours.aside.device.type == "cpu"
    same(theirs, ours)


def test_a_class_with_other_names_is_told_which(saved: Any) -> None:
    _, folder = saved("gpt2")

    class Own(Gpt):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.last_norm = self.final_norm
            del self.final_norm

    with pytest.raises(CheckpointError, match=r"Own has parameters .* last_norm\.bias, last_norm\.weight.*Rename"):
        load_pretrained(folder, into=Own)


def test_old_spellings_of_bert_are_read(saved: Any) -> None:
    theirs, folder = saved("bert")

    def old(held: dict[str, Tensor]) -> dict[str, Tensor]:
        held = {
            "bert."
            + re.sub(r"LayerNorm\.weight", "LayerNorm.gamma", re.sub(r"LayerNorm\.bias", "LayerNorm.beta", key)): tensor
            for key, tensor in held.items()
        }
        return held | {"bert.embeddings.position_ids": torch.arange(16)[None]}

    rewrite(folder, old)
    same(theirs, load_pretrained(folder))


def test_new_spellings_of_vit_are_read(saved: Any) -> None:
    theirs, folder = saved("vit")
    rewrite(folder, lambda _: dict(theirs.state_dict()))
    same(theirs, load_pretrained(folder))


def test_masks_and_tied_copies_of_old_gpt2_files_are_left_out(saved: Any) -> None:
    theirs, folder = saved("gpt2 without prefix")
    extra = {"h.0.attn.bias": torch.ones(1, 1, 16, 16).tril(), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    rewrite(folder, lambda held: held | extra | {"lm_head.weight": held["wte.weight"].clone()})
    same(theirs, load_pretrained(folder))
    rewrite(folder, lambda held: held | {"lm_head.weight": held["wte.weight"] + 1})
    with pytest.raises(CheckpointError, match=r"no place for: lm_head\.weight"):
        load_pretrained(folder)


def test_t5_with_an_output_of_its_own_is_not_scaled(saved: Any) -> None:
    theirs, folder = saved("t5")
    output = torch.randn(V, 12)
    rewrite(folder, lambda held: held | {"lm_head.weight": output})
    configure(folder, tie_word_embeddings=False, scale_decoder_outputs=...)
    ours = load_pretrained(folder)
    assert isinstance(ours, T5)
    tokens = torch.randint(1, V, (2, 4))
    with torch.no_grad():
        states = theirs(tokens, decoder_input_ids=tokens, output_hidden_states=True).decoder_hidden_states[-1]
        torch.testing.assert_close(ours(tokens, tokens), states @ output.mT, atol=2e-5, rtol=2e-5)
        configure(folder, scale_decoder_outputs=True)
        scaled = load_pretrained(folder)(tokens, tokens)
    torch.testing.assert_close(scaled, states @ output.mT * 12**-0.5, atol=2e-5, rtol=2e-5)


def test_t5_that_shares_its_matrix_and_does_not_scale_goes_on_sharing(saved: Any) -> None:
    theirs, folder = saved("t5")
    configure(folder, scale_decoder_outputs=False)
    ours = load_pretrained(folder)
    assert ours.output.weight is ours.embedding.weight
    expected, got = pair(theirs, ours)
    torch.testing.assert_close(got, expected * 12**0.5, atol=2e-5, rtol=2e-5)


def test_tied_models_have_one_matrix(saved: Any) -> None:
    for name in ("t5", "llama 3.1, tied"):
        assert load_pretrained(saved(name)[1]).output is None


def test_ropes_of_old_files_are_read(saved: Any) -> None:
    theirs, folder = saved("llama 3.1, tied")
    scaling = {key: value for key, value in ROPE3.items() if key != "rope_theta"}
    for name in ("rope_type", "type"):
        old = {name if key == "rope_type" else key: value for key, value in scaling.items()}
        configure(folder, rope_parameters=..., rope_theta=5000.0, rope_scaling=old)
        same(theirs, load_pretrained(folder))


def test_loaded_llama_and_gpt2_write_what_hugging_face_writes(saved: Any) -> None:
    for name in ("gpt2", "llama"):
        theirs, folder = saved(name)
        ours = load_pretrained(folder)
        prompt = torch.tensor([[3, 1, 4]])
        expected = theirs.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=8,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        assert torch.equal(generate(ours, prompt, max_new_tokens=8, greedy=True), expected)
    assert isinstance(ours, Llama)


def test_a_folder_that_is_none_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="folder"):
        read_checkpoint(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="JSON"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(CheckpointError, match="no object"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"neither model\.safetensors nor"):
        read_checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin, which can run code when read: convert it"):
        read_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"too short")
    with pytest.raises(CheckpointError, match="read"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "file", ["../secret.safetensors", "/etc/secret.safetensors", "..", "", "a/b.safetensors", "a\\b"]
)
def test_a_file_outside_the_folder_is_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / "it").mkdir()
    save_file({"a": torch.ones(1)}, tmp_path / "secret.safetensors")
    (tmp_path / "it" / "config.json").write_text("{}", encoding="utf-8")
    index = tmp_path / "it" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": file}}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="not a file"):
        read_checkpoint(tmp_path / "it")


def test_an_index_that_does_not_fit_its_files_is_refused(saved: Any) -> None:
    _, folder = saved("gpt2", max_shard_size="5KB")
    index = folder / "model.safetensors.index.json"
    places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    index.write_text(json.dumps({"weight_map": {**places, "ghost": next(iter(places.values()))}}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="do not hold ghost"):
        read_checkpoint(folder)
    next(folder.glob("*.safetensors")).unlink()
    with pytest.raises(CheckpointError, match=r"is missing, which model\.safetensors\.index\.json names"):
        read_checkpoint(folder)
    index.write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="no weight_map"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("bert", "model_type", "mistral"),
        ("bert", "hidden_act", "relu"),
        ("bert", "position_embedding_type", "relative_key"),
        ("bert", "is_decoder", True),
        ("bert", "hidden_size", "twelve"),
        ("gpt2", "activation_function", "relu"),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True),
        ("t5", "feed_forward_proj", "gated-silu"),
        ("t5", "num_decoder_layers", 3),
        ("vit", "hidden_act", "relu"),
        ("vit", "qkv_bias", False),
        ("llama", "attention_bias", True),
        ("llama", "mlp_bias", True),
        ("llama", "head_dim", 16),
    ],
)  # fmt: skip
def test_what_the_course_has_not_is_refused_by_name(saved: Any, name: str, key: str, value: object) -> None:
    _, folder = saved(name)
    configure(folder, **{key: value})
    with pytest.raises(CheckpointError, match=f"it: {key} in .* {value!r}"):
        load_pretrained(folder)


@pytest.mark.parametrize("kind", ["linear", "dynamic", "yarn"])
def test_ropes_that_the_course_has_not_are_refused(saved: Any, kind: str) -> None:
    _, folder = saved("llama")
    configure(folder, rope_parameters=..., rope_scaling={"type": kind, "factor": 2.0})
    with pytest.raises(CheckpointError, match=f"rope_type in .*'{kind}'"):
        load_pretrained(folder)
    configure(folder, rope_parameters={"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0})
    with pytest.raises(CheckpointError, match="has no low_freq_factor"):
        load_pretrained(folder)


@pytest.mark.parametrize("name", FIRST)
def test_tensors_that_do_not_fit_are_named(saved: Any, name: str) -> None:
    _, folder = saved(name)
    first = min(key for key in load_file(folder / "model.safetensors") if "bias" not in key and "classifier" not in key)
    plain = first.removeprefix("bert.").removeprefix("transformer.").removeprefix("vit.")
    rewrite(folder, lambda held: {key: tensor[:-1] if key == first else tensor for key, tensor in held.items()})
    with pytest.raises(CheckpointError, match=f"has the shape .* and {re.escape(plain)}"):
        load_pretrained(folder)
    rewrite(folder, lambda held: {key: tensor.int() if key == first else tensor for key, tensor in held.items()})
    with pytest.raises(CheckpointError, match=r"holds torch\.int32"):
        load_pretrained(folder)
    rewrite(folder, lambda held: {key: tensor for key, tensor in held.items() if key != first})
    with pytest.raises(CheckpointError, match=f"lacks {re.escape(plain)}"):
        load_pretrained(folder)


def test_left_over_tensors_are_counted_and_five_are_named(saved: Any) -> None:
    _, folder = saved("llama")
    rewrite(folder, lambda held: held | {f"more.{n}": torch.ones(1) for n in range(7)})
    with pytest.raises(CheckpointError, match=r"more\.0, more\.1, more\.2, more\.3, more\.4 and 2 more \(7 in all\)"):
        load_pretrained(folder)
