"""Train a small GPT on the sentences of Python's language reference, save it as GPT-2 is published, and record what it writes.

    python experiments/gpt_writes.py --folder my_gpt --record tfcourse/recorded/writing.json

Lesson 07 shows one prompt under eight settings, and lesson 09 what the checkpoint writes in a student's own class. Some seven minutes on
one core; `--written` keeps the checkpoint that is in the folder and only writes again.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from gpt import train
from safetensors.torch import save_file
from sampling import written
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from autograder.commands.generate_text import generate_text
from tfcourse.data import prose
from tfcourse.decoding import beam_search
from tfcourse.gpt import Gpt, bits_per_byte, next_token_loss
from tfcourse.pretrained import load_pretrained
from tfcourse.tokenization import byte_characters, decode_ids, encode_text, pre_tokenize, train_bpe

COMMAND = "python experiments/gpt_writes.py --folder my_gpt --record tfcourse/recorded/writing.json"
V, T = 1024, 128
SIZES: dict[str, Any] = {"d_model": 128, "n_heads": 4, "n_layers": 4}
STEPS, PEAK, SEED = 1000, 3e-3, 0
PROMPT, NEW = "The with statement", 100
PROMPTS, BEGIN, BEAM = 16, 9, 5
GREEDY = ("top_k", {"k": 1})
# The samplers of each setting; None is beam search.
SETTINGS: dict[str, Any] = {
    "greedy": [GREEDY],
    "beam of 5": None,
    "temperature 0.5": [("temperature", {"t": 0.5})],
    "temperature 1": [],
    "temperature 1.5": [("temperature", {"t": 1.5})],
    "top-k 20": [("top_k", {"k": 20})],
    "top-p 0.9": [("top_p", {"p": 0.9})],
    "greedy, penalty 1.3": [("repetition_penalty", {"penalty": 1.3}), GREEDY],
    "greedy, DRY": [("dry_penalty", {"multiplier": 1.0, "base": 1.75, "allowed": 2}), GREEDY],
}


def paragraphs() -> list[str]:
    """The paragraphs of the reference that are sentences, without tables, grammar, code and marks of emphasis; each once."""
    lines = [re.sub(r'["*`]', "", " ".join(part.split())).replace("’", "'") for part in prose().split("\n\n")]
    return list(dict.fromkeys(line for line in lines if _is_prose(line)))


def _is_prose(line: str) -> bool:
    words = sum(character.isalpha() or character == " " for character in line)
    whole = len(line) >= 80 and line[0].isupper() and line[-1] in ".:"
    return whole and words > 0.85 * len(line) and not re.search(r"[=|<>{}\\^]|--|\.\.\.", line)


class Text:
    """Nine tenths of the paragraphs to train on and every tenth to test on, in tokens."""

    def __init__(self) -> None:
        every = paragraphs()
        self.test = [text for number, text in enumerate(every) if number % 10 == 9]
        self.read = "\n".join(text for number, text in enumerate(every) if number % 10 != 9)
        pieces = Counter(
            "".join(byte_characters()[byte] for byte in piece.encode()) for piece in pre_tokenize(self.read)
        )
        self.vocabulary, self.merges = train_bpe(pieces, V, byte_characters())
        self.words = set(re.findall(r"[a-z]+", prose().lower()))

    def encode(self, text: str) -> list[int]:
        return encode_text(text, self.vocabulary, self.merges)

    def decode(self, ids: Sequence[int]) -> str:
        return decode_ids(list(ids), self.vocabulary)


@torch.no_grad()
def bits(model: Gpt, text: Text) -> float:
    """Bits per byte of the test paragraphs, each by itself."""
    model.eval()
    nats, count, size = 0.0, 0, 0
    for line in text.test:
        ids = torch.tensor([text.encode("\n" + line)[:T]])
        nats += next_token_loss(model(ids)[0], ids).item() * (ids.shape[1] - 1)
        count += ids.shape[1] - 1
        size += len(text.decode(ids[0, 1:].tolist()).encode())
    return bits_per_byte(nats / count, count, size)


def save(model: Gpt, text: Text, folder: Path) -> None:
    """Write config.json, model.safetensors and tokenizer.json as a published GPT-2 has them."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(_published_weights(model.state_dict()), folder / "model.safetensors")
    config = {
        "model_type": "gpt2",
        "vocab_size": V,
        "n_positions": T,
        "n_embd": SIZES["d_model"],
        "n_head": SIZES["n_heads"],
        "n_layer": SIZES["n_layers"],
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(text.vocabulary)}, text.merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


