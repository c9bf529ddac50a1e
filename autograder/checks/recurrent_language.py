"""Checks of chapter 01: blocks of a corpus, the likelihood, and sampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.aspects import Maker
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.recurrent import CHAPTER, padding_behind
from autograder.checks.sections import HEADINGS
from tfcourse import recurrent

# --------------------------------------------------------------------------------------------- a corpus into blocks


def corpus_with_rest(draw: Draw) -> Case:
    """A corpus that leaves tokens over."""
    return Case({"tokens": draw.integers(0, 50, 18 + int(draw.integers(0, 3))), "block_length": 5})


def corpus_that_fits(draw: Draw) -> Case:
    """A corpus of whole blocks, and one token more for the last target."""
    length = 3 + int(draw.integers(0, 3))
    return Case({"tokens": draw.integers(0, 50, 4 * length + 1), "block_length": length})


def corpus_of_whole_blocks(draw: Draw) -> Case:
    """As many tokens as whole blocks have: the last of them has no target."""
    length = 3 + int(draw.integers(0, 3))
    return Case({"tokens": draw.integers(0, 50, 4 * length), "block_length": length})


def long_corpus(draw: Draw, factor: int) -> Case:
    """More tokens."""
    return Case({"tokens": draw.integers(0, 50, 20 * factor + 1), "block_length": 4})


def short_corpus(draw: Draw) -> Case:
    """One block, and nothing behind it that could be its last target."""
    return Case({"tokens": draw.integers(0, 50, 6), "block_length": 6})


def _cut(tokens: Tensor, length: int, first: int) -> Tensor:
    """The blocks that begin at `first`, as many as have targets."""
    if len(tokens) <= length:
        raise ValueError(f"{len(tokens)} tokens, blocks of {length}")
    blocks = (len(tokens) - 1) // length
    return tokens[first : first + blocks * length].reshape(blocks, length)


Pair: TypeAlias = tuple[Tensor, Tensor]


@misconception("targets not shifted", read="language-model-blocks")
def blocks_not_shifted(tokens: Tensor, block_length: int) -> Pair:
    """The targets are the inputs. To say what it has just been shown is easily learned; the target is the token that comes next."""
    inputs = _cut(tokens, block_length, 0)
    return inputs, inputs.clone()


@misconception("targets shifted the wrong way", read="language-model-blocks")
def blocks_shifted_back(tokens: Tensor, block_length: int) -> Pair:
    """Inputs and targets have changed places: the model is to say which token came before. The targets are one token further on."""
    return _cut(tokens, block_length, 1), _cut(tokens, block_length, 0)


@misconception("shifted within the block", read="language-model-blocks")
def blocks_rolled(tokens: Tensor, block_length: int) -> Pair:
    """The shift runs round within each block, so the last target is the block's own first token. It is that of the next block."""
    inputs = _cut(tokens, block_length, 0)
    return inputs, inputs.roll(-1, dims=1)


@misconception("a block loses its last place", read="language-model-blocks")
def blocks_shortened(tokens: Tensor, block_length: int) -> Pair:
    """The corpus is cut first and each block shifted afterwards, so inputs and targets are one token shorter than a block, and the step
    from block to block is never learned.
    """
    blocks = _cut(tokens, block_length, 0)
    return blocks[:, :-1], blocks[:, 1:]


@misconception("blocks overlap", read="language-model-blocks")
def blocks_overlap(tokens: Tensor, block_length: int) -> Pair:
    """There is a block for every place of the corpus, so that nearly every token is shown again and again. The blocks follow each other."""
    _cut(tokens, block_length, 0)
    windows = tokens.unfold(0, block_length, 1)
    return windows[:-1], windows[1:]


@misconception("token lost between blocks", read="language-model-blocks")
def blocks_with_gaps(tokens: Tensor, block_length: int) -> Pair:
    """The corpus is cut into pieces of one token more than a block, so that each piece has its own last target. Then that token is never
    an input; the last target of a block is the first input of the next.
    """
    _cut(tokens, block_length, 0)
    pieces = len(tokens) // (block_length + 1)
    cut = tokens[: pieces * (block_length + 1)].reshape(pieces, block_length + 1)
    return cut[:, :-1], cut[:, 1:]


