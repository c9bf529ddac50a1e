"""T5: span corruption, relative position buckets, RMS norm, the model, tasks as text, and sizes.

Boolean masks are True where a query may attend. Sentinels are tokens that replace
spans, in the order in which they are used.

Shapes: B batch, T and S lengths of target and source, V vocabulary, D model width, H
heads, Dh head width (H · Dh may differ from D). F is the feed-forward width, L the
number of layers of each stack; `...` stands for any number of leading dimensions.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tfcourse.alignment import masked_softmax
from tfcourse.attention import causal_mask
from tfcourse.layers import gelu
from tfcourse.multihead import merge_heads, split_heads

__all__ = [  # noqa: RUF022 - in the order of the lesson
    "random_span_mask",
    "corrupt_spans",
    "restore_spans",
    "relative_position_bucket",
    "relative_position_bias",
    "rms_norm",
    "T5Attention",
    "T5FeedForward",
    "T5Layer",
    "T5",
    "score_to_text",
    "T5Parameters",
    "t5_parameters",
]


def random_span_mask(
    length: int,
    generator: torch.Generator,
    *,
    noise_density: float = 0.15,
    mean_span_length: float = 3.0,
) -> Tensor:
    """Choose spans to hide: fixed numbers of tokens and spans, at random positions.

    The number of hidden tokens is n = round(`length` · `noise_density`), clamped to 1
    and `length` - 1. The number of hidden spans is s = round(n / `mean_span_length`),
    at least 1 and at most n and `length` - n. `round` is Python's, which rounds a half
    to the even number. Kept and hidden spans alternate. The text begins with a kept
    span and ends with a hidden one, and no span is empty. All ways to cut n and
    `length` - n into s parts are equally likely.

    Two draws are made, in this order. `torch.randperm(n - 1)[: s - 1]`, sorted, are the
    positions, counted from 0, after which the hidden tokens are cut;
    `torch.randperm(length - n - 1)[: s - 1]` are the positions for the kept tokens.

    Args:
        length: Number of tokens T, at least 2.
        generator: Source of the draws; the mask is on its device.
        noise_density: Fraction of the tokens to hide, above 0 and below 1.
        mean_span_length: Mean length of a hidden span, at least 1.

    Returns:
        Boolean (T,), True at hidden tokens.

    Raises:
        ValueError: If an argument is out of its range.

    Source:
        Raffel et al. 2020, Exploring the Limits of Transfer Learning with a Unified
        Text-to-Text Transformer, section 3.3.4.
    """
    if length < 2 or not 0 < noise_density < 1 or mean_span_length < 1:
        raise ValueError(
            f"expected at least 2 tokens, a density above 0 and below 1 and a mean length of at least 1, "
            f"got {length}, {noise_density} and {mean_span_length}"
        )
    hidden = min(max(round(length * noise_density), 1), length - 1)
    spans = min(max(round(hidden / mean_span_length), 1), hidden, length - hidden)
    hidden_lengths = _random_parts(hidden, spans, generator)
    kept_lengths = _random_parts(length - hidden, spans, generator)
    lengths = torch.stack([kept_lengths, hidden_lengths], dim=1).flatten()  # (2 s,)
    kinds = lengths.new_tensor([False, True], dtype=torch.bool).repeat(spans)  # (2 s,)
    return kinds.repeat_interleave(lengths)


def corrupt_spans(
    tokens: Tensor,
    noise: Tensor,
    sentinels: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """Replace each hidden span by a sentinel, and list the spans in a target.

    Args:
        tokens: The text, integers (T,).
        noise: Boolean (T,), True at hidden tokens; a run of them is a span.
        sentinels: Tokens that replace the spans, in this order; at least one more than
            there are spans.

    Returns:
        The source, in which each span has become one sentinel, and the target: for each
        span its sentinel and its tokens, and finally one more sentinel.

    Raises:
        ValueError: If there are not enough sentinels.

    Source:
        Raffel et al. 2020, section 3.1.4 and figure 2.
    """
    begins = noise & ~torch.cat([noise.new_zeros(1), noise[:-1]])
    spans = int(begins.sum())
    if spans + 1 > len(sentinels):
        raise ValueError(f"{spans} spans need {spans + 1} sentinels, got {len(sentinels)}")
    marks = tokens.new_tensor(sentinels)
    own = marks[begins.cumsum(dim=0) - 1]  # (T,): the sentinel of the span at or before each position
    source = torch.where(begins, own, tokens)[begins | ~noise]
    pairs = torch.stack([own, tokens], dim=1)  # (T, 2)
    # Row by row, a sentinel where a span begins, then the token if it is hidden.
    target = pairs[torch.stack([begins, noise], dim=1)]
    return source, torch.cat([target, marks[spans : spans + 1]])


def restore_spans(
    source: Tensor,
    target: Tensor,
    sentinels: Sequence[int],
) -> Tensor:
    """Put the spans of a target back into a source: the inverse of `corrupt_spans`.

    Args:
        source: Text with sentinels, integers (S,).
        target: Sentinels, each followed by the tokens of its span, in any order,
            integers (T,). Tokens before the first sentinel are ignored, and so is
            the span of a sentinel that the source lacks.
        sentinels: The tokens that are sentinels.

    Returns:
        The text, integers: each sentinel of the source has become its span, or
        nothing if the target lacks it.

    Source:
        Raffel et al. 2020, section 3.1.4.
    """
    marks = set(sentinels)
    spans: dict[int, list[int]] = {}
    current: list[int] = []
    for token in target.tolist():
        if token in marks:
            current = spans[token] = []
        else:
            current.append(token)
    text = [part for token in source.tolist() for part in (spans.get(token, []) if token in marks else [token])]
    return source.new_tensor(text)


def relative_position_bucket(
    offset: Tensor,
    *,
    bidirectional: bool,
    n_buckets: int = 32,
    max_distance: int = 128,
) -> Tensor:
    """Sort offsets into buckets: exact for near ones, ever coarser for far ones.

    An offset is the key's position minus the query's position. With `bidirectional`,
    the first half of the buckets is for keys at or before the query (offset 0 or less),
    and the other half for keys after it. Otherwise all buckets are for keys at or
    before the query, and offsets above 0 count as 0.

    Of the b buckets of one direction the first b / 2 hold one distance each. A distance
    d of b / 2 or more has the bucket `b / 2 + ⌊log(d / (b / 2)) / log(max_distance / (b
    / 2)) · b / 2⌋`, but at most b - 1.

    Args:
        offset: Integers (...).
        bidirectional: Whether keys may come after the query.
        n_buckets: Number of buckets; even in each direction.
        max_distance: Where the formula reaches b; more than b / 2. The last bucket
            begins earlier, with the defaults at 91 in both directions and at 113
            otherwise.

    Returns:
        Numbers of buckets, integers (...).

    Raises:
        ValueError: If the buckets of one direction are not even in number, or
            `max_distance` is too small.

    Source:
        Raffel et al. 2020, section 2.1; the numbers follow the published code.
    """
    side = n_buckets // 2 if bidirectional else n_buckets
    exact = side // 2
    if n_buckets % (4 if bidirectional else 2) or max_distance <= exact:
        raise ValueError(
            f"expected an even number of buckets on a side and a distance above {exact}, "
            f"got n_buckets={n_buckets} and max_distance={max_distance}"
        )
    distance = offset.abs() if bidirectional else (-offset).clamp(min=0)
    ratio = torch.log(distance.clamp(min=exact) / exact) / math.log(max_distance / exact)
    steps = (ratio * (side - exact)).long()  # beyond `exact`, 0 at smaller distances
    bucket = (distance.clamp(max=exact) + steps).clamp(max=side - 1)
    return bucket + side * (offset > 0) if bidirectional else bucket


def relative_position_bias(
    table: Tensor,
    T: int,
    S: int,
    *,
    bidirectional: bool,
    max_distance: int = 128,
    start: int = 0,
) -> Tensor:
    """Look up the bias of each query, key and head by the bucket of the offset.

    The result is added to the attention scores.

    Args:
        table: A number for each bucket and head, (n_buckets, H).
        T: Number of queries; query t has position `start` + t.
        S: Number of keys.
        bidirectional: As in `relative_position_bucket`.
        max_distance: As there.
        start: Position of the first query.

    Returns:
        Numbers, (H, T, S).

    Raises:
        ValueError: As in `relative_position_bucket`.

    Source:
        Raffel et al. 2020, section 2.1.
    """
    queries = torch.arange(start, start + T, device=table.device)
    offset = torch.arange(S, device=table.device) - queries[:, None]  # (T, S)
    bucket = relative_position_bucket(
        offset, bidirectional=bidirectional, n_buckets=table.shape[0], max_distance=max_distance
    )
    return table[bucket].permute(2, 0, 1)


def rms_norm(x: Tensor, gamma: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide each row by its root mean square and scale each column.

    Args:
        x: Rows, (..., D).
        gamma: One factor per column, (D,).
        eps: Added to the mean of the squares, inside the square root.

    Returns:
        Rows, (..., D), in the dtype of `x`: computed in float64 if `x` is float64, in
        float32 otherwise.

    Source:
        Zhang and Sennrich 2019, Root Mean Square Layer Normalization, section 3.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scaled = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (scaled * gamma).to(x.dtype)


class T5Attention(nn.Module):
    """Multi-head attention with unscaled scores and a position bias.

    It has four linear layers without bias: `q_proj`, `k_proj`, `v_proj` (D -> H · Dh)
    and `o_proj` (H · Dh -> D).

    Args:
        d_model: Width D.
        n_heads: Heads H.
        d_head: Width of a head, Dh.

    Source:
        Raffel et al. 2020, section 2.1; that nothing is scaled is in the published
        code.
    """

    def __init__(self, d_model: int, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, n_heads * d_head, bias=False)
        self.k_proj = nn.Linear(d_model, n_heads * d_head, bias=False)
        self.v_proj = nn.Linear(d_model, n_heads * d_head, bias=False)
        self.o_proj = nn.Linear(n_heads * d_head, d_model, bias=False)

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Attend from every position of `x` to `context`, or to `x` itself.

        Args:
            x: Sequence for the queries, (B, T, D).
            context: Sequence for the keys and values, (B, S, D); None means `x`.
            mask: Boolean, True where a query may attend, broadcastable to (B, T, S);
                None permits every pair. A fully masked query gives zeros.
            bias: Position bias, added to the scores, broadcastable to (B, H, T,
                S).

        Returns:
            Outputs, (B, T, D).
        """
        context = x if context is None else context
        q, k, v = (
            split_heads(project(part), self.n_heads)
            for project, part in ((self.q_proj, x), (self.k_proj, context), (self.v_proj, context))
        )
        scores = q @ k.mT  # (B, H, T, S)
        if bias is not None:
            scores = scores + bias
        if mask is not None and mask.ndim > 2:
            mask = mask.unsqueeze(1)  # (B, 1, T, S)
        return self.o_proj(merge_heads(masked_softmax(scores, mask) @ v))


