"""BERT and related models: masking, encoders, heads, losses and fine-tuning.

Boolean masks are True at real tokens. The label -100 marks a position that is ignored
by the loss.

Shapes: B batch, T length, V vocabulary, D model width, E embedding width where it
differs, H heads, F feed-forward width, L layers. N is the context length, n the number
of selected positions; `...` stands for any number of leading dimensions.
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
    """Select the positions that BERT has to predict, and mask their tokens.

    Each position that is not special is selected with `probability`. At 80 % of the
    selected positions the model gets the mask token, at 10 % a random token, and at 10
    % the original token. Four draws are made, in this order, each with the shape of
    `tokens`:

        1. `torch.bernoulli` of a float32 tensor of `probability` (0 at special
           positions): the selected positions;
        2. `torch.bernoulli` of a float32 tensor of 0.8: which of them are masked;
        3. `torch.bernoulli` of a float32 tensor of 0.5: which of the others become
           random;
        4. `torch.randint(vocab_size, shape)`: the random tokens.

    Args:
        tokens: The sequences, integers (B, T); they are not changed.
        special: Boolean (B, T), True where a token must not be selected: padding, BOS
            and EOS.
        mask_id: The mask token.
        vocab_size: V; random tokens are drawn from the whole vocabulary.
        probability: Probability that a position is selected.
        generator: Source of the draws; None means PyTorch's own.

    Returns:
        The model's input, integers (B, T), and the labels, integers (B, T): the
        original token at selected positions, -100 elsewhere. Both have the dtype of
        `tokens`.

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
    """The normalised sum of token, position and segment embeddings.

    Its parts are `token_embedding`, `position_embedding` and `segment_embedding` (three
    `nn.Embedding` of width D) and `norm`, an `nn.LayerNorm(d_model, eps=1e-12)`. The
    embeddings are initialised from a normal distribution with standard deviation 0.02.
    In training mode, dropout is applied after the norm. The embeddings are not scaled
    by the square root of the width.

    Args:
        vocab_size: V.
        d_model: Width D.
        max_length: Context length N.
        segments: Number of segments.
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
        """Embed a batch of sequences.

        Args:
            tokens: Integers (B, T).
            segments: Segment of each token, integers (B, T); None means that all tokens
                belong to segment 0.

        Returns:
            Vectors, (B, T, D).

        Raises:
            ValueError: If a sequence is longer than N.
        """
        length, longest = tokens.shape[1], self.position_embedding.num_embeddings
        if length > longest:
            raise ValueError(f"a text has at most {longest} tokens, got {length}")
        places = torch.arange(length, device=tokens.device)
        segments = torch.zeros_like(tokens) if segments is None else segments
        x = self.token_embedding(tokens) + self.position_embedding(places) + self.segment_embedding(segments)
        return self.dropout(self.norm(x))  # (B, T, D)


def roberta_positions(tokens: Tensor, pad: int) -> Tensor:
    """Return RoBERTa's position ids: real tokens count from `pad` + 1.

    Args:
        tokens: Integers (B, T).
        pad: The padding token.

    Returns:
        Position ids, integers (B, T): the n-th real token of a row, counted from 1, has
        `pad` + n.

    Source:
        Liu et al. 2019, RoBERTa, the published code.
    """
    real = tokens != pad
    return torch.where(real, real.cumsum(dim=1) + pad, pad)


class Bert(nn.Module):
    """A bidirectional Transformer encoder over BERT's embeddings.

    Its parts are `embeddings` (a `BertEmbeddings`), `layers` (an `nn.ModuleList` of
    `EncoderLayer`, post-norm, with the exact GELU and norms of eps 1e-12) and `pooler`,
    an `nn.Linear(d_model, d_model)`.

    Args:
        vocab_size: V.
        d_model: Width D.
        n_heads: Heads H; divides D.
        n_layers: Layers L.
        d_ff: Feed-forward width F.
        max_length: Context length N.
        segments: Number of segments.
        dropout: Probability of dropout, after the embeddings and in every layer.

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
        """Encode a batch of sequences.

        Args:
            tokens: Integers (B, T); each sequence begins with the classification token.
            segments: As in `BertEmbeddings`.
            mask: Boolean (B, T), True at real tokens; other tokens are not attended to.
                None means that all are real.

        Returns:
            Hidden states, (B, T, D), and the pooled state of each sequence, (B, D):
            tanh(pooler(·)) of the first token's hidden state.

        Raises:
            ValueError: If a sequence is longer than N.
        """
        x = self.embeddings(tokens, segments)  # (B, T, D)
        keys = None if mask is None else mask[:, None, :]  # (B, 1, T)
        for layer in self.layers:
            x = layer(x, keys)
        return x, torch.tanh(self.pooler(x[:, 0]))


