"""Load published checkpoints in Hugging Face's format into the course's BERT, GPT-2, T5, ViT and Llama.

A checkpoint is a folder with `config.json` and `model.safetensors`, or with several
files and `model.safetensors.index.json`. Loading needs no network, runs no code from
the folder, and does not use `transformers`.
"""

import importlib
import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

__all__ = ["CheckpointError", "Source", "hugging_face_names", "load_pretrained", "read_checkpoint", "read_config"]

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"

How = Literal["as is", "transpose", "first third", "second third", "last third", "patch", "first row"]


class CheckpointError(ValueError):
    """A checkpoint cannot be loaded; the message states the folder, the file or key, and a remedy."""


class Source(NamedTuple):
    """The source of one of our weights in a checkpoint."""

    name: str
    """Its name in the file, as released checkpoints have it, without the prefix of the whole model."""
    how: How = "as is"
    """What is done to it; a third is one of the last axis, transposed as well if it is a matrix."""


_CLASSES = {
    "bert": ("tfcourse.bert", "Bert"),
    "gpt2": ("tfcourse.gpt", "Gpt"),
    "t5": ("tfcourse.t5", "T5"),
    "vit": ("tfcourse.vit", "VisionTransformer"),
    "llama": ("tfcourse.llama", "Llama"),
}
_PREFIXES = {"bert": "bert.", "gpt2": "transformer.", "t5": "", "vit": "vit.", "llama": ""}
# Buffers, copies of the embedding, and heads that our classes do not have.
_IGNORED = {
    "bert": r"embeddings\.position_ids|cls\..*|classifier\..*|qa_outputs\..*",
    "gpt2": r"h\.\d+\.attn\.(bias|masked_bias)",
    "t5": r"(encoder|decoder)\.embed_tokens\.weight",
    "vit": r"pooler\..*",
    "llama": r"(model\.layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq|model\.rotary_emb\.inv_freq",
}
# Newer spellings, and BERT's oldest ones, as (pattern, the spelling of released files).
_SPELLINGS = {
    "bert": [(r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias")],
    "vit": [
        (r"^layers\.(\d+)\.", r"encoder.layer.\1."),
        (r"\.attention\.q_proj\.", ".attention.attention.query."),
        (r"\.attention\.k_proj\.", ".attention.attention.key."),
        (r"\.attention\.v_proj\.", ".attention.attention.value."),
        (r"\.attention\.o_proj\.", ".attention.output.dense."),
        (r"\.mlp\.fc1\.", ".intermediate.dense."),
        (r"\.mlp\.fc2\.", ".output.dense."),
    ],
}


def read_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a checkpoint folder in Hugging Face's format.

    Args:
        folder: Folder with `config.json`, and `model.safetensors` or the files listed
            in `model.safetensors.index.json`.

    Returns:
        The configuration, and all tensors, keyed by their names in the files.

    Raises:
        CheckpointError: If the folder does not exist, a file is missing or cannot be
            read, or the index lists a file outside the folder.
    """
    folder = Path(folder)
    config = read_config(folder)
    if (folder / WEIGHTS).is_file():
        return config, _tensors(folder / WEIGHTS)
    if not (folder / INDEX).is_file():
        pickled = sorted(file.name for file in folder.glob("*.bin"))
        remedy = f"it holds {pickled[0]}, which can run code when read: convert it" if pickled else "download them"
        raise CheckpointError(
            f"{folder}: it holds neither {WEIGHTS} nor {INDEX}; {remedy}. "
            "`save_pretrained` of transformers writes safetensors."
        )
    weight_map = _json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise CheckpointError(f"{folder / INDEX}: it has no weight_map from names to files. Download it again.")
    tensors: dict[str, Tensor] = {}
    for file in sorted(set(weight_map.values())):
        if not file or Path(file).name != file or file == ".." or "\\" in file:
            raise CheckpointError(
                f"{folder / INDEX}: it names {file!r}, which is not a file of this folder. "
                "Do not trust this checkpoint; download it from where it was published."
            )
        if not (folder / file).is_file():
            raise CheckpointError(f"{folder}: {file} is missing, which {INDEX} names. Download this file, too.")
        tensors |= _tensors(folder / file)
    if absent := sorted(set(weight_map) - set(tensors)):
        raise CheckpointError(f"{folder / INDEX}: its files do not hold {_some(absent)}. Download them again.")
    return config, tensors


def read_config(folder: Path) -> dict[str, Any]:
    """Read only the `config.json` of a checkpoint, with the same arguments and errors as `read_checkpoint`."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: there is no such folder. Download the checkpoint first, and name its folder.")
    if not (folder / CONFIG).is_file():
        raise CheckpointError(
            f"{folder}: it holds no {CONFIG}. Name the folder that does; download it with its weights."
        )
    return _json(folder / CONFIG)


def hugging_face_names(config: Mapping[str, Any]) -> dict[str, Source]:
    """Map each of our weights to its source in a Hugging Face checkpoint.

    Args:
        config: Contents of `config.json`; `model_type`, the number of layers and the
            kind of feed-forward network are used.

    Returns:
        The source of each name in the `state_dict` of our class. Optional weights are
        included: the output matrix (T5, Llama), the head (ViT) and the pooler (BERT).

    Raises:
        CheckpointError: If `model_type` is not one of the five.
    """
    kind = _kind(config)
    return {"bert": _bert_names, "gpt2": _gpt_names, "t5": _t5_names, "vit": _vit_names, "llama": _llama_names}[kind](
        config
    )


def load_pretrained(
    folder: Path, *, into: type[nn.Module] | None = None, dtype: torch.dtype | None = None
) -> nn.Module:
    """Load a published checkpoint into the course's model of the same type.

    `nn.Identity` replaces the pooler of a BERT without one, and the head of a ViT
    without a classifier. BERT's heads are not loaded.

    Args:
        folder: As in `read_checkpoint`.
        into: Your class, with the arguments and part names that the exercise requires;
            None means ours.
        dtype: Dtype of the weights; None keeps the dtype of the file.

    Returns:
        The model on the CPU, in eval mode.

    Raises:
        CheckpointError: If the folder cannot be read, its model is not one of the five
            or has features that the course's classes lack, or names or shapes of
            tensors do not match.
    """
    folder = Path(folder)
    config, tensors = read_checkpoint(folder)
    try:
        return _filled(config, tensors, into, dtype)
    except CheckpointError as error:
        raise CheckpointError(f"{folder}: {error}") from None


def _filled(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], into: type[nn.Module] | None, dtype: torch.dtype | None
) -> nn.Module:
    kind = _kind(config)
    held = _released_names(kind, tensors)
    model = _create_model(kind, config, held, into)
    names = hugging_face_names(config)
    weights = dict(model.named_parameters())
    if foreign := sorted(set(weights) - set(names)):
        raise CheckpointError(
            f"{type(model).__name__} has parameters that the exercise does not name: {_some(foreign)}. Rename them."
        )
    if lacking := sorted(
        name for name in set(names) - set(weights) if names[name].name in held and names[name].name != "lm_head.weight"
    ):
        raise CheckpointError(
            f"{type(model).__name__} lacks parameters that the file has: {_some(lacking)}. Name them so."
        )
    sources = {name: names[name] for name in weights}
    if absent := sorted({source.name for source in sources.values()} - set(held)):
        raise CheckpointError(f"the file lacks {_some(absent)}. Download it again, or load the whole model.")
    used = {source.name for source in sources.values()}
    spare = sorted(name for name in set(held) - used if not re.fullmatch(_IGNORED[kind], name))
    if spare:
        raise CheckpointError(
            f"the file has tensors that our model has no place for: {_some(spare)}. It is another model than {CONFIG} says."
        )
    state = {name: _converted(name, held[source.name], source, weights[name]) for name, source in sources.items()}
    state = {name: tensor if dtype is None else tensor.to(dtype) for name, tensor in state.items()}
    if into is None:
        model.load_state_dict(state, strict=True, assign=True)
    else:
        for name, tensor in state.items():
            weights[name].data = tensor  # weights that share a tensor go on sharing it
    if kind == "t5":
        _scale_output(model, config, held)
    return model.eval()