class T5FeedForward(nn.Module):
    """A feed-forward network with ReLU or, in the gated form, GELU; without biases.

    Its linear layers are `up_proj` (D -> F) and `down_proj` (F -> D). The gated form
    also has `gate_proj` (D -> F), and multiplies its approximate GELU by the output of
    `up_proj`.

    Args:
        d_model: Width D.
        d_ff: Width F in between.
        gated: The form of version 1.1.

    Source:
        Raffel et al. 2020, section 2.1; Shazeer 2020, GLU Variants Improve Transformer,
        section 2 (gated).
    """

    def __init__(self, d_model: int, d_ff: int, *, gated: bool = False) -> None:
        super().__init__()
        self.up_proj = nn.Linear(d_model, d_ff, bias=False)
        self.down_proj = nn.Linear(d_ff, d_model, bias=False)
        self.gate_proj = nn.Linear(d_model, d_ff, bias=False) if gated else None

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to each position.

        Args:
            x: (..., D).

        Returns:
            (..., D).
        """
        up = self.up_proj(x)
        hidden = torch.relu(up) if self.gate_proj is None else gelu(self.gate_proj(x), approximate=True) * up
        return self.down_proj(hidden)


class T5Layer(nn.Module):
    """A layer of either stack: pre-norm, with a position bias in the self-attention.

    Its parts are `self_attention` and, in the decoder, `cross_attention` (two
    `T5Attention`), `feed_forward` (a `T5FeedForward`), and a norm for each,
    `self_attention_norm`, `cross_attention_norm` and `feed_forward_norm`,
    `nn.RMSNorm(d_model, eps=1e-6)`. In the decoder self-attention is causal. The
    encoder's output is not normalised here. In training mode, dropout is applied to the
    output of each sublayer.

    Args:
        d_model: Width D.
        n_heads: Heads H.
        d_head: Width of a head, Dh.
        d_ff: Feed-forward width F.
        decoder: Whether it is a layer of the decoder.
        gated: The feed-forward network of version 1.1.
        dropout: Probability of dropout.

    Source:
        Raffel et al. 2020, section 2.1.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_head: int,
        d_ff: int,
        *,
        decoder: bool,
        gated: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.self_attention = T5Attention(d_model, n_heads, d_head)
        self.self_attention_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.cross_attention = T5Attention(d_model, n_heads, d_head) if decoder else None
        self.cross_attention_norm = nn.RMSNorm(d_model, eps=1e-6) if decoder else None
        self.feed_forward = T5FeedForward(d_model, d_ff, gated=gated)
        self.feed_forward_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Apply the sublayers.

        Args:
            x: The layer's own sequence, (B, T, D).
            memory: In the decoder, the output of the encoder, (B, S, D).
            mask: Boolean, True at real source tokens, broadcastable to (B, T, S). The
                encoder uses it in the self-attention, the decoder in the
                cross-attention.
            bias: Position bias of the self-attention, broadcastable to (B, H, T, T).

        Returns:
            (B, T, D).
        """
        own = mask if self.cross_attention is None else causal_mask(x.shape[1], x.device)
        normed = self.self_attention_norm(x)
        x = x + self.dropout(self.self_attention(normed, mask=own, bias=bias))
        if self.cross_attention is not None:
            assert self.cross_attention_norm is not None
            x = x + self.dropout(self.cross_attention(self.cross_attention_norm(x), memory, mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class T5(nn.Module):
    """An encoder-decoder Transformer for tasks that are written as text.

    Its parts are:

    - `embedding`, shared by source and target;
    - `encoder_bias` and `decoder_bias`, each an `nn.Embedding(n_buckets, H)` that all
      layers of a stack share;
    - `encoder_layers` and `decoder_layers`, each an `nn.ModuleList` of `T5Layer`;
    - `encoder_norm` and `decoder_norm`, two `nn.RMSNorm(d_model, eps=1e-6)`;
    - `output`, an `nn.Linear(D, V)` without bias, unless weights are tied.

    Embeddings are not scaled. With tied weights, logits are products of the decoder's
    states, times D^(-1/2), with the embedding matrix. Dropout is applied to the
    embeddings and in every layer.

    Initial weights are normal with these standard deviations: embedding 1, q_proj (D ·
    Dh)^(-1/2), k_proj and v_proj D^(-1/2), o_proj (H · Dh)^(-1/2), up_proj and
    gate_proj D^(-1/2), down_proj F^(-1/2), tables of bias D^(-1/2), output D^(-1/2).

    Args:
        vocab_size: V.
        d_model: Width D.
        n_heads: Heads H.
        d_head: Width of a head, Dh.
        d_ff: Feed-forward width F.
        n_layers: Layers L of each stack.
        gated: The feed-forward networks of version 1.1.
        tie_weights: Whether the embedding matrix also computes the logits.
        n_buckets: Buckets of offsets.
        max_distance: As in `relative_position_bucket`.
        dropout: Probability of dropout.

    Source:
        Raffel et al. 2020, section 2.1; initial weights and the factor D^(-1/2) follow
        the published code.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        d_model: int,
        n_heads: int,
        d_head: int,
        d_ff: int,
        n_layers: int,
        gated: bool = False,
        tie_weights: bool = True,
        n_buckets: int = 32,
        max_distance: int = 128,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.encoder_bias = nn.Embedding(n_buckets, n_heads)
        self.decoder_bias = nn.Embedding(n_buckets, n_heads)

        def layers(*, decoder: bool) -> nn.ModuleList:
            return nn.ModuleList(
                T5Layer(d_model, n_heads, d_head, d_ff, decoder=decoder, gated=gated, dropout=dropout)
                for _ in range(n_layers)
            )

        self.encoder_layers, self.decoder_layers = layers(decoder=False), layers(decoder=True)
        self.encoder_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.decoder_norm = nn.RMSNorm(d_model, eps=1e-6)
        self.output = None if tie_weights else nn.Linear(d_model, vocab_size, bias=False)
        self.dropout = nn.Dropout(dropout)
        of_others = d_model**-0.5
        spread = {
            "embedding": 1.0,
            "q_proj": (d_model * d_head) ** -0.5,
            "o_proj": (n_heads * d_head) ** -0.5,
            "down_proj": d_ff**-0.5,
        }
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=spread.get(name.split(".")[-2], of_others))

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        """Predict, at every position of the target, the next token.

        Args:
            source: Integers (B, S).
            target: Tokens so far, integers (B, T).
            source_mask: Boolean (B, S), True at real tokens; None means that all are
                real.

        Returns:
            Logits, (B, T, V).
        """
        return self.decode(target, self.encode(source, source_mask), source_mask)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Encode the source.

        Args:
            source: Integers (B, S).
            source_mask: Boolean (B, S), True at real tokens; None means that all are
                real.

        Returns:
            The encoder's output, (B, S, D).
        """
        x = self.dropout(self.embedding(source))  # (B, S, D)
        S = source.shape[1]
        bias = relative_position_bias(
            self.encoder_bias.weight, S, S, bidirectional=True, max_distance=self.max_distance
        )
        for layer in self.encoder_layers:
            x = layer(x, mask=None if source_mask is None else source_mask[:, None], bias=bias)
        return self.encoder_norm(x)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        """Predict the next tokens from the target so far and the encoder's output.

        Args:
            target: Integers (B, T).
            memory: Output of `encode`, (B, S, D).
            source_mask: Boolean (B, S), True at real tokens; None means that all are
                real.

        Returns:
            Logits, (B, T, V).
        """
        x = self.dropout(self.embedding(target))  # (B, T, D)
        T = target.shape[1]
        bias = relative_position_bias(
            self.decoder_bias.weight, T, T, bidirectional=False, max_distance=self.max_distance
        )
        for layer in self.decoder_layers:
            x = layer(x, memory, None if source_mask is None else source_mask[:, None], bias)
        x = self.decoder_norm(x)
        if self.output is None:
            return nn.functional.linear(x * x.shape[-1] ** -0.5, self.embedding.weight)
        return self.output(x)


def to_text(task: str, fields: Mapping[str, str]) -> str:
    """Write a task as text: "task: text" for one unnamed field, else "task name: text …"."""
    if set(fields) == {""}:
        return f"{task}: {fields['']}"
    return " ".join([task, *(f"{name}: {text}" for name, text in fields.items())])


def score_to_text(score: float, *, step: float = 0.2) -> str:
    """Write a score as text: the nearest multiple of a step, with one decimal.

    Args:
        score: The score.
        step: Scores are rounded to its multiples, ties upwards. It should be a multiple
            of 0.1, because the text has one decimal.

    Returns:
        The text.

    Raises:
        ValueError: If `step` is not above 0.

    Source:
        Raffel et al. 2020, section 2.4.
    """
    if not step > 0:
        raise ValueError(f"a step is above 0, got {step}")
    # What is half way in decimals is not in binary: a little is allowed for.
    return f"{step * math.floor(score / step + 0.5 + 1e-9):.1f}"


def text_to_score(text: str) -> float | None:
    """Read a score from 0 to 5 that was written as text.

    Args:
        text: Output of a model.

    Returns:
        The score, or None if the text is not such a number.

    Source:
        Raffel et al. 2020, section 2.4, which speaks of 1 to 5. The labels of STS-B run
        from 0 to 5, as the published code says.
    """
    if not re.fullmatch(r"\d+(\.\d+)?", text.strip()):
        return None
    score = float(text)
    return score if 0 <= score <= 5 else None


class T5Parameters(NamedTuple):
    """Parameter counts of a T5 model, by part."""

    embedding: int
    """The embedding matrix, and the output matrix if it is another one."""
    encoder: int
    """The encoder's layers and its norm."""
    decoder: int
    """The decoder's layers and its norm."""
    biases: int
    """Both tables of bias by position."""
    total: int
    """All of it."""