class MaskedLanguageHead(nn.Module):
    """The head for masked language modelling: from hidden states to logits.

    It applies `transform` (a linear layer D -> D), the exact GELU, and `norm`, an
    `nn.LayerNorm(d_model, eps=1e-12)`. The result is multiplied by the model's
    embedding matrix, which is an argument of `forward`, and the head's own `bias` (V,),
    initially zero, is added.

    Args:
        d_model: Width D.
        vocab_size: V.

    Source:
        Devlin et al. 2019, the published code.
    """

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """Compute the logits of all tokens at each position.

        Args:
            hidden: Hidden states, (..., D).
            embedding: The model's embedding matrix, (V, D); gradients flow into it.

        Returns:
            Logits, (..., V).
        """
        return self.norm(gelu(self.transform(hidden))) @ embedding.mT + self.bias  # (..., V)


def masked_language_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the mean surprisal of the selected tokens, in nats.

    Args:
        logits: (..., V).
        labels: The correct tokens, integers (...); -100 at positions to ignore.

    Returns:
        A scalar, (): the mean of -log p over all labelled positions of all rows. If no
        position is labelled, the loss and its gradients are 0.

    Source:
        Devlin et al. 2019, section 3.1.
    """
    counts = labels != IGNORED
    log_p = torch.log_softmax(logits, dim=-1)
    surprise = -log_p.gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)  # (...)
    return surprise.masked_fill(~counts, 0).sum() / counts.sum().clamp(min=1)


class BertParameters(NamedTuple):
    """Parameter counts of a BERT model, by part."""

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
    """Count the parameters of a BERT, including biases and norms.

    The number of heads does not matter.

    Args:
        vocab_size: V.
        d_model: Width D.
        n_layers: Layers L.
        d_ff: Feed-forward width F.
        max_length: Context length N.
        segments: Number of segments.
        pooler: Whether the model has a pooler.

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
    """The head for span extraction: a start score and an end score per token.

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
            mask: Boolean (B, T), True where an answer may be; elsewhere both scores are
                -inf. None permits all positions.

        Returns:
            Start scores and end scores, (B, T) each.
        """
        scores = self.output(hidden)  # (B, T, 2)
        if mask is not None:
            scores = scores.masked_fill(~mask[..., None], -torch.inf)
        return scores[..., 0], scores[..., 1]