@misconception("last block left out", read="language-model-blocks")
def blocks_one_too_few(tokens: Tensor, block_length: int) -> Pair:
    """The last whole block is missing, for fear that its last target is not there. With M tokens there are (M - 1) // N blocks."""
    inputs, targets = _cut(tokens, block_length, 0), _cut(tokens, block_length, 1)
    return inputs[: (len(tokens) - 2) // block_length], targets[: (len(tokens) - 2) // block_length]


@misconception("rest filled up", read="language-model-blocks")
def blocks_filled_up(tokens: Tensor, block_length: int) -> Pair:
    """The rest is filled up with token 0 to one more block, and the model is taught that zeros follow. Drop what fills no block."""
    inputs, targets = _cut(tokens, block_length, 0), _cut(tokens, block_length, 1)
    rest = tokens[len(inputs) * block_length :]
    if len(rest) < 2:
        return inputs, targets
    padded = torch.cat([rest, rest.new_zeros(block_length + 1 - len(rest))])
    return torch.cat([inputs, padded[None, :-1]]), torch.cat([targets, padded[None, 1:]])


@misconception("laid out in columns", read="language-model-blocks")
def blocks_in_columns(tokens: Tensor, block_length: int) -> Pair:
    """The tokens run down the columns: neighbours in a row are far apart in the corpus. A block is a run of the corpus."""
    inputs, targets = _cut(tokens, block_length, 0), _cut(tokens, block_length, 1)
    return inputs.reshape(block_length, -1).T, targets.reshape(block_length, -1).T


@misconception("one block after another", read="language-model-blocks")
def blocks_one_by_one(tokens: Tensor, block_length: int) -> Pair:
    """The numbers are right, but a Python loop cuts block after block. The corpus is one run of numbers, so one reshape cuts all."""
    count = len(_cut(tokens, block_length, 0))
    starts = [block * block_length for block in range(count)]
    return (
        torch.stack([tokens[start : start + block_length] for start in starts]),
        torch.stack([tokens[start + 1 : start + 1 + block_length] for start in starts]),
    )


@misconception("short corpus accepted", read="what-goes-wrong-01")
def blocks_of_nothing(tokens: Tensor, block_length: int) -> Pair:
    """A corpus that is too short for one block gives no blocks, without a word, and training on them does nothing. Raise a ValueError
    that names both sizes.
    """
    blocks = (len(tokens) - 1) // block_length
    used = blocks * block_length
    return tokens[:used].reshape(blocks, block_length), tokens[1 : used + 1].reshape(blocks, block_length)


LANGUAGE_MODEL_BLOCKS = Exercise(
    reference=recurrent.language_model_blocks,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, corpus_with_rest, corpus_that_fits),
        look.part(0.5, corpus_with_rest, output="output[0]", name="input blocks", title="The inputs are right."),
        look.part(
            1, corpus_with_rest, output="output[1]", name="targets", title="The targets are the tokens that follow."
        ),
        look.values(
            0.5, corpus_that_fits, name="whole blocks", title="A corpus of whole blocks and one token is used in full."
        ),
        look.values(
            0.5, corpus_of_whole_blocks, name="no target", title="A block whose last target is missing is dropped."
        ),
        look.vectorised(0.5, long_corpus, axis="blocks"),
        look.refuses(0.5, corpus_with_rest, short_corpus, title="A corpus too short for one block is a ValueError."),
    ),
    misconceptions=(
        blocks_not_shifted,
        blocks_shifted_back,
        blocks_rolled,
        blocks_shortened,
        blocks_overlap,
        blocks_with_gaps,
        blocks_one_too_few,
        blocks_filled_up,
        blocks_in_columns,
        blocks_one_by_one,
        blocks_of_nothing,
    ),
)


# ------------------------------------------------------------------------------------------------------- likelihood


def sentences(draw: Draw) -> Case:
    """Logits and what came."""
    b, t, v = draw.sizes(3, low=3)
    return Case({"logits": draw.normal(b, t, v, scale=2.0), "targets": draw.integers(0, v, b, t)})


def padded_sentences(draw: Draw) -> Case:
    """Sentences of different lengths."""
    case = sentences(draw)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["targets"].shape))


def sure_sentences(draw: Draw) -> Case:
    """Logits so large that the probability of most tokens is no number of single precision."""
    case = sentences(draw)
    return case.with_arguments(logits=case.arguments["logits"] * 100)


