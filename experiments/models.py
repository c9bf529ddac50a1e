"""The course's models beside Hugging Face's with the same weights: a training step, and generation with a cache, as ratios.

    python experiments/models.py --rounds 5

Both are measured in turns in one run, so that what else the machine does falls on both; a figure is the median over the rounds. One core,
random weights, eager attention, float32. Above 1 ours takes longer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)

from tfcourse.gpt import generate
from tfcourse.pretrained import load_pretrained

# `measure` stands beside the benchmarks of the grader.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from measure import Figures

V, BATCH, LENGTH, PROMPT = 1000, 8, 64, 8
Run = Callable[[], Tensor]


def pairs(width: int, layers: int) -> dict[str, Any]:
    """Hugging Face's models at one size."""
    size = {
        "vocab_size": V,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "intermediate_size": 4 * width,
    }
    eager: dict[str, Any] = {"attn_implementation": "eager"}
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    image = {key: value for key, value in size.items() if key != "vocab_size"}
    return {
        "Bert": BertModel._from_config(BertConfig(**size, **off), **eager),
        "Gpt": GPT2LMHeadModel._from_config(
            GPT2Config(
                vocab_size=V, n_positions=1024, n_embd=width, n_layer=layers, n_head=4,
                resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, eos_token_id=None, bos_token_id=None,
            ),
            **eager,
        ),
        "T5": T5ForConditionalGeneration._from_config(
            T5Config(vocab_size=V, d_model=width, d_kv=width // 4, d_ff=4 * width, num_layers=layers, num_heads=4, dropout_rate=0.0),
            **eager,
        ),
        "ViT": ViTForImageClassification._from_config(ViTConfig(**image, **off, image_size=32, patch_size=4), **eager),
        "Llama": LlamaForCausalLM._from_config(
            LlamaConfig(**size, num_key_value_heads=2, eos_token_id=None, bos_token_id=None), **eager
        ),
    }  # fmt: skip


def forward(name: str, theirs: nn.Module, ours: nn.Module) -> tuple[Run, Run]:
    """Both models on one input: their logits or states."""
    tokens = torch.randint(V, (BATCH, LENGTH))
    if name == "ViT":
        images = torch.randn(BATCH, 3, 32, 32)
        return lambda: theirs(images).logits, lambda: ours(images)
    if name == "T5":
        return lambda: theirs(tokens, decoder_input_ids=tokens).logits, lambda: ours(tokens, tokens)
    if name == "Bert":
        return lambda: theirs(tokens).last_hidden_state, lambda: ours(tokens)[0]
    return lambda: theirs(tokens, use_cache=False).logits, lambda: ours(tokens)[0]


def training_step(model: nn.Module, run: Run) -> Run:
    """A pass forward, one back, and a step of Adam."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = run().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def generation(theirs: Any, ours: nn.Module, new_tokens: int) -> tuple[Run, Run]:
    """Both models write greedily, with a cache."""
    prompt = torch.randint(V, (1, PROMPT))
    mask = torch.ones_like(prompt)
    return (
        lambda: theirs.generate(
            prompt, attention_mask=mask, max_new_tokens=new_tokens, do_sample=False, eos_token_id=None, pad_token_id=0
        ),
        lambda: generate(ours, prompt, max_new_tokens=new_tokens, greedy=True),
    )


def in_turns(theirs: Run, ours: Run, rounds: int) -> tuple[float, float]:
    """Processor seconds of both, medians over rounds in turns, after one round that does not count."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for run, kept in zip((theirs, ours), seconds, strict=True):
            begin = process_time()
            run()
            if number:
                kept.append(process_time() - begin)
    return median(seconds[0]), median(seconds[1])


def figures(rounds: int, *, width: int = 128, layers: int = 4, new_tokens: int = 96) -> Figures:
    """Measure all five."""
    found = Figures(
        "models",
        f"python experiments/models.py --rounds {rounds}",
        ("model", "what", "ours ms", "theirs ms", "ours / theirs"),
    )
    for name, theirs in pairs(width, layers).items():
        with tempfile.TemporaryDirectory() as folder:
            theirs.save_pretrained(folder)
            ours = load_pretrained(Path(folder))
        theirs.eval()
        there, here = forward(name, theirs, ours)
        torch.testing.assert_close(here(), there(), atol=1e-4, rtol=1e-4)
        runs = [("training step", training_step(theirs, there), training_step(ours, here))]
        if name in ("Gpt", "Llama"):
            runs.append((f"{new_tokens} tokens with a cache", *generation(theirs, ours, new_tokens)))
        for what, one, other in runs:
            slow, fast = in_turns(one, other, rounds)
            found.rows.append((name, what, 1000 * fast, 1000 * slow, fast / slow))
    found.notes.append(
        f"Width {width}, {layers} layers, 4 heads, batches of {BATCH} sequences of {LENGTH} tokens; CPU time on one core. "
        "The course's T5 has no cache; BERT and ViT do not generate text."
    )
    return found


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    figures(options.rounds).tell(options.json)


if __name__ == "__main__":
    main()
