"""GPT: loss and metrics, attention with a cache, the model, generation, parameter counts and scaling laws.

Boolean masks are True where a query may attend. A cache is a list with one pair per
block: its keys and its values so far.

Shapes: B batch, T length, P cached tokens, V vocabulary, D model width, H heads, Dh = D
/ H head width, F feed-forward width, L blocks. In the scaling laws: N parameters, M
training tokens, C FLOP of training.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from tfcourse.attention import scaled_dot_product_attention
from tfcourse.data import PAD
from tfcourse.layers import gelu
from tfcourse.multihead import MultiHeadAttention, merge_heads, split_heads
from tfcourse.sampling import sampler_chain

__all__ = [  # noqa: RUF022 - in the order of the lesson
    "next_token_loss",
    "sequence_log_probability",
    "bits_per_byte",
    "cached_attention",
    "GptBlock",
    "Gpt",
    "generate",
    "GptParameters",
    "gpt_parameters",
    "training_flops",
    "HOFFMANN_2022",
    "BESIROGLU_2024",
    "chinchilla_loss",
    "chinchilla_optimal",
    "discriminative_rates",
    "slanted_triangular_rate",
]

KeysAndValues: TypeAlias = tuple[Tensor, Tensor]

HOFFMANN_2022: Mapping[str, float] = {"E": 1.69, "A": 406.4, "B": 410.7, "alpha": 0.34, "beta": 0.28}
"""The constants that the paper on Chinchilla prints (Hoffmann et al. 2022, equation 10)."""

BESIROGLU_2024: Mapping[str, float] = {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}
"""The constants of a corrected fit to the same runs (Besiroglu et al. 2024, section 3)."""


def next_token_loss(logits: Tensor, tokens: Tensor, pad: int | None = None) -> Tensor:
    """Compute the mean surprisal of the next tokens, in nats.

    The logits at position t are compared with the token at position t + 1.

    Args:
        logits: (B, T, V); those at position t are for the token after it.
        tokens: The model's input, integers (B, T).
        pad: A token that is never a target; None means that every token is one.

    Returns:
        A scalar, (): the mean over all targets of all sequences, or 0 without targets.
        The first token is not a target, and the logits at the last position are not
        used.

    Source:
        Radford et al. 2018, Improving Language Understanding by Generative
        Pre-Training, section 3.1.
    """
    targets = tokens[:, 1:]  # (B, T - 1)
    log_p = torch.log_softmax(logits[:, :-1], dim=-1)  # (B, T - 1, V)
    surprise = -log_p.gather(-1, targets[..., None])[..., 0]  # (B, T - 1)
    counts = torch.ones_like(targets, dtype=torch.bool) if pad is None else targets != pad
    return surprise.masked_fill(~counts, 0).sum() / counts.sum().clamp(min=1)


def sequence_log_probability(logits: Tensor, tokens: Tensor, first: Tensor) -> Tensor:
    """Compute the log-probability of whole texts by the chain rule.

    Each text has one factor per token, given the tokens before it.

    Args:
        logits: (B, T, V); those at position t are for the token after it.
        tokens: The texts, integers (B, T).
        first: Log-probability of each token as the first one, (V,).

    Returns:
        One number per text, in nats, (B,).

    Source:
        Bengio et al. 2003, A Neural Probabilistic Language Model, section 1.
    """
    log_p = torch.log_softmax(logits[:, :-1], dim=-1)  # (B, T - 1, V)
    following = log_p.gather(-1, tokens[:, 1:, None])[..., 0]  # (B, T - 1)
    return first[tokens[:, 0]] + following.sum(dim=1)


def bits_per_byte(loss: float, n_tokens: int, n_bytes: int) -> float:
    """Convert a loss per token to bits per byte, which do not depend on the tokens.

    Args:
        loss: Mean surprisal of a token, in nats.
        n_tokens: Number of tokens of the text.
        n_bytes: Number of bytes of the text in UTF-8, at least 1.

    Returns:
        Bits per byte.

    Raises:
        ValueError: If `n_bytes` is below 1.

    Source:
        Gao et al. 2020, The Pile, section 3.1.
    """
    if n_bytes < 1:
        raise ValueError(f"a text has at least one byte, got {n_bytes}")
    return loss / math.log(2) * n_tokens / n_bytes


def cached_attention(
    q: Tensor, k: Tensor, v: Tensor, past: KeysAndValues | None = None
) -> tuple[Tensor, KeysAndValues]:
    """Compute causal attention of T new tokens to P cached tokens and to themselves.

    New query t attends to all P cached tokens and to the new ones up to itself.

    Args:
        q: Queries of the new tokens, (B, H, T, Dh).
        k: Their keys, (B, H, T, Dh).
        v: Their values, (B, H, T, Dh).
        past: Cached keys and values, (B, H, P, Dh) each; None means P = 0.

    Returns:
        Outputs, (B, H, T, Dh), and the keys and values to cache,
        (B, H, P + T, Dh) each, the new ones last.

    Source:
        Shazeer 2019, Fast Transformer Decoding: One Write-Head is All You Need,
        section 2.4.
    """
    if past is not None:
        # A new tensor for each token, so that `past` stays unchanged; servers write into a preallocated one.
        k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
    T, S = q.shape[2], k.shape[2]
    mask = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(diagonal=S - T)
    return scaled_dot_product_attention(q, k, v, mask), (k, v)


class GptBlock(nn.Module):
    """A block of GPT-2: causal self-attention and a feed-forward network, pre-norm.

    Its parts are `attention_norm`, `attention` (a `MultiHeadAttention`, of which the
    four maps are used), `feed_forward_norm`, and the maps `up_proj` (D -> F) and
    `down_proj` (F -> D) with the approximate GELU between them. Each sublayer has a
    residual connection. The norms have PyTorch's eps of 1e-5. In training, dropout
    is applied to the output of the attention and of the feed-forward network, before
    it is added.

    Args:
        d_model: Width D.
        n_heads: Heads H; divides D.
        d_ff: Feed-forward width F.
        dropout: Probability of dropout.

    Source:
        Radford et al. 2019, Language Models are Unsupervised Multitask Learners,
        section 2.3.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        past: KeysAndValues | None = None,
    ) -> tuple[Tensor, KeysAndValues]:
        """Apply the block to T new tokens after P cached ones.

        Args:
            x: New tokens, (B, T, D).
            past: Cached keys and values, (B, H, P, Dh) each; None means P = 0.

        Returns:
            New tokens, (B, T, D), and the keys and values to cache,
            (B, H, P + T, Dh) each.
        """
        maps = self.attention
        normed = self.attention_norm(x)
        q, k, v = (split_heads(project(normed), maps.n_heads) for project in (maps.q_proj, maps.k_proj, maps.v_proj))
        heads, cache = cached_attention(q, k, v, past)
        x = x + self.dropout(maps.o_proj(merge_heads(heads)))
        hidden = gelu(self.up_proj(self.feed_forward_norm(x)), approximate=True)  # (B, T, F)
        return x + self.dropout(self.down_proj(hidden)), cache


