"""BERT and its family: which places are hidden, the models that look both ways, their heads, losses and training.

A boolean mask is True where a token is real. A label of -100 marks a place that does not count.

Shapes: B batch, T length, V vocabulary, D model width, E width of embeddings where it differs, H heads, F feed-forward
width, L layers, N the longest text; n places that are asked about; `...` stands for any number of leading dimensions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tfcourse.data import PAD
from tfcourse.layers import EncoderLayer, gelu

__all__ = [  # noqa: RUF022 - in the order of the lesson
    "mask_tokens",
    "BertEmbeddings",
    "roberta_positions",
    "Bert",
    "MaskedLanguageHead",
    "masked_language_loss",
    "BertParameters",
    "bert_parameters",
    "SpanHead",
    "best_span",
    "replaced_token_detection",
    "Albert",
    "distillation_loss",
    "linear_warmup_rate",
    "finetune",
]

IGNORED = -100
"""The label of a place that does not count."""


def mask_tokens(
    tokens: Tensor,
    special: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    probability: float = 0.15,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Choose the places of a text that BERT is asked for, and hide what stands there.

    Of all places that are not special a share `probability` is chosen. At 80 % of these the model sees the mask token, at 10 % a token at
    random, and at 10 % the right one. Four draws are made, in this order, each of the shape of `tokens`: `torch.bernoulli` of a
    float32 tensor of `probability` (0 at special places) says which places are chosen; `torch.bernoulli` of one of 0.8 which of these
    are masked; `torch.bernoulli` of one of 0.5 which of the rest become random; `torch.randint(vocab_size, shape)` the random tokens.

    Args:
        tokens: The text, integers (B, T); it is left as it was.
        special: Boolean (B, T), True where a token may not be chosen: padding, and the marks of beginning and end.
        mask_id: The mask token.
        vocab_size: V; random tokens are drawn from all of them.
        probability: Share of places to choose.
        generator: Source of the draws; None means PyTorch's own.

    Returns:
        What the model sees, integers (B, T), and the labels, integers (B, T): the right token at chosen places, -100 elsewhere. Both
        have the dtype of `tokens`.

    Source:
        Devlin et al. 2019, BERT, section 3.1.
    """
    device = tokens.device
    share = torch.full(tokens.shape, probability, device=device).masked_fill(special, 0.0)
    chosen = torch.bernoulli(share, generator=generator).bool()
    masked = torch.bernoulli(torch.full(tokens.shape, 0.8, device=device), generator=generator).bool() & chosen
    replaced = torch.bernoulli(torch.full(tokens.shape, 0.5, device=device), generator=generator).bool()
    replaced = replaced & chosen & ~masked
    random = torch.randint(vocab_size, tokens.shape, generator=generator, device=device, dtype=tokens.dtype)
    seen = torch.where(replaced, random, tokens).masked_fill(masked, mask_id)
    return seen, tokens.masked_fill(~chosen, IGNORED)


