"""Run ``tfcourse generate``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import CommandResult, command


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("prompt", required=False)
@click.option("--ids", metavar="NUMBERS", help="The prompt as token ids, such as 3,1,4; the result is ids, too.")
@click.option(
    "--new-tokens", type=click.IntRange(min=0), default=40, show_default=True, help="Maximum number of new tokens."
)
@click.option("--greedy", is_flag=True, help="Always take the most probable token; do not sample.")
@click.option("--temperature", type=float, help="Temperature; below 1 sharpens the distribution, above 1 flattens it.")
@click.option("--top-k", type=int, help="Sample from the k most probable tokens.")
@click.option("--top-p", type=float, help="Sample from the most probable tokens that together reach this probability.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sampling.")
@command
def generate(
    folder: Path,
    prompt: str | None,
    ids: str | None,
    new_tokens: int,
    greedy: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int,
) -> CommandResult:
    """Continue a text with a published GPT-2, Llama or T5, loaded into the course's own model.

    FOLDER contains config.json, safetensors and, for text, tokenizer.json. The command downloads nothing.

    Example:
      tfcourse generate gpt2/ "The attention of a reader" --top-p 0.9
    """
    from autograder.commands.generate_text import generate_text, make_sampler

    chain = make_sampler(temperature=temperature, top_k=top_k, top_p=top_p)
    generated = generate_text(folder, prompt, ids=ids, new_tokens=new_tokens, greedy=greedy, chain=chain, seed=seed)
    return CommandResult(
        vars(generated), generated.text if generated.text is not None else " ".join(map(str, generated.tokens))
    )