def _create_model(
    kind: str, config: Mapping[str, Any], held: dict[str, Tensor], into: type[nn.Module] | None
) -> nn.Module:
    """Create the model without its weights, and drop tensors that repeat the embedding."""
    arguments = {"bert": _bert, "gpt2": _gpt, "t5": _t5, "vit": _vit, "llama": _llama}[kind](config, held)
    module, name = _CLASSES[kind]
    model_class: type[nn.Module] = into or getattr(importlib.import_module(module), name)
    # Another's class may make tensors that are no weights: they must not stay on the meta device.
    with torch.random.fork_rng(devices=[]), torch.device("meta") if into is None else nullcontext():
        model = model_class(**arguments)
    if kind == "bert" and "pooler.dense.weight" not in held:
        model.pooler = nn.Identity()
    if kind == "vit" and "classifier.weight" not in held:
        model.head = nn.Identity()
    eps = config.get("layer_norm_eps", config.get("layer_norm_epsilon", config.get("rms_norm_eps", _EPS[kind])))
    for part in model.modules():
        if isinstance(getattr(part, "eps", None), float):
            part.eps = float(eps)  # type: ignore[assignment]
    return model


_EPS = {"bert": 1e-12, "gpt2": 1e-5, "t5": 1e-6, "vit": 1e-12, "llama": 1e-6}