def t5_parameters(
    vocab_size: int,
    d_model: int,
    n_heads: int,
    d_head: int,
    d_ff: int,
    n_layers: int,
    *,
    gated: bool = False,
    tied: bool = True,
    n_buckets: int = 32,
) -> T5Parameters:
    """Count the parameters of a T5.

    Args:
        vocab_size: V.
        d_model: Width D.
        n_heads: Heads H.
        d_head: Width of a head, Dh.
        d_ff: Feed-forward width F.
        n_layers: Layers L of each stack.
        gated: The feed-forward networks of version 1.1.
        tied: Whether the embedding matrix also computes the logits.
        n_buckets: Buckets of offsets.

    Returns:
        The counts; a separate output matrix is counted with the embedding.

    Source:
        Raffel et al. 2020, section 3.7.
    """
    attention = 4 * d_model * n_heads * d_head
    feed_forward = (3 if gated else 2) * d_model * d_ff
    encoder = n_layers * (attention + feed_forward + 2 * d_model) + d_model
    decoder = n_layers * (2 * attention + feed_forward + 3 * d_model) + d_model
    embedding = (1 if tied else 2) * vocab_size * d_model
    biases = 2 * n_buckets * n_heads
    return T5Parameters(embedding, encoder, decoder, biases, embedding + encoder + decoder + biases)


def _random_parts(total: int, parts: int, generator: torch.Generator) -> Tensor:
    """Split a number into parts of at least 1, uniformly at random; return their lengths, integers (parts,)."""
    order = torch.randperm(total - 1, generator=generator, device=generator.device)
    cuts = order[: parts - 1].sort().values + 1
    return cuts.diff(prepend=cuts.new_tensor([0]), append=cuts.new_tensor([total]))