def _published_weights(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename our weights as GPT-2's: matrices are (in, out), and queries, keys and values share one."""
    renamed = {
        "attention_norm": "ln_1",
        "feed_forward_norm": "ln_2",
        "attention.o_proj": "attn.c_proj",
        "up_proj": "mlp.c_fc",
        "down_proj": "mlp.c_proj",
    }
    theirs = {"wte.weight": ours["token_embedding.weight"], "wpe.weight": ours["position_embedding.weight"]}
    for part in ("weight", "bias"):
        theirs[f"ln_f.{part}"] = ours[f"final_norm.{part}"]
        for i in range(SIZES["n_layers"]):
            maps = torch.cat([ours[f"blocks.{i}.attention.{letter}_proj.{part}"] for letter in "qkv"])
            theirs[f"h.{i}.attn.c_attn.{part}"] = maps.mT if maps.ndim == 2 else maps
            for name, other in renamed.items():
                weight = ours[f"blocks.{i}.{name}.{part}"]
                theirs[f"h.{i}.{other}.{part}"] = weight.mT if weight.ndim == 2 else weight
    return {name: weight.contiguous().clone() for name, weight in theirs.items()}


def trained(text: Text, folder: Path) -> None:
    """Train, and save the checkpoint every 200 steps."""
    torch.manual_seed(SEED)
    model = Gpt(V, T, **SIZES, dropout=0.1)

    def examine(step: int, seconds: float) -> None:
        if step % 200 == 0:
            print(
                f"step {step}: {seconds:.0f} s, {bits(model, text):.3f} bits per byte of unseen paragraphs", flush=True
            )
            save(model, text, folder)

    train(model, text.encode("\n" + text.read), STEPS, peak=PEAK, seed=SEED, examine=examine)


# ------------------------------------------------------------------------------------------------------------ writing


def written_by_beam(model: Gpt, prompts: Tensor, new: int) -> Tensor:
    """The most probable text that a beam of five finds for each prompt, (B, new)."""
    found = [
        beam_search(lambda text: model(text)[0], row[None], beam_width=BEAM, max_new_tokens=new, eos=-1)[0][1]
        for row in prompts
    ]
    return torch.tensor(found)


def runs_of_words(text: str, length: int) -> list[tuple[str, ...]]:
    """All sequences of so many words, in lower case."""
    words = re.findall(r"[a-z]+", text.lower())
    return [tuple(words[i : i + length]) for i in range(len(words) - length + 1)]


def counts(text: Text, texts: Sequence[str]) -> dict[str, float]:
    """What can be counted in texts: words that exist, repetitions, and copies of the training text."""
    words = [word for one in texts for (word,) in runs_of_words(one, 1)[:-1] if len(word) >= 4]  # the last may be cut
    fours = [runs_of_words(one, 4) for one in texts]
    eights = [run for one in texts for run in runs_of_words(one, 8)]
    read = set(runs_of_words(text.read, 8))
    return {
        "words": round(sum(word in text.words for word in words) / len(words), 3),
        "repeated": round(1 - sum(len(set(runs)) for runs in fours) / sum(map(len, fours)), 3),
        "copied": round(sum(run in read for run in eights) / len(eights), 3),
    }


@torch.no_grad()
def probabilities(model: Gpt, texts: Tensor) -> Tensor:
    """The model's probability of each token after the prompt, (B, T - BEGIN)."""
    p: Tensor = model(texts[:, :-1])[0].softmax(-1).gather(-1, texts[:, 1:, None])[..., 0]  # (B, T - 1)
    return p[:, BEGIN - 1 :]


def percentiles(p: Tensor) -> list[float]:
    """The percentiles of probabilities, 0 to 100, the largest first."""
    return [round(value, 4) for value in p.flatten().quantile(torch.linspace(1, 0, 101)).tolist()]


def continued(model: Gpt, prompts: Tensor, chain: Any, new: int) -> tuple[Tensor, float]:
    """Texts (B, new) under one setting, and the mean entropy in bits per text."""
    if chain is None:
        return written_by_beam(model, prompts, new), 0.0
    return written(model, prompts, chain, new, SEED)


def one_setting(model: Gpt, text: Text, prompts: Tensor, chain: Any) -> tuple[dict[str, Any], Tensor]:
    """The shown prompt under one setting, and numbers over all prompts with their texts (B, T)."""
    shown, _ = continued(model, torch.tensor([text.encode("\n" + PROMPT)]), chain, NEW)
    new, bits_per_text = continued(model, prompts, chain, T - BEGIN)
    texts, whole = [text.decode(row.tolist()) for row in new], torch.cat([prompts, new], dim=1)
    entry = {
        "text": text.decode(shown[0].tolist()),
        "bits": round(bits_per_text * len(texts) / sum(map(len, texts)), 2),
        "log_p": round(probabilities(model, whole).log().mean().item(), 2),
    }
    return entry | counts(text, texts), whole


def record(model: Gpt, text: Text, folder: Path) -> dict[str, Any]:
    """One prompt under all settings, and each setting's numbers over the beginnings of test paragraphs."""
    test = ["\n" + "\n".join(text.test[i : i + 8]) for i in range(0, 4 * PROMPTS, 4)]
    real = torch.tensor([text.encode(part)[:T] for part in test])  # (B, T)
    settings, texts = {}, {}
    for name, chain in SETTINGS.items():
        settings[name], texts[name] = one_setting(model, text, real[:, :BEGIN], chain)
        print(name, settings[name], flush=True)
    p_real, p_greedy = probabilities(model, real), probabilities(model, texts["greedy"])
    generated = generate_text(
        folder, PROMPT, ids=None, new_tokens=NEW, greedy=False, chain=[("temperature", {"t": 0.5})], seed=1
    )
    return {
        "generated": COMMAND,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "steps": STEPS,
        "characters": len(text.read),
        "bits_per_byte": round(bits(model, text), 3),
        "prompts": PROMPTS,
        "prompt": PROMPT,
        "settings": settings,
        "real": counts(text, [text.decode(row[BEGIN:].tolist()) for row in real])
        | {"log_p": round(p_real.log().mean().item(), 2)},
        "p_greedy": percentiles(p_greedy),
        "p_real": percentiles(p_real),
        "halves": [round(half.mean().item(), 3) for half in p_greedy.chunk(2, dim=1)],
        "command": f'tfcourse generate my_gpt/ "{PROMPT}" --new-tokens {NEW} --temperature 0.5 --seed 1',
        "text": generated.text,
    }


def main() -> None:
    """Train, save, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint is saved")
    parser.add_argument("--record", type=Path, required=True, help="where to write what the lessons read")
    parser.add_argument("--written", action="store_true", help="keep the checkpoint that is in the folder")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    text = Text()
    if not arguments.written:
        trained(text, arguments.folder)
    model = cast("Gpt", load_pretrained(arguments.folder, into=Gpt))
    result = record(model, text, arguments.folder)
    arguments.record.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