class BertEmbeddings(nn.Module):
    """The sum of what a token is, where it stands and which text it belongs to, normalised.

    Its parts are `token_embedding`, `position_embedding` and `segment_embedding`, three `nn.Embedding` of width D whose
    weights begin as normal numbers of standard deviation 0.02, and `norm`, an `nn.LayerNorm(d_model, eps=1e-12)`.
    While training, dropout falls behind the norm. Nothing is multiplied by the root of the width.

    Args:
        vocab_size: V.
        d_model: Width D.
        max_length: N, the longest text.
        segments: How many texts can be told apart.
        dropout: Probability of dropout.

    Source:
        Devlin et al. 2019, figure 2.
    """

    def __init__(
        self, vocab_size: int, d_model: int, max_length: int, *, segments: int = 2, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_length, d_model)
        self.segment_embedding = nn.Embedding(segments, d_model)
        for table in (self.token_embedding, self.position_embedding, self.segment_embedding):
            nn.init.normal_(table.weight, std=0.02)
        self.norm = nn.LayerNorm(d_model, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """Embed a batch of texts.

        Args:
            tokens: Integers (B, T).
            segments: Which text each token belongs to, integers (B, T); None means that all belong to the first, 0.

        Returns:
            Vectors, (B, T, D).

        Raises:
            ValueError: If a text is longer than N.
        """
        length, longest = tokens.shape[1], self.position_embedding.num_embeddings
        if length > longest:
            raise ValueError(f"a text has at most {longest} tokens, got {length}")
        places = torch.arange(length, device=tokens.device)
        segments = torch.zeros_like(tokens) if segments is None else segments
        x = self.token_embedding(tokens) + self.position_embedding(places) + self.segment_embedding(segments)
        output: Tensor = self.dropout(self.norm(x))  # (B, T, D)
        return output


def roberta_positions(tokens: Tensor, pad: int) -> Tensor:
    """The places by which RoBERTa looks up its positions: real tokens count from `pad` + 1, and padding has `pad`.

    Args:
        tokens: Integers (B, T).
        pad: The padding token.

    Returns:
        Places, integers (B, T): the n-th real token of a row, counted from 1, has `pad` + n.

    Source:
        Liu et al. 2019, RoBERTa, the published code.
    """
    real = tokens != pad
    return torch.where(real, real.cumsum(dim=1) + pad, pad)


class Bert(nn.Module):
    """The encoder of the Transformer over BERT's embeddings: each token looks at all of its text, both ways.

    Its parts are `embeddings` (a `BertEmbeddings`), `layers` (an `nn.ModuleList` of `EncoderLayer`, post-norm, with the exact
    GELU and norms of eps 1e-12) and `pooler`, an `nn.Linear(d_model, d_model)`.

    Args:
        vocab_size: V.
        d_model: Width D.
        n_heads: Heads H; divides D.
        n_layers: Layers L.
        d_ff: Feed-forward width F.
        max_length: N, the longest text.
        segments: How many texts can be told apart.
        dropout: Probability of dropout, behind the embeddings and in every layer.

    Source:
        Devlin et al. 2019, section 3.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        max_length: int,
        segments: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(vocab_size, d_model, max_length, segments=segments, dropout=dropout)
        self.layers = nn.ModuleList(_bert_layer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers))
        self.pooler = nn.Linear(d_model, d_model)

    def forward(
        self, tokens: Tensor, segments: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Read a batch of texts.

        Args:
            tokens: Integers (B, T), each text begun by its classification token.
            segments: As in `BertEmbeddings`.
            mask: Boolean (B, T), True at real tokens: nobody looks at the others. None means that all are real.

        Returns:
            Hidden states, (B, T, D), and the pooled state of each text, (B, D): the hyperbolic tangent of `pooler` of the
            first token's hidden state.

        Raises:
            ValueError: If a text is longer than N.
        """
        x = self.embeddings(tokens, segments)  # (B, T, D)
        keys = None if mask is None else mask[:, None, :]  # (B, 1, T)
        for layer in self.layers:
            x = layer(x, keys)
        return x, torch.tanh(self.pooler(x[:, 0]))


class MaskedLanguageHead(nn.Module):
    """From hidden states to logits of the tokens that were hidden.

    A map D -> D, `transform`, an exact GELU, and a norm, `norm`, an `nn.LayerNorm(d_model, eps=1e-12)`; then the product with
    the embedding matrix of the model itself, which is handed in, and a `bias` (V,) of its own, zero at first.

    Args:
        d_model: Width D.
        vocabulary: V.

    Source:
        Devlin et al. 2019, the published code.
    """

    def __init__(self, d_model: int, vocabulary: int) -> None:
        super().__init__()
        self.transform = nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """Give a logit for each token at each place.

        Args:
            hidden: Hidden states, (..., D).
            embedding: The model's embedding matrix, (V, D); gradients flow into it.

        Returns:
            Logits, (..., V).
        """
        logits: Tensor = self.norm(gelu(self.transform(hidden))) @ embedding.mT + self.bias  # (..., V)
        return logits


def masked_language_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean surprise at the hidden tokens, in nats; all other places do not count.

    Args:
        logits: (..., V).
        labels: The right tokens, integers (...), -100 where a place does not count.

    Returns:
        A number, (): the mean of -log p over the places that count, of all rows together. If there is none, it is 0, and so are the
        gradients: `backward` works as ever.

    Source:
        Devlin et al. 2019, section 3.1.
    """
    counts = labels != IGNORED
    log_p = torch.log_softmax(logits, dim=-1)
    surprise = -log_p.gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)  # (...)
    return surprise.masked_fill(~counts, 0).sum() / counts.sum().clamp(min=1)


class BertParameters(NamedTuple):
    """How many parameters the parts of a BERT have."""

    embeddings: int
    """The three tables and their norm."""
    layers: int
    """All layers together."""
    pooler: int
    """The pooler, or 0."""
    total: int
    """All of it; heads are not counted."""


def bert_parameters(
    vocab_size: int,
    d_model: int,
    n_layers: int,
    d_ff: int,
    *,
    max_length: int = 512,
    segments: int = 2,
    pooler: bool = True,
) -> BertParameters:
    """Count the parameters of a BERT, biases and norms among them. The number of heads does not matter.

    Args:
        vocab_size: V.
        d_model: Width D.
        n_layers: Layers L.
        d_ff: Feed-forward width F.
        max_length: N, the longest text.
        segments: How many texts can be told apart.
        pooler: Whether there is one.

    Returns:
        The counts.

    Source:
        Devlin et al. 2019, section 3, where BERT-Base has 110 million with its heads.
    """
    norm = 2 * d_model
    embeddings = (vocab_size + max_length + segments) * d_model + norm
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    layers = n_layers * (attention + feed_forward + 2 * norm)
    pooling = d_model * d_model + d_model if pooler else 0
    return BertParameters(embeddings, layers, pooling, embeddings + layers + pooling)


class SpanHead(nn.Module):
    """Two scores for each token: that an answer begins there, and that it ends there.

    Args:
        d_model: Width D. The one layer is `output`, an `nn.Linear(d_model, 2)`.

    Source:
        Devlin et al. 2019, section 4.2.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.output = nn.Linear(d_model, 2)

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Score the tokens.

        Args:
            hidden: Hidden states, (B, T, D).
            mask: Boolean (B, T), True where an answer may lie; elsewhere both scores are -inf. None allows all.

        Returns:
            Scores of the beginning and of the end, (B, T) each.
        """
        scores = self.output(hidden)  # (B, T, 2)
        if mask is not None:
            scores = scores.masked_fill(~mask[..., None], -torch.inf)
        return scores[..., 0], scores[..., 1]


def best_span(start: Tensor, end: Tensor, *, max_length: int) -> tuple[Tensor, Tensor]:
    """Find the best answer: the first and the last token with the largest sum of their scores.

    Args:
        start: Score of each token as the first one, (B, T).
        end: Score of each token as the last one, (B, T).
        max_length: Most tokens that an answer may have, at least 1.

    Returns:
        The first and the last token of each row, integers (B,): of all i ≤ j < i + `max_length` those with the largest
        start[i] + end[j]; of equals the earliest i, then the earliest j.

    Raises:
        ValueError: If `max_length` is less than 1.

    Source:
        Devlin et al. 2019, section 4.2.
    """
    if max_length < 1:
        raise ValueError(f"an answer has at least one token, got max_length={max_length}")
    T = start.shape[-1]
    places = torch.arange(T, device=start.device)
    length = places - places[:, None] + 1  # (T, T): of the span from the row to the column
    sums = start[..., :, None] + end[..., None, :]  # (B, T, T)
    best = sums.masked_fill((length < 1) | (length > max_length), -torch.inf).flatten(-2).argmax(dim=-1)
    return best // T, best % T


def replaced_token_detection(
    tokens: Tensor, chosen: Tensor, generator_logits: Tensor, *, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Put a generator's guesses in the place of some tokens, and say which of them are wrong: ELECTRA's task.

    At the n chosen places tokens are drawn by one call of `torch.multinomial` on the probabilities (n, V). No gradient
    reaches the generator.

    Args:
        tokens: The text, integers (B, T); it is left as it was.
        chosen: Boolean (B, T), True where a guess takes the token's place.
        generator_logits: The generator's logits, (B, T, V).
        generator: Source of the draws; None means PyTorch's own.

    Returns:
        The text with the guesses in it, integers (B, T) in the dtype of `tokens`, and labels in the dtype of the logits, (B, T): 1 where
        a token differs from the original, 0 elsewhere. A lucky guess is the original.

    Source:
        Clark et al. 2020, ELECTRA, section 2.
    """
    corrupted = tokens.clone()
    probabilities = torch.softmax(generator_logits[chosen], dim=-1)  # (n, V)
    guesses = torch.multinomial(probabilities, 1, generator=generator).flatten()
    corrupted[chosen] = guesses.to(tokens.dtype)
    return corrupted, (corrupted != tokens).to(generator_logits.dtype)


class Albert(nn.Module):
    """A BERT that shares one layer among all depths, and whose embeddings are narrow.

    Its parts are `embeddings` (a `BertEmbeddings` of width E), `project`, an `nn.Linear(E, D)`, one `layer` (an
    `EncoderLayer` as in `Bert`), which is applied L times, and `pooler`, an `nn.Linear(D, D)`.

    Args:
        vocab_size: V.
        d_embedding: Width E of the embeddings.
        d_model: Width D of the layer.
        n_heads: Heads H; divides D.
        n_layers: How often the layer is applied, L.
        d_ff: Feed-forward width F.
        max_length: N, the longest text.
        segments: How many texts can be told apart.
        dropout: Probability of dropout.

    Source:
        Lan et al. 2020, ALBERT, section 3.1.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        d_embedding: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        max_length: int,
        segments: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.n_layers = n_layers
        self.embeddings = BertEmbeddings(vocab_size, d_embedding, max_length, segments=segments, dropout=dropout)
        self.project = nn.Linear(d_embedding, d_model)
        self.layer = _bert_layer(d_model, n_heads, d_ff, dropout)
        self.pooler = nn.Linear(d_model, d_model)

    def forward(
        self, tokens: Tensor, segments: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Read a batch of texts; arguments, results and errors are those of `Bert`."""
        x = self.project(self.embeddings(tokens, segments))  # (B, T, D)
        keys = None if mask is None else mask[:, None, :]  # (B, 1, T)
        for _ in range(self.n_layers):
            x = self.layer(x, keys)
        return x, torch.tanh(self.pooler(x[:, 0]))


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float, mask: Tensor | None = None) -> Tensor:
    """How far a student's distributions are from its teacher's, both softened by a temperature.

    The Kullback-Leibler divergence of the student's softmax(student / τ) from the teacher's softmax(teacher / τ), times τ²,
    so that the size of the gradients does not depend on τ.

    Args:
        student: Logits, (..., V).
        teacher: Logits, (..., V); no gradient flows into them.
        temperature: τ, above 0.
        mask: Boolean (...), True at the places that count; None means all.

    Returns:
        A number, (): the mean over the places that count; 0 if there is none.

    Raises:
        ValueError: If `temperature` is not above 0.

    Source:
        Hinton et al. 2015, Distilling the Knowledge in a Neural Network, section 2; Sanh et al. 2019, DistilBERT.
    """
    if not temperature > 0:
        raise ValueError(f"a temperature is above 0, got {temperature}")
    log_q = torch.log_softmax(student / temperature, dim=-1)
    log_p = torch.log_softmax(teacher.detach() / temperature, dim=-1)
    divergence = (log_p.exp() * (log_p - log_q)).sum(dim=-1)  # (...)
    counts = torch.ones_like(divergence, dtype=torch.bool) if mask is None else mask
    return temperature**2 * divergence.masked_fill(~counts, 0).sum() / counts.sum().clamp(min=1)