def _bert(config: Mapping[str, Any], held: dict[str, Tensor]) -> dict[str, Any]:
    _only(config, hidden_act=["gelu"], position_embedding_type=["absolute"], is_decoder=[False])
    _only(config, add_cross_attention=[False])
    return {
        "vocab_size": _size(config, "vocab_size"),
        "d_model": _size(config, "hidden_size"),
        "n_heads": _size(config, "num_attention_heads"),
        "n_layers": _size(config, "num_hidden_layers"),
        "d_ff": _size(config, "intermediate_size"),
        "max_length": _size(config, "max_position_embeddings"),
        "segments": _size(config, "type_vocab_size", 2),
    }


def _gpt(config: Mapping[str, Any], held: dict[str, Tensor]) -> dict[str, Any]:
    _only(config, activation_function=["gelu_new", "gelu_pytorch_tanh"], scale_attn_weights=[True])
    _only(config, scale_attn_by_inverse_layer_idx=[False], add_cross_attention=[False])
    _drop_tied(held, "wte.weight")
    return {
        "vocab_size": _size(config, "vocab_size"),
        "max_length": _size(config, "n_positions"),
        "d_model": _size(config, "n_embd"),
        "n_heads": _size(config, "n_head"),
        "n_layers": _size(config, "n_layer"),
        "d_ff": None if config.get("n_inner") is None else _size(config, "n_inner"),
    }


def _t5(config: Mapping[str, Any], held: dict[str, Tensor]) -> dict[str, Any]:
    _only(config, feed_forward_proj=["relu", "gated-gelu"])
    layers = _size(config, "num_layers")
    if (other := config.get("num_decoder_layers")) not in (None, layers):
        raise _refused("num_decoder_layers", other, [layers])
    if _scales(config):
        _drop_tied(held, "shared.weight")
    elif "shared.weight" in held:
        held.setdefault("lm_head.weight", held["shared.weight"])
    return {
        "vocab_size": _size(config, "vocab_size"),
        "d_model": _size(config, "d_model"),
        "n_heads": _size(config, "num_heads"),
        "d_head": _size(config, "d_kv"),
        "d_ff": _size(config, "d_ff"),
        "n_layers": layers,
        "gated": config.get("feed_forward_proj", "relu") == "gated-gelu",
        "tie_weights": "lm_head.weight" not in held and _scales(config),
        "n_buckets": _size(config, "relative_attention_num_buckets", 32),
        "max_distance": _size(config, "relative_attention_max_distance", 128),
    }


def _vit(config: Mapping[str, Any], held: dict[str, Tensor]) -> dict[str, Any]:
    _only(config, hidden_act=["gelu"], qkv_bias=[True])
    classifier = held.get("classifier.weight")
    return {
        "image_size": _size(config, "image_size"),
        "patch": _size(config, "patch_size"),
        "n_channels": _size(config, "num_channels", 3),
        "n_classes": 1 if classifier is None else len(classifier),
        "d_model": _size(config, "hidden_size"),
        "n_heads": _size(config, "num_attention_heads"),
        "d_ff": _size(config, "intermediate_size"),
        "n_layers": _size(config, "num_hidden_layers"),
    }