class Gpt(nn.Module):
    """A decoder-only Transformer with learned position embeddings and tied embeddings.

    Its parts are `token_embedding`, `position_embedding`, `blocks` and `final_norm`.
    Embeddings of token and position are added, with dropout on the sum; logits are
    products with the matrix of `token_embedding`, without a bias. All matrices are
    initialised from a normal distribution with standard deviation 0.02, `o_proj` and
    `down_proj` of each block with 0.02 / sqrt(2 L), and all biases with zeros.

    Args:
        vocab_size: V.
        max_length: Context length, in tokens.
        d_model: Width D.
        n_heads: Heads H; divides D.
        n_layers: Blocks L.
        d_ff: Feed-forward width F; None means 4 D.
        dropout: Probability of dropout, on the embeddings and in every block.

    Source:
        Radford et al. 2019, section 2.3; the standard deviation is from Radford et al.
        2018, section 4.1.
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        *,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_length, d_model)
        self.dropout = nn.Dropout(dropout)
        width = 4 * d_model if d_ff is None else d_ff
        self.blocks = nn.ModuleList(GptBlock(d_model, n_heads, width, dropout=dropout) for _ in range(n_layers))
        self.final_norm = nn.LayerNorm(d_model)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                adds = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * n_layers) if adds else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(
        self, tokens: Tensor, cache: Sequence[KeysAndValues] | None = None
    ) -> tuple[Tensor, list[KeysAndValues]]:
        """Predict the token after each position.

        Args:
            tokens: New tokens, integers (B, T).
            cache: Keys and values of the previous tokens, one pair per block; None
                means an empty cache. It is not changed.

        Returns:
            Logits, (B, T, V), and the cache with the new tokens in it.

        Raises:
            ValueError: If cached and new tokens together exceed `max_length`.
        """
        start = 0 if cache is None else cache[0][0].shape[2]
        length, longest = start + tokens.shape[1], self.position_embedding.num_embeddings
        if length > longest:
            raise ValueError(f"a text has at most {longest} tokens, got {length}")
        places = torch.arange(start, length, device=tokens.device)
        x = self.dropout(self.token_embedding(tokens) + self.position_embedding(places))  # (B, T, D)
        kept = []
        for number, block in enumerate(self.blocks):
            x, keys_and_values = block(x, None if cache is None else cache[number])
            kept.append(keys_and_values)
        logits = self.final_norm(x) @ self.token_embedding.weight.mT  # (B, T, V)
        return logits, kept


@torch.no_grad()
def generate(
    model: Callable[..., tuple[Tensor, Any]],
    prompt: Tensor,
    *,
    max_new_tokens: int,
    chain: Sequence[tuple[str, Mapping[str, Any]]] = (),
    greedy: bool = False,
    eos: int | None = None,
    pad: int = PAD,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
) -> Tensor:
    """Continue texts, token by token.

    In each step the logits at the last position pass through `sampler_chain`, and one
    call of `torch.multinomial` on their probabilities (B, V) draws a token for every
    text, ended or not. A text ends with `eos`; after that, its row is filled with
    `pad`. Generation stops when all texts have ended, and after `max_new_tokens` at
    the latest.

    Args:
        model: Called as `model(tokens, cache)`, it returns logits (B, T, V) and a
            cache, as `Gpt` does. Its mode (training or evaluation) is not changed.
        prompt: The prompts, integers (B, T), all of one length.
        max_new_tokens: Maximum number n of new tokens, 0 or more.
        chain: Samplers with their parameters, as `sampler_chain` takes them.
        greedy: Take the most probable token that the chain leaves, and draw nothing.
        eos: The token that ends a text; None means that no token does.
        pad: The token that fills up the shorter texts.
        generator: Source of randomness; None means PyTorch's own.
        use_cache: Pass the prompt once and then only the newest token with the cache;
            otherwise the whole text in every step.

    Returns:
        Prompts and new tokens, integers (B, T + n') with n' at most n.

    Raises:
        ValueError: If `max_new_tokens` is negative.

    Source:
        Radford et al. 2019, section 3; the rules follow Hugging Face.
    """
    if max_new_tokens < 0:
        raise ValueError(f"the number of new tokens is 0 or more, got {max_new_tokens}")
    text, cache = prompt, None
    over = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)  # (B,)
    for step in range(max_new_tokens):
        logits, new_cache = model(text if step == 0 or not use_cache else text[:, -1:], cache)
        cache = new_cache if use_cache else None
        logits = sampler_chain(logits[:, -1], text, chain, generator)  # (B, V)
        p = torch.softmax(logits, dim=-1)
        token = p.argmax(dim=-1) if greedy else torch.multinomial(p, 1, generator=generator)[:, 0]
        token = token.masked_fill(over, pad)
        text = torch.cat([text, token[:, None].to(text.dtype)], dim=1)
        if eos is not None:
            over = over | (token == eos)
            if bool(over.all()):
                break
    return text


class GptParameters(NamedTuple):
    """Parameter counts of a GPT model, by part."""

    tokens: int
    """The embedding matrix, which is also the output matrix."""
    positions: int
    """The table of positions."""
    blocks: int
    """All blocks together."""
    final_norm: int
    """The norm after the last block."""
    total: int
    """The sum of all parts."""


def gpt_parameters(
    vocab_size: int,
    max_length: int,
    d_model: int,
    n_layers: int,
    d_ff: int | None = None,
) -> GptParameters:
    """Count the parameters of a GPT, including biases and norms.

    The number of heads does not matter.

    Args:
        vocab_size: V.
        max_length: Context length, in tokens.
        d_model: Width D.
        n_layers: Blocks L.
        d_ff: Feed-forward width F; None means 4 D.

    Returns:
        The counts.

    Source:
        Radford et al. 2019, table 2; Brown et al. 2020, Language Models are Few-Shot
        Learners, table 2.1.
    """
    width = 4 * d_model if d_ff is None else d_ff
    norm = 2 * d_model
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = 2 * d_model * width + width + d_model
    blocks = n_layers * (attention + feed_forward + 2 * norm)
    tokens, positions = vocab_size * d_model, max_length * d_model
    return GptParameters(tokens, positions, blocks, norm, tokens + positions + blocks + norm)


def training_flops(parameters: float, tokens: float) -> float:
    """Estimate the FLOP of training.

    The forward pass takes 2 FLOP per parameter and token, the backward pass 4.

    Args:
        parameters: Number of parameters, N.
        tokens: Number of training tokens, M.

    Returns:
        FLOP.

    Source:
        Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1.
    """
    return 6 * parameters * tokens


def chinchilla_loss(
    parameters: float,
    tokens: float,
    constants: Mapping[str, float] = BESIROGLU_2024,
) -> float:
    """Predict the loss of a language model: E + A / N^alpha + B / M^beta.

    Args:
        parameters: Number of parameters, N.
        tokens: Number of training tokens, M (the paper's D).
        constants: `E`, `A`, `B`, `alpha` and `beta`.

    Returns:
        The loss, in nats per token.

    Source:
        Hoffmann et al. 2022, Training Compute-Optimal Large Language Models,
        section 3.3.
    """
    c = constants
    return float(c["E"] + c["A"] / parameters ** c["alpha"] + c["B"] / tokens ** c["beta"])


def chinchilla_optimal(
    flops: float,
    constants: Mapping[str, float] = BESIROGLU_2024,
) -> tuple[float, float]:
    """Find the model size and text length with the least predicted loss for a budget.

    With C = 6 N M FLOP the least loss is at
    N = (alpha A / (beta B))^(1 / (alpha + beta)) (C / 6)^(beta / (alpha + beta)).

    Args:
        flops: FLOP of training, C, above 0.
        constants: `E`, `A`, `B`, `alpha` and `beta`.

    Returns:
        Number of parameters N and of training tokens M.

    Raises:
        ValueError: If `flops` is not above 0.

    Source:
        Hoffmann et al. 2022, section 3.3, equation 4.
    """
    if not flops > 0:
        raise ValueError(f"the number of operations is above 0, got {flops}")
    alpha, beta = constants["alpha"], constants["beta"]
    balance = (alpha * constants["A"] / (beta * constants["B"])) ** (1 / (alpha + beta))
    parameters = balance * (flops / 6) ** (beta / (alpha + beta))
    return parameters, flops / (6 * parameters)


def discriminative_rates(rate: float, n_groups: int, factor: float = 2.6) -> list[float]:
    """Compute a learning rate for each group of layers.

    The last group learns fastest, each group below it `factor` times more slowly.

    Args:
        rate: Rate of the last group.
        n_groups: Number of groups, at least 1.
        factor: Ratio of a group's rate to that of the group below it.

    Returns:
        Rates, from the first group, next to the embeddings, to the last.

    Raises:
        ValueError: If `n_groups` is below 1.

    Source:
        Howard and Ruder 2018, Universal Language Model Fine-tuning for Text
        Classification, section 3.2.
    """
    if n_groups < 1:
        raise ValueError(f"there is at least one group, got {n_groups}")
    return [rate / factor ** (n_groups - 1 - group) for group in range(n_groups)]


def slanted_triangular_rate(
    step: int,
    total: int,
    *,
    peak: float = 0.01,
    cut: float = 0.1,
    ratio: float = 32,
) -> float:
    """Compute a learning rate that rises fast and falls slowly, both linearly.

    It begins and ends at `peak` / `ratio`. The peak is at step ⌊`total` · `cut`⌋; from
    there the rate falls until step `total`.

    Args:
        step: Number of the step, from 0 to `total`.
        total: The last step, at least 1.
        peak: The largest rate.
        cut: Fraction of the steps in which the rate rises, from 0 to below 1.
        ratio: Ratio of the peak to the rate at both ends.

    Returns:
        The rate.

    Raises:
        ValueError: If `step` is not from 0 to `total`, or `cut` is not from 0 to below
            1.

    Source:
        Howard and Ruder 2018, section 3.2. For some `total` their formula ends below
        0; this one does not.
    """
    if not 0 <= step <= total:
        raise ValueError(f"expected a step from 0 to {total}, got {step}")
    if not 0 <= cut < 1:
        raise ValueError(f"expected a share from 0 to below 1, got cut={cut}")
    top = math.floor(total * cut)
    height = step / top if step < top else 1 - (step - top) / (total - top)
    return peak * (1 + height * (ratio - 1)) / ratio
