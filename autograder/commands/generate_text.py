"""Generate text with a published checkpoint and the course's models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from autograder.errors import CourseError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tfcourse.t5 import T5

Chain = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class GeneratedText:
    """Generated text and its tokens."""

    model: str  # the kind of model
    tokens: list[int]  # with the prompt for a decoder; for T5 the answer without its start token
    text: str | None  # the decoded tokens, if the prompt was text


def make_sampler(
    *, temperature: float | None, top_k: int | None, top_p: float | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the chapter 07 samplers for these options, in the usual order."""
    options = (("temperature", "t", temperature), ("top_k", "k", top_k), ("top_p", "p", top_p))
    return [(name, {parameter: value}) for name, parameter, value in options if value is not None]


def generate_text(
    folder: Path, prompt: str | None, *, ids: str | None, new_tokens: int, greedy: bool, chain: Chain, seed: int
) -> GeneratedText:
    """Continue a prompt, or answer it with T5.

    Args:
        folder: the checkpoint.
        prompt: text; it needs `tokenizer.json` in the folder.
        ids: token ids instead of a text, separated by commas or spaces.
        new_tokens: largest number of tokens to write.
        greedy: draw nothing.
        chain: samplers with their parameters.
        seed: of the draws.

    Raises:
        CourseError: if the checkpoint cannot be loaded or writes no text, or prompt or parameters do not fit.
    """
    if (prompt is None) == (ids is None):
        raise CourseError("Pass either a text or --ids", do='For example: "Some text", or --ids 3,1,4.')
    import torch

    from tfcourse.gpt import generate
    from tfcourse.pretrained import CheckpointError, load_pretrained, read_config

    try:
        config = read_config(folder)
    except CheckpointError as error:
        raise CourseError(str(error)) from None
    kind = config.get("model_type")
    if kind in ("bert", "vit"):
        raise CourseError(
            f"checkpoints of {kind} cannot generate text", where=folder, do="Use a GPT-2, a Llama or a T5."
        )
    tokenizer = _load_tokenizer(folder) if prompt is not None else None
    tokens = tokenizer.encode(prompt).ids if tokenizer is not None else _parse_ids(ids or "")
    if not tokens:
        raise CourseError("the prompt has no tokens", do="Pass at least one word, or one token id.")
    if not all(0 <= token < int(config.get("vocab_size", 0)) for token in tokens):
        raise CourseError(
            f"token ids must be between 0 and {int(config.get('vocab_size', 0)) - 1}, got {tokens}", where=folder
        )
    try:
        model = load_pretrained(folder)
        random = torch.Generator().manual_seed(seed)
        source = torch.tensor([tokens])
        ends = _end_tokens(folder, config)
        if kind == "t5":
            written = generate_answer(
                cast("T5", model), source, new_tokens=new_tokens, chain=chain, greedy=greedy, ends=ends, generator=random,
                start=int(config.get("decoder_start_token_id") or 0),
            )  # fmt: skip
        else:
            eos = ends[0] if len(ends) == 1 else None
            written = generate(
                model, source, max_new_tokens=new_tokens, chain=chain, greedy=greedy, eos=eos, generator=random
            )
    except ValueError as error:  # from the checkpoint, a sampler, or a text that is too long
        raise CourseError(str(error), do="Correct this, or use fewer --new-tokens.") from None
    numbers = written[0].tolist()
    begin = 0 if kind == "t5" else len(tokens)
    cut = next((index for index in range(begin, len(numbers)) if numbers[index] in ends), len(numbers))
    numbers = numbers[:cut]
    return GeneratedText(str(kind), numbers, None if tokenizer is None else tokenizer.decode(numbers))


def generate_answer(
    model: T5,
    source: Tensor,
    *,
    start: int,
    new_tokens: int,
    chain: Chain,
    greedy: bool,
    ends: Sequence[int],
    generator: torch.Generator,
) -> Tensor:
    """Write the target of one source (1, S) token by token; return it without its start token (1, T)."""
    import torch

    from tfcourse.sampling import sampler_chain

    with torch.no_grad():
        memory = model.encode(source)
        target = torch.full((1, 1), start)
        for _ in range(new_tokens):
            logits = sampler_chain(model.decode(target, memory)[:, -1], target, chain, generator)
            p = torch.softmax(logits, dim=-1)
            token = p.argmax(dim=-1, keepdim=True) if greedy else torch.multinomial(p, 1, generator=generator)
            target = torch.cat([target, token], dim=1)
            if int(token) in ends:
                break
    return target[:, 1:]


def _load_tokenizer(folder: Path) -> Any:
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise CourseError(
            "the folder has no tokenizer.json, so a text prompt cannot be tokenized",
            where=folder,
            do="Download that file, too, or pass token ids: --ids 3,1,4.",
        )
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no more specific exception
        raise CourseError(
            f"the tokenizer cannot be loaded ({error})", where=file, do="Download it again, or give --ids."
        ) from None


def _parse_ids(ids: str) -> list[int]:
    try:
        return [int(number) for number in ids.replace(",", " ").split()]
    except ValueError:
        raise CourseError(f"--ids {ids!r} are not integers", do="Use this form: --ids 3,1,4.") from None


def _end_tokens(folder: Path, config: Mapping[str, Any]) -> list[int]:
    """Return the tokens that end a text.

    Llama's chat models have several, in a separate file.
    """
    file = folder / "generation_config.json"
    more: Any = {}
    if file.is_file():
        try:
            more = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise CourseError("the file is not JSON", where=file, do="Download it again, or delete it.") from None
    ends = more.get("eos_token_id", config.get("eos_token_id")) if isinstance(more, dict) else None
    return [] if ends is None else ends if isinstance(ends, list) else [ends]