def linear_warmup_rate(step: int, *, peak: float, warmup: int, total: int) -> float:
    """A learning rate that rises from 0 to its peak in a straight line, and falls back to 0 in another one.

    Args:
        step: Number of the step, counted from 0.
        peak: The largest rate, reached at step `warmup` if that comes before `total`.
        warmup: How many steps it takes to rise.
        total: The step at which the rate is back at 0; it stays there.

    Returns:
        The rate.

    Source:
        Devlin et al. 2019, appendix A.2.
    """
    if step < warmup:
        return peak * step / warmup
    return peak * max(0.0, (total - step) / max(1, total - warmup))


def finetune(
    model: nn.Module,
    head: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[tuple[Tensor, Tensor]],
    *,
    rate: float,
    freeze: bool = False,
) -> list[float]:
    """Train a pre-trained model and a new head to classify texts by their pooled state.

    One step for each batch, with both in training mode: the rate of the step, the logits `head(pooled)`, their cross-entropy, gradients
    that begin at zero, and a step of the optimiser. The rate of step n of N, counted from 1, is that of `linear_warmup_rate` with the
    peak `rate`, a warm-up of N // 10 steps (at least one) and the end at N + 1. With `freeze` no gradient reaches the model, which
    is then in evaluation mode.

    Args:
        model: Gives hidden states and pooled states, called as `model(tokens, mask=tokens != PAD)`.
        head: Gives logits (B, C) of C classes from pooled states (B, D).
        optimizer: Updates the weights that are to be trained; the rate of all its groups is set.
        batches: Tokens, integers (B, T), and classes, integers (B,).
        rate: The peak of the learning rate.
        freeze: Leave the model as it is, and train the head alone.

    Returns:
        The loss of each batch, before its step.

    Source:
        Devlin et al. 2019, section 4 and appendix A.3.
    """
    model.train(not freeze)
    head.train()
    losses = []
    warmup = max(1, len(batches) // 10)
    for step, (tokens, classes) in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = linear_warmup_rate(step, peak=rate, warmup=warmup, total=len(batches) + 1)
        with torch.set_grad_enabled(not freeze):
            _, pooled = model(tokens, mask=tokens != PAD)  # (B, D)
        loss = nn.functional.cross_entropy(head(pooled), classes)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses


def _bert_layer(d_model: int, n_heads: int, d_ff: int, dropout: float) -> EncoderLayer:
    """A layer of chapter 05 with BERT's eps."""
    layer = EncoderLayer(d_model, n_heads, d_ff, dropout=dropout, activation="gelu")
    layer.self_attention_norm.eps = layer.feed_forward_norm.eps = 1e-12
    return layer