def many_sentences(draw: Draw, factor: int) -> Case:
    """More and longer sentences."""
    b, t, v = 2 * factor, 4 * factor, 5
    mask = torch.ones(b, t, dtype=torch.bool)
    return Case({"logits": draw.normal(b, t, v), "targets": draw.integers(0, v, b, t), "mask": mask})


def unfit_targets(draw: Draw) -> Case:
    """A target fewer than there are logits."""
    return Case({"logits": draw.normal(2, 4, 5), "targets": draw.integers(0, 5, 2, 3)})


def _chosen(logits: Tensor, targets: Tensor, dim: int = -1) -> Tensor:
    if logits.shape[:-1] != targets.shape:
        raise ValueError(f"{tuple(logits.shape)} and {tuple(targets.shape)}")
    return torch.log_softmax(logits, dim).gather(-1, targets[..., None])[..., 0]


def _kept(terms: Tensor, mask: Tensor | None) -> Tensor:
    return terms if mask is None else terms.masked_fill(~mask, 0.0)


@misconception("averaged", read="likelihood")
def likelihood_averaged(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The terms are averaged over the tokens. The logarithm of a product is a sum: a longer sentence is a more surprising one."""
    terms = _kept(_chosen(logits, targets), mask)
    return -terms.sum(-1) / (terms.shape[-1] if mask is None else mask.sum(-1))


@misconception("summed over the batch", read="likelihood")
def likelihood_of_batch(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """All sentences are summed up to one number. Each has a likelihood of its own: (B,)."""
    return -_kept(_chosen(logits, targets), mask).sum()


@misconception("sign forgotten", read="likelihood")
def likelihood_unsigned(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The sign is missing. A probability is at most one, so its logarithm is negative, and minus the logarithm is not."""
    return _kept(_chosen(logits, targets), mask).sum(-1)


@misconception("logits for logarithms", read="likelihood")
def likelihood_unnormalised(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The logits are summed as they are. They are no logarithms of probabilities until they are normalised over the vocabulary."""
    _chosen(logits, targets)
    return -_kept(logits.gather(-1, targets[..., None])[..., 0], mask).sum(-1)


@misconception("normalised over time", read="likelihood")
def likelihood_over_time(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The logits are normalised over the places of the sentence. At each place it is the tokens of the vocabulary that compete: the
    last axis.
    """
    return -_kept(_chosen(logits, targets, dim=1), mask).sum(-1)


@misconception("probabilities for logarithms", read="likelihood")
def likelihood_of_probabilities(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Probabilities are added up where their logarithms should be. The probability of a sentence is the product of those of its tokens."""
    return -_kept(_chosen(logits, targets).exp(), mask).sum(-1)


@misconception("logarithm of zero", read="likelihood")
def likelihood_underflows(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax is computed first and its logarithm afterwards. A probability below 1e-45 is zero in single precision, and its logarithm
    infinite; log_softmax never leaves the logarithms.
    """
    _chosen(logits, targets)
    chosen = torch.softmax(logits, -1).gather(-1, targets[..., None])[..., 0].log()
    return -_kept(chosen, mask).sum(-1)


@misconception("measured in bits", read="likelihood")
def likelihood_in_bits(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The logarithm has base 2, so the result comes out in bits. Nats are asked for: the natural logarithm."""
    return -_kept(_chosen(logits, targets), mask).sum(-1) / math.log(2)


@misconception("compared with the next target", read="likelihood")
def likelihood_shifted_again(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The logits are compared with the target after theirs. The targets are shifted already: those at a place are what the logits at
    this place predict.
    """
    _chosen(logits, targets)
    return -_kept(_chosen(logits[:, :-1], targets[:, 1:]), None if mask is None else mask[:, 1:]).sum(-1)


@misconception("padding counted", read="likelihood")
def likelihood_of_padding(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is not used, so the model is judged by how well it predicts padding."""
    return -_chosen(logits, targets).sum(-1)


@misconception("mask inverted", read="likelihood")
def likelihood_mask_inverted(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is read the wrong way round: the padding counts and the text does not. True means a real token."""
    return -_kept(_chosen(logits, targets), None if mask is None else ~mask).sum(-1)


@misconception("logits of the padding erased", read="likelihood")
def likelihood_erased(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The logits of padded places are set to zero before the softmax. That makes all tokens equally likely there, and each such place
    still adds the logarithm of the vocabulary's size. It is the term of the sum that must be zero.
    """
    return -_chosen(logits if mask is None else logits * mask[..., None], targets).sum(-1)


@misconception("one sentence after another", read="likelihood")
def likelihood_one_by_one(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The numbers are right, but a Python loop goes from sentence to sentence. gather picks one number from every row at once."""
    _chosen(logits, targets)
    rows = [
        -_kept(_chosen(logits[b], targets[b]), None if mask is None else mask[b]).sum() for b in range(len(targets))
    ]
    return torch.stack(rows)


@misconception("targets not checked", read="shapes-01")
def likelihood_unchecked(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """Targets that are fewer than the logits are accepted, and some places are not counted without a word. Compare the shapes and raise
    a ValueError that names them.
    """
    chosen = torch.log_softmax(logits, -1).gather(-1, targets[..., None])[..., 0]
    return -_kept(chosen, mask).sum(-1)


SEQUENCE_NEGATIVE_LOG_LIKELIHOOD = Exercise(
    reference=recurrent.sequence_negative_log_likelihood,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, sentences, padded_sentences),
        look.values(1, sentences, title="Minus the logarithm of each sentence's probability is right."),
        look.values(1, padded_sentences, name="mask", title="Padded places add nothing."),
        look.values(
            0.5, sure_sentences, name="large", title="It holds where a probability is too small to be a number."
        ),
        look.gradients(1, padded_sentences, wrt=("logits",)),
        look.batch_independence(0.5, padded_sentences, batched=("logits", "targets", "mask")),
        look.double_precision(0.5, sentences),
        look.device(0.5, padded_sentences),
        look.vectorised(0.5, many_sentences, axis="sentences or places"),
        look.refuses(0.5, sentences, unfit_targets, title="Targets that do not fit the logits are a ValueError."),
    ),
    forbidden=(
        *("cross_entropy", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "CrossEntropyLoss", "NLLLoss"),
        *("nll_loss_forward", "nll_loss2d", "nll_loss2d_forward", "linear_cross_entropy", "Categorical"),
    ),
    rule_case=(sentences, padded_sentences),
    misconceptions=(
        likelihood_averaged,
        likelihood_of_batch,
        likelihood_unsigned,
        likelihood_unnormalised,
        likelihood_over_time,
        likelihood_of_probabilities,
        likelihood_underflows,
        likelihood_in_bits,
        likelihood_shifted_again,
        likelihood_of_padding,
        likelihood_mask_inverted,
        likelihood_erased,
        likelihood_one_by_one,
        likelihood_unchecked,
    ),
)


# --------------------------------------------------------------------------------------------------------- sampling


def _writer(draw: Draw, *, steps: int = 4, generator: bool = True, **options: float) -> Case:
    """A prompt and a table of six places, so that it matters how much of the text a model is shown."""
    prompt = draw.integers(0, 6, 3, 2)
    prompt[:, -1] = draw.permutation(6)[:3]
    model = {
        "kind": "TokenTable",
        "init": {"vocabulary": 6, "places": 6},
        "state": {"logits": draw.normal(6, 6, 6, scale=1.5)},
    }
    props: dict[str, dict[str, Any]] = {"model": model}
    if generator:
        props["generator"] = {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}
    return Case({"prompt": prompt, "steps": steps, **options}, props=props)


def drawn(draw: Draw) -> Case:
    """Drawn at temperature one, from a generator."""
    return _writer(draw)


def drawn_at(temperature: float) -> Maker:
    """Drawn at another temperature, from a generator."""
    return lambda draw: _writer(draw, temperature=temperature)


def drawn_freely(draw: Draw) -> Case:
    """Drawn from PyTorch's own generator."""
    return _writer(draw, generator=False)


def taken(draw: Draw) -> Case:
    """Temperature zero: the most probable token, which is another one for each sequence to begin with."""
    case = _writer(draw, temperature=0.0)
    assert case.props is not None
    model = case.props["model"]
    logits = model["state"]["logits"].clone()
    logits[case.arguments["prompt"].shape[1] - 1, torch.arange(6), draw.permutation(6)] += 20.0
    return replace(case, props={**case.props, "model": {**model, "state": {"logits": logits}}})


def nothing_to_write(draw: Draw) -> Case:
    """No step."""
    return _writer(draw, steps=0)


def below_zero(draw: Draw) -> Case:
    """A negative temperature would make the least likely token the likeliest."""
    return _writer(draw, temperature=-1.0)


class _Pen:
    """The loop in steps; each mistake below changes one of them."""

    def check(self, temperature: float) -> None:
        if temperature < 0:
            raise ValueError(f"temperature={temperature}")

    def ask(self, model: Callable[[Tensor], Tensor], tokens: Tensor, prompt: Tensor) -> Tensor:
        return model(tokens)[:, -1]

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        if temperature == 0:
            return logits.argmax(-1, keepdim=True)
        return torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator)

    def count(self, steps: int) -> int:
        return steps

    def finish(self, tokens: Tensor, prompt: Tensor) -> Tensor:
        return tokens

    def write(
        self,
        model: Callable[[Tensor], Tensor],
        prompt: Tensor,
        steps: int,
        temperature: float,
        generator: torch.Generator | None,
    ) -> Tensor:
        self.check(temperature)
        tokens = prompt
        for _ in range(self.count(steps)):
            token = self.pick(self.ask(model, tokens, prompt), temperature, generator)
            tokens = torch.cat([tokens, token], dim=1)
        return self.finish(tokens, prompt)


def _misspelt(name: str, *, read: str) -> Callable[[type[_Pen]], Any]:
    """Declare a pen with a changed step as a mistake; its docstring is what is told."""

    def declare(kind: type[_Pen]) -> Any:
        pen = kind()

        def wrong(
            model: Callable[[Tensor], Tensor],
            prompt: Tensor,
            steps: int,
            *,
            temperature: float = 1.0,
            generator: torch.Generator | None = None,
        ) -> Tensor:
            return pen.write(model, prompt, steps, temperature, generator)

        wrong.__doc__ = kind.__doc__
        return misconception(name, read=read)(wrong)

    return declare


@_misspelt("last token only", read="sampling")
class LastTokenOnly(_Pen):
    """The model is shown the last token alone, so it writes without knowing what it has written. It is asked with the whole text."""

    def ask(self, model: Callable[[Tensor], Tensor], tokens: Tensor, prompt: Tensor) -> Tensor:
        return model(tokens[:, -1:])[:, -1]


@_misspelt("asked with the prompt alone", read="sampling")
class PromptAlone(_Pen):
    """The model is asked with the prompt at every step and never sees what it wrote: the tokens do not depend on each other."""

    def ask(self, model: Callable[[Tensor], Tensor], tokens: Tensor, prompt: Tensor) -> Tensor:
        return model(prompt)[:, -1]


@_misspelt("beginning dropped", read="sampling")
class BeginningDropped(_Pen):
    """For every token that is appended the first one is dropped, so the model sees no more than the prompt's length. This model can be
    asked with the whole text.
    """

    def ask(self, model: Callable[[Tensor], Tensor], tokens: Tensor, prompt: Tensor) -> Tensor:
        return model(tokens[:, -prompt.shape[1] :])[:, -1]


@_misspelt("prompt overwritten", read="what-goes-wrong-01")
class PromptOverwritten(_Pen):
    """The prompt's own tensor is used as the place to write in: afterwards it holds the end of the text. Work on a copy."""

    def finish(self, tokens: Tensor, prompt: Tensor) -> Tensor:
        text = tokens.clone()
        prompt.copy_(tokens[:, -prompt.shape[1] :])
        return text


@_misspelt("first logits for last", read="sampling")
class FirstLogits(_Pen):
    """The logits at the first place are used. They predict the second token, which is there already; the last ones predict what comes."""

    def ask(self, model: Callable[[Tensor], Tensor], tokens: Tensor, prompt: Tensor) -> Tensor:
        return model(tokens)[:, 0]


@_misspelt("prompt left out", read="sampling")
class PromptLeftOut(_Pen):
    """Only the appended tokens are returned. The prompt is the beginning of the text, and belongs to the result."""

    def finish(self, tokens: Tensor, prompt: Tensor) -> Tensor:
        return tokens[:, prompt.shape[1] :]


@_misspelt("multiplied with the temperature", read="sampling")
class Multiplied(_Pen):
    """The logits are multiplied with the temperature. They are divided by it: a low temperature makes the likely tokens likelier."""

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        return super().pick(logits, 1 / temperature if temperature else temperature, generator)


@_misspelt("temperature not used", read="sampling")
class TemperatureNotUsed(_Pen):
    """The temperature has no effect: it is not used, or it divides the probabilities, which multinomial then brings back to a sum of
    one. It divides the logits.
    """

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        return super().pick(logits, 1.0 if temperature else 0.0, generator)


@_misspelt("always the most probable", read="sampling")
class AlwaysTheMostProbable(_Pen):
    """The most probable token is taken at every temperature. To sample is to draw: a token of probability one half comes half of the
    time.
    """

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        return super().pick(logits, 0.0, generator)


@_misspelt("divided by zero", read="sampling")
class DividedByZero(_Pen):
    """At temperature 0 the logits are divided by zero, and there is nothing left to draw from. In the limit all probability is on one
    token: take it.
    """

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        return torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator)


@_misspelt("drawn at temperature zero", read="sampling")
class DrawnAtZero(_Pen):
    """At temperature 0 a token is drawn as at temperature 1. In the limit all probability is on one token: take it."""

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        return super().pick(logits, temperature or 1.0, generator)


@_misspelt("generator not used", read="sampling")
class GeneratorNotUsed(_Pen):
    """The generator is not handed on, so the text cannot be had a second time: somebody else's random numbers come in between."""

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        return super().pick(logits, temperature, None)


@_misspelt("one draw for the whole batch", read="sampling")
class OneDraw(_Pen):
    """The token that is drawn for the first sequence is appended to all of them. Each has probabilities of its own."""

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        return super().pick(logits[:1], temperature, generator).expand(len(logits), 1)


@_misspelt("logits for weights", read="sampling")
class LogitsForWeights(_Pen):
    """The logits are drawn from as if they were probabilities, those below zero cut off. They become probabilities by the softmax."""

    def pick(self, logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        if temperature == 0:
            return super().pick(logits, temperature, generator)
        return torch.multinomial((logits / temperature).clamp(min=1e-6), 1, generator=generator)


@_misspelt("one token too few", read="sampling")
class OneTooFew(_Pen):
    """One token too few is appended. `steps` counts the new tokens: (B, T + steps)."""

    def count(self, steps: int) -> int:
        return max(steps - 1, 0)


@_misspelt("at least one token", read="sampling")
class AtLeastOne(_Pen):
    """A token is appended even if none was asked for. With no steps the prompt comes back as it is."""

    def count(self, steps: int) -> int:
        return max(steps, 1)


@_misspelt("negative temperature accepted", read="what-goes-wrong-01")
class NegativeAccepted(_Pen):
    """A negative temperature turns the model upside down: the least likely token becomes the likeliest. Raise a ValueError."""

    def check(self, temperature: float) -> None:
        pass


SAMPLE_AUTOREGRESSIVE = Exercise(
    reference=recurrent.sample_autoregressive,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, drawn, nothing_to_write),
        look.values(1, taken, name="zero", title="At temperature 0 the most probable token is taken."),
        look.values(1.5, drawn, drawn, title="At temperature 1 the tokens are those that the generator draws."),
        look.values(
            1, drawn_at(0.4), drawn_at(3.0), name="temperature", title="Other temperatures sharpen and flatten."
        ),
        look.values(0.5, drawn_freely, name="no generator", title="Without a generator PyTorch's own is used."),
        look.values(0.5, nothing_to_write, name="no steps", title="With no steps the prompt comes back.", easy=True),
        look.unmutated(0.5, drawn),
        look.refuses(0.5, drawn, below_zero, title="A negative temperature is a ValueError."),
    ),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        LastTokenOnly,
        PromptAlone,
        BeginningDropped,
        PromptOverwritten,
        FirstLogits,
        PromptLeftOut,
        Multiplied,
        TemperatureNotUsed,
        AlwaysTheMostProbable,
        DividedByZero,
        DrawnAtZero,
        GeneratorNotUsed,
        OneDraw,
        LogitsForWeights,
        OneTooFew,
        AtLeastOne,
        NegativeAccepted,
    ),
)