def best_span(start: Tensor, end: Tensor, *, max_length: int) -> tuple[Tensor, Tensor]:
    """Find the best answer span: the one with the largest sum of start and end score.

    Args:
        start: Start scores, (B, T).
        end: End scores, (B, T).
        max_length: Maximum number of tokens of an answer, at least 1.

    Returns:
        First index i and last index j of each row, integers (B,) each, with i ≤ j < i +
        `max_length` and the largest start[i] + end[j]. Ties go to the smallest i, then
        the smallest j.

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
    """Replace tokens by a generator's samples, and label the changes: ELECTRA's task.

    The tokens at the n chosen positions are drawn by one call of `torch.multinomial` on
    the probabilities (n, V). No gradient flows into the generator.

    Args:
        tokens: The sequences, integers (B, T); they are not changed.
        chosen: Boolean (B, T), True where a sample replaces the token.
        generator_logits: The generator's logits, (B, T, V).
        generator: Source of the draws; None means PyTorch's own.

    Returns:
        The corrupted sequences, integers (B, T) in the dtype of `tokens`, and labels in
        the dtype of the logits, (B, T): 1 where a token differs from the original, 0
        elsewhere. A sample that equals the original token gets label 0.

    Source:
        Clark et al. 2020, ELECTRA, section 2.
    """
    corrupted = tokens.clone()
    probabilities = torch.softmax(generator_logits[chosen], dim=-1)  # (n, V)
    guesses = torch.multinomial(probabilities, 1, generator=generator).flatten()
    corrupted[chosen] = guesses.to(tokens.dtype)
    return corrupted, (corrupted != tokens).to(generator_logits.dtype)


class Albert(nn.Module):
    """A BERT with one layer shared by all depths and with factorised embeddings.

    Its parts are `embeddings` (a `BertEmbeddings` of width E), `project`, an
    `nn.Linear(E, D)`, one `layer` (an `EncoderLayer` as in `Bert`) that is applied L
    times, and `pooler`, an `nn.Linear(D, D)`.

    Args:
        vocab_size: V.
        d_embedding: Width E of the embeddings.
        d_model: Width D of the layer.
        n_heads: Heads H; divides D.
        n_layers: Number of applications of the layer, L.
        d_ff: Feed-forward width F.
        max_length: Context length N.
        segments: Number of segments.
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
        """Encode a batch of sequences; arguments, results and errors are as in `Bert`."""
        x = self.project(self.embeddings(tokens, segments))  # (B, T, D)
        keys = None if mask is None else mask[:, None, :]  # (B, 1, T)
        for _ in range(self.n_layers):
            x = self.layer(x, keys)
        return x, torch.tanh(self.pooler(x[:, 0]))


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float, mask: Tensor | None = None) -> Tensor:
    """Compute the divergence of a teacher's softened distributions from its student's.

    It is the Kullback-Leibler divergence KL(p ‖ q) = Σ p log(p / q), with the teacher's
    p = softmax(teacher / τ) and the student's q = softmax(student / τ). It is multiplied
    by τ², so that the scale of the gradients does not depend on τ.

    Args:
        student: Logits, (..., V).
        teacher: Logits, (..., V); no gradient flows into them.
        temperature: τ, above 0.
        mask: Boolean (...), True at the positions to average over; None means all.

    Returns:
        A scalar, (): the mean over these positions; 0 if there are no such positions.

    Raises:
        ValueError: If `temperature` is not above 0.

    Source:
        Hinton et al. 2015, Distilling the Knowledge in a Neural Network, section 2;
        Sanh et al. 2019, DistilBERT.
    """
    if not temperature > 0:
        raise ValueError(f"a temperature is above 0, got {temperature}")
    log_q = torch.log_softmax(student / temperature, dim=-1)
    log_p = torch.log_softmax(teacher.detach() / temperature, dim=-1)
    divergence = (log_p.exp() * (log_p - log_q)).sum(dim=-1)  # (...)
    counts = torch.ones_like(divergence, dtype=torch.bool) if mask is None else mask
    return temperature**2 * divergence.masked_fill(~counts, 0).sum() / counts.sum().clamp(min=1)


def linear_warmup_rate(step: int, *, peak: float, warmup: int, total: int) -> float:
    """Compute a learning rate with linear warm-up from 0 and linear decay to 0.

    Args:
        step: Number of the step, counted from 0.
        peak: The largest rate, reached at step `warmup` if `warmup` is below `total`.
        warmup: Number of warm-up steps.
        total: The step from which the rate is 0.

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
    """Fine-tune a pre-trained model and a new head for sequence classification.

    Each batch is one step, with model and head in training mode: set the rate, compute
    the logits `head(pooled)` and their cross-entropy, zero the gradients, compute them,
    and update the weights. The head classifies the pooled states. The rate of step n of
    N, counted from 1, is given by `linear_warmup_rate` with peak `rate`,
    max(1, N // 10) warm-up steps and `total` = N + 1. With `freeze` no gradient flows
    into the model, which is then in evaluation mode.

    Args:
        model: Returns hidden states and pooled states; called as
            `model(tokens, mask=tokens != PAD)`.
        head: Maps pooled states (B, D) to logits (B, C) of C classes.
        optimizer: Updates the trained weights; the rate is set in all its parameter
            groups.
        batches: Tokens, integers (B, T), and classes, integers (B,).
        rate: Peak learning rate.
        freeze: Train only the head.

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
    """Return an encoder layer from chapter 05 with BERT's eps."""
    layer = EncoderLayer(d_model, n_heads, d_ff, dropout=dropout, activation="gelu")
    layer.self_attention_norm.eps = layer.feed_forward_norm.eps = 1e-12
    return layer