def _llama(config: Mapping[str, Any], held: dict[str, Tensor]) -> dict[str, Any]:
    _only(config, hidden_act=["silu"], attention_bias=[False], mlp_bias=[False], partial_rotary_factor=[1.0])
    width, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    if (head := config.get("head_dim")) not in (None, width // heads):
        raise _refused("head_dim", head, [width // heads])
    rope = config.get("rope_parameters") or {
        "rope_theta": config.get("rope_theta", 10_000.0),
        **(config.get("rope_scaling") or {}),
    }
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise _refused("rope_type", kind, ["default", "llama3"])
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise _refused("partial_rotary_factor", rope["partial_rotary_factor"], [1.0])
    scaling = {
        "factor": "factor",
        "low": "low_freq_factor",
        "high": "high_freq_factor",
        "original_length": "original_max_position_embeddings",
    }
    if kind == "llama3" and (absent := [key for key in scaling.values() if key not in rope]):
        raise CheckpointError(f"{CONFIG} scales positions as llama3 and has no {', '.join(absent)}. Download it again.")
    tied = bool(config.get("tie_word_embeddings", False))
    if tied:
        _drop_tied(held, "model.embed_tokens.weight")
    return {
        "vocab_size": _size(config, "vocab_size"),
        "d_model": width,
        "n_heads": heads,
        "n_kv_heads": heads if config.get("num_key_value_heads") is None else _size(config, "num_key_value_heads"),
        "d_ff": _size(config, "intermediate_size"),
        "n_layers": _size(config, "num_hidden_layers"),
        "theta": float(rope.get("rope_theta", config.get("rope_theta", 10_000.0))),
        "eps": float(config.get("rms_norm_eps", _EPS["llama"])),
        "tie_weights": tied,
        "rope_scaling": {ours: rope[published] for ours, published in scaling.items()} if kind == "llama3" else None,
    }


def _bert_names(config: Mapping[str, Any]) -> dict[str, Source]:
    parts = {
        "embeddings.norm": "embeddings.LayerNorm",
        "pooler": "pooler.dense",
    }
    for i in range(_size(config, "num_hidden_layers")):
        ours, published = f"layers.{i}", f"encoder.layer.{i}"
        parts |= {
            f"{ours}.self_attention.{a}_proj": f"{published}.attention.self.{b}"
            for a, b in (("q", "query"), ("k", "key"), ("v", "value"))
        }
        parts |= {
            f"{ours}.self_attention.o_proj": f"{published}.attention.output.dense",
            f"{ours}.self_attention_norm": f"{published}.attention.output.LayerNorm",
            f"{ours}.feed_forward.up_proj": f"{published}.intermediate.dense",
            f"{ours}.feed_forward.down_proj": f"{published}.output.dense",
            f"{ours}.feed_forward_norm": f"{published}.output.LayerNorm",
        }
    tables = {
        f"embeddings.{ours}_embedding.weight": Source(f"embeddings.{published}_embeddings.weight")
        for ours, published in (("token", "word"), ("position", "position"), ("segment", "token_type"))
    }
    return tables | _with_biases(parts)


def _gpt_names(config: Mapping[str, Any]) -> dict[str, Source]:
    names = {"token_embedding.weight": Source("wte.weight"), "position_embedding.weight": Source("wpe.weight")}
    names |= _with_biases({"final_norm": "ln_f"})
    thirds: tuple[tuple[str, How], ...] = (("q", "first third"), ("k", "second third"), ("v", "last third"))
    for i in range(_size(config, "n_layer")):
        ours, published = f"blocks.{i}", f"h.{i}"
        names |= _with_biases(
            {f"{ours}.attention_norm": f"{published}.ln_1", f"{ours}.feed_forward_norm": f"{published}.ln_2"}
        )
        names |= {
            f"{ours}.attention.{letter}_proj.{part}": Source(f"{published}.attn.c_attn.{part}", how)
            for letter, how in thirds
            for part in ("weight", "bias")
        }
        for our_part, other in (
            ("attention.o_proj", "attn.c_proj"),
            ("up_proj", "mlp.c_fc"),
            ("down_proj", "mlp.c_proj"),
        ):
            names[f"{ours}.{our_part}.weight"] = Source(f"{published}.{other}.weight", "transpose")
            names[f"{ours}.{our_part}.bias"] = Source(f"{published}.{other}.bias")
    return names


def _t5_names(config: Mapping[str, Any]) -> dict[str, Source]:
    names = {"embedding": "shared", "output": "lm_head"}
    gated = config.get("feed_forward_proj", "relu") == "gated-gelu"
    inner = {"gate_proj": "wi_0", "up_proj": "wi_1"} if gated else {"up_proj": "wi"}
    for stack in ("encoder", "decoder"):
        names[f"{stack}_bias"] = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias"
        names[f"{stack}_norm"] = f"{stack}.final_layer_norm"
        attentions = {"self_attention": "SelfAttention"} | (
            {"cross_attention": "EncDecAttention"} if stack == "decoder" else {}
        )
        for i in range(_size(config, "num_layers")):
            ours, block = f"{stack}_layers.{i}", f"{stack}.block.{i}.layer"
            for j, (our_part, published) in enumerate(attentions.items()):
                names |= {f"{ours}.{our_part}.{letter}_proj": f"{block}.{j}.{published}.{letter}" for letter in "qkvo"}
                names[f"{ours}.{our_part}_norm"] = f"{block}.{j}.layer_norm"
            last = f"{block}.{len(attentions)}"
            names |= {
                f"{ours}.feed_forward.{our_part}": f"{last}.DenseReluDense.{published}"
                for our_part, published in {**inner, "down_proj": "wo"}.items()
            }
            names[f"{ours}.feed_forward_norm"] = f"{last}.layer_norm"
    return {f"{ours}.weight": Source(f"{published}.weight") for ours, published in names.items()}


def _vit_names(config: Mapping[str, Any]) -> dict[str, Source]:
    names = {
        "class_token": Source("embeddings.cls_token", "first row"),
        "position_table": Source("embeddings.position_embeddings", "first row"),
        "patch_proj.weight": Source("embeddings.patch_embeddings.projection.weight", "patch"),
        "patch_proj.bias": Source("embeddings.patch_embeddings.projection.bias"),
    }
    parts = {"norm": "layernorm", "head": "classifier"}
    for i in range(_size(config, "num_hidden_layers")):
        ours, published = f"layers.{i}", f"encoder.layer.{i}"
        parts |= {
            f"{ours}.self_attention.{a}_proj": f"{published}.attention.attention.{b}"
            for a, b in (("q", "query"), ("k", "key"), ("v", "value"))
        }
        parts |= {
            f"{ours}.self_attention.o_proj": f"{published}.attention.output.dense",
            f"{ours}.self_attention_norm": f"{published}.layernorm_before",
            f"{ours}.feed_forward.up_proj": f"{published}.intermediate.dense",
            f"{ours}.feed_forward.down_proj": f"{published}.output.dense",
            f"{ours}.feed_forward_norm": f"{published}.layernorm_after",
        }
    return names | _with_biases(parts)


def _llama_names(config: Mapping[str, Any]) -> dict[str, Source]:
    names = {"embedding": "model.embed_tokens", "norm": "model.norm", "output": "lm_head"}
    for i in range(_size(config, "num_hidden_layers")):
        ours, published = f"layers.{i}", f"model.layers.{i}"
        names |= {f"{ours}.self_attention.{letter}_proj": f"{published}.self_attn.{letter}_proj" for letter in "qkvo"}
        names |= {f"{ours}.feed_forward.{part}_proj": f"{published}.mlp.{part}_proj" for part in ("gate", "up", "down")}
        names[f"{ours}.self_attention_norm"] = f"{published}.input_layernorm"
        names[f"{ours}.feed_forward_norm"] = f"{published}.post_attention_layernorm"
    return {f"{ours}.weight": Source(f"{published}.weight") for ours, published in names.items()}


def _with_biases(parts: Mapping[str, str]) -> dict[str, Source]:
    return {
        f"{ours}.{part}": Source(f"{published}.{part}")
        for ours, published in parts.items()
        for part in ("weight", "bias")
    }


def _released_names(kind: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under their names in the released files: without prefix, in the older spelling."""
    held = {}
    for name, tensor in tensors.items():
        name = name.removeprefix(_PREFIXES[kind])
        for pattern, spelling in _SPELLINGS.get(kind, []):
            name = re.sub(pattern, spelling, name)
        held[name] = tensor
    return held


def _converted(ours: str, tensor: Tensor, source: Source, weight: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        raise CheckpointError(
            f"{source.name} holds {tensor.dtype}, and weights are floating-point numbers. "
            "Take the checkpoint that is not quantised."
        )
    converted: Tensor | None
    try:
        converted = _changed(tensor, source.how)
    except (RuntimeError, IndexError, ValueError):
        converted = None
    if converted is None or converted.shape != weight.shape:
        raise CheckpointError(
            f"{ours} has the shape {tuple(weight.shape)}, and {source.name} in the file {tuple(tensor.shape)} "
            f"(taken: {source.how}). Sizes in {CONFIG} and in the file must be those of one model."
        )
    return converted


def _changed(tensor: Tensor, how: How) -> Tensor:
    if how == "as is":
        return tensor
    if how == "transpose":
        return tensor.mT.contiguous()
    if how == "patch":  # (D, C, P, P): ours has the channel last
        return tensor.permute(0, 2, 3, 1).flatten(1)
    if how == "first row":
        return tensor[0, 0] if tensor.shape[:2] == (1, 1) else tensor[0]
    third = tensor.chunk(3, dim=-1)[("first third", "second third", "last third").index(how)]
    return third.mT.contiguous() if third.ndim == 2 else third.clone()


def _scales(config: Mapping[str, Any]) -> bool:
    return bool(config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True) is not False))


def _scale_output(model: nn.Module, config: Mapping[str, Any], held: Mapping[str, Tensor]) -> None:
    """Adapt the output weights if the checkpoint scales its logits differently from our T5.

    Our T5 scales them if and only if the embeddings are tied.
    """
    output: nn.Linear | None = model.output  # type: ignore[assignment]
    if output is not None and _scales(config):
        with torch.no_grad():
            output.weight.mul_(output.in_features**-0.5)
    elif output is not None and held["lm_head.weight"] is held["shared.weight"]:
        output.weight = model.embedding.weight  # type: ignore[union-attr,assignment]


def _drop_tied(held: dict[str, Tensor], embedding: str) -> None:
    """Drop an output matrix that repeats the embedding."""
    output, table = held.get("lm_head.weight"), held.get(embedding)
    if output is not None and table is not None and output.shape == table.shape and torch.equal(output, table):
        del held["lm_head.weight"]


def _kind(config: Mapping[str, Any]) -> str:
    kind = config.get("model_type")
    if kind not in _CLASSES:
        raise CheckpointError(
            f"model_type in {CONFIG} is {kind!r}. The course has {', '.join(_CLASSES)}: take a checkpoint of one of them."
        )
    return str(kind)


def _only(config: Mapping[str, Any], **allowed: list[Any]) -> None:
    for key, values in allowed.items():
        if key in config and config[key] is not None and config[key] not in values:
            raise _refused(key, config[key], values)


def _refused(key: str, value: object, allowed: list[Any]) -> CheckpointError:
    return CheckpointError(
        f"{key} in {CONFIG} is {value!r}, and the course's model has only {' or '.join(map(repr, allowed))}. "
        "Take another checkpoint; changing the file would change what the model says."
    )


def _size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = config.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CheckpointError(f"{key} in {CONFIG} is {value!r}, not a whole number above 0. Download the file again.")
    return value


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file}: it is not JSON ({error}). Download it again.") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{file}: it holds no object with keys and values. Download it again.")
    return data


def _tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{file}: it cannot be read ({error}). Download it again; it may be cut short.") from None


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more ({len(names)} in all)" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
