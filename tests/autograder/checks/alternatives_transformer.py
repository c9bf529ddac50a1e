"""Chapter 05, solved in other ways than the reference: right, so each must get all the points."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfcourse.attention import causal_mask
from tfcourse.multihead import MultiHeadAttention

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# ---------------------------------------------------------------------------------------------------------- positions


@alternative("sinusoidal_positions")
def by_slices(length: int, d_model: int, device: Any = None) -> Tensor:
    """Fill every other column of a table, in single precision, with the exponential of a logarithm."""
    if d_model % 2 != 0 or min(length, d_model) < 0:
        raise ValueError("odd")
    table = torch.empty(length, d_model, device=device)
    place = torch.arange(length, device=device).float().unsqueeze(1)
    speed = torch.exp(torch.arange(0, d_model, 2, device=device).float() * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(place * speed)
    table[:, 1::2] = torch.cos(place * speed)
    return table


@alternative("sinusoidal_positions")
def by_complex_numbers(length: int, d_model: int, device: Any = None) -> Tensor:
    """The hands of the clocks as complex numbers: imaginary part first."""
    if d_model % 2 or d_model < 0 or length < 0:
        raise ValueError(f"{d_model}")
    speed = 1 / 10000 ** (torch.arange(d_model // 2, device=device, dtype=torch.float64) * 2 / d_model)
    angle = torch.einsum("t,i->ti", torch.arange(length, device=device, dtype=torch.float64), speed)
    hands = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(hands).flip(-1).reshape(length, d_model).float()


@alternative("add_positions")
def by_index(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """Look the rows up by their numbers."""
    if not (x.dim() == 3 and positions.dim() == 2 and x.is_floating_point()):
        raise ValueError("no sequences, or no table")
    places = range(start, start + x.size(1))
    if places.start < 0 or places.stop > positions.size(0) or positions.size(1) != x.size(2):
        raise ValueError("no such places")
    rows = F.embedding(torch.tensor(list(places), device=x.device), positions)
    return x + rows[None].to(x.dtype)


@alternative("add_positions")
def by_narrow(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """Cut a piece out; PyTorch's own error is turned into the one that was asked for."""
    try:
        assert start >= 0
        assert (x.ndim, positions.ndim, x.is_floating_point()) == (3, 2, True)
        rows = positions.narrow(0, start, x.shape[1]).type_as(x)
        return torch.add(x, rows.expand(x.shape[1], x.shape[2])) if rows.shape[1] == x.shape[2] else 1 // 0
    except (RuntimeError, IndexError, AssertionError, ZeroDivisionError) as error:
        raise ValueError(str(error)) from error


# ------------------------------------------------------------------------------------------------------ norm and gelu


def _one_a_column(x: Tensor, gamma: Tensor, beta: Tensor) -> None:
    if not x.is_floating_point() or tuple(gamma.shape) != (x.shape[-1],) or tuple(beta.shape) != (x.shape[-1],):
        raise ValueError("gamma and beta")


@alternative("layer_norm")
def by_var_mean(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """PyTorch's variance and mean, and the reciprocal of a root."""
    _one_a_column(x, gamma, beta)
    dtype = x.dtype
    x, gamma, beta = (y.float() if dtype in (torch.float16, torch.bfloat16) else y for y in (x, gamma, beta))
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return ((x - mean) * torch.rsqrt(variance + eps) * gamma + beta).to(dtype)


@alternative("layer_norm")
def by_einsum(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Sums as products with themselves."""
    _one_a_column(x, gamma, beta)
    y = x.to(torch.promote_types(torch.float32, x.dtype))
    y = y - torch.einsum("...d->...", y)[..., None] / y.shape[-1]
    variance = torch.einsum("...d,...d->...", y, y)[..., None] / y.shape[-1]
    return (y.div((variance + eps).pow(0.5)).mul(gamma).add(beta)).to(x.dtype)


@alternative("gelu")
def by_erfc(x: Tensor, *, approximate: bool = False) -> Tensor:
    """The complementary error function, and a sigmoid in the place of tanh: (1 + tanh z) / 2 is the sigmoid of 2 z."""
    y = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    if approximate:
        share = torch.sigmoid(2 * math.sqrt(2 / math.pi) * (y + 0.044715 * y.pow(3)))
    else:
        share = torch.special.erfc(-y * math.sqrt(0.5)) * 0.5
    return (y * share).to(x.dtype)


@alternative("gelu")
def in_double(x: Tensor, *, approximate: bool = False) -> Tensor:
    """Everything in double precision."""
    y = x.to(torch.float64)
    inner = torch.tanh((2 / torch.pi) ** 0.5 * (y + 0.044715 * y * y * y)) if approximate else torch.erf(y / 2**0.5)
    return (0.5 * y + 0.5 * y * inner).type_as(x)


class _TwoMaps(nn.Module):
    def __init__(self, d_model: int, d_ff: int, *, activation: str = "relu") -> None:
        if activation not in {"relu", "gelu"}:
            raise ValueError(f"no such activation: {activation}")
        super().__init__()
        self.down_proj = nn.Linear(d_ff, d_model)
        self.up_proj = nn.Linear(d_model, d_ff)
        self.kind = activation


@alternative("FeedForward")
class ByModules(_TwoMaps):
    """The activation is a module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.act = nn.GELU() if self.kind == "gelu" else nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act(self.up_proj(x)))


@alternative("FeedForward")
class ByEinsumMaps(_TwoMaps):
    """The maps are written as sums; ReLU is a product with a truth value."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.einsum("...d,fd->...f", x, self.up_proj.weight) + self.up_proj.bias
        y = F.gelu(y) if self.kind == "gelu" else y * (y > 0)
        return torch.einsum("...f,df->...d", y, self.down_proj.weight) + self.down_proj.bias


@alternative("FeedForward")
class ByFlattening(_TwoMaps):
    """All rows in one matrix, and back again."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        inner = torch.addmm(self.up_proj.bias, rows, self.up_proj.weight.T)
        inner = F.gelu(inner) if self.kind == "gelu" else torch.maximum(inner, torch.zeros_like(inner))
        return torch.addmm(self.down_proj.bias, inner, self.down_proj.weight.T).reshape(x.shape)


@alternative("residual_post_norm")
def post_by_functional(
    x: Tensor, sublayer: Any, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0, eps: float = 1e-5
) -> Tensor:
    """PyTorch's norm and dropout."""
    return F.layer_norm(x + F.dropout(sublayer(x), p=dropout), x.shape[-1:], gamma, beta, eps)


@alternative("residual_post_norm")
def post_by_masks(
    x: Tensor, sublayer: Any, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0, eps: float = 1e-5
) -> Tensor:
    """Dropout by hand."""
    said = sublayer(x)
    if dropout > 0:
        keep = torch.rand_like(said) >= dropout
        said = torch.where(keep, said / max(1 - dropout, 1e-9), 0.0)
    return by_var_mean(torch.add(said, x), gamma, beta, eps)


@alternative("residual_pre_norm")
def pre_by_functional(
    x: Tensor, sublayer: Any, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0, eps: float = 1e-5
) -> Tensor:
    """PyTorch's norm and dropout."""
    said = sublayer(F.layer_norm(x, gamma.shape, weight=gamma, bias=beta, eps=eps))
    return F.dropout(said, p=dropout, training=True) + x


@alternative("residual_pre_norm")
def pre_by_modules(
    x: Tensor, sublayer: Any, gamma: Tensor, beta: Tensor, *, dropout: float = 0.0, eps: float = 1e-5
) -> Tensor:
    """A dropout module; the norm of an alternative above."""
    return x.clone().add_(nn.Dropout(dropout)(sublayer(by_einsum(x, gamma, beta, eps))))


# -------------------------------------------------------------------------------------------------------------- layers


class _Parts(nn.Module):
    """The parts of a layer by their names, in an order of their own."""

    NORMS = ("feed_forward_norm", "self_attention_norm")

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        pre_norm: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        for name in self.NORMS:
            setattr(self, name, nn.LayerNorm(d_model))
        self.feed_forward = ByModules(d_model, d_ff, activation=activation)
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        if "cross_attention_norm" in self.NORMS:
            self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.drop = nn.Dropout(dropout)
        self.p, self.first = dropout, pre_norm


@alternative("EncoderLayer")
class ByBranches(_Parts):
    """Both orders written out, with modules."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.first:
            x = x + self.drop(self.self_attention(self.self_attention_norm(x), mask=mask))
            return x + self.drop(self.feed_forward(self.feed_forward_norm(x)))
        x = self.self_attention_norm(x + self.drop(self.self_attention(x, mask=mask)))
        return self.feed_forward_norm(x + self.drop(self.feed_forward(x)))


@alternative("EncoderLayer")
class ByFunctions(_Parts):
    """The exercises before, as functions."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        wrap = pre_by_functional if self.first else post_by_functional
        p = self.p * self.training
        norms = [(n.weight, n.bias) for n in (self.self_attention_norm, self.feed_forward_norm)]
        x = wrap(x, lambda y: self.self_attention(y, mask=mask), *norms[0], dropout=p)
        return wrap(x, self.feed_forward, *norms[1], dropout=p)


@alternative("EncoderLayer")
class BySharedStep(_Parts):
    """One method for a step, whichever sublayer it is."""

    def step(self, x: Tensor, part: Any, norm: nn.LayerNorm) -> Tensor:
        said = part(norm(x) if self.first else x)
        total = x + F.dropout(said, self.p, self.training)
        return total if self.first else norm(total)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.step(
            self.step(x, lambda y: self.self_attention(y, mask=mask), self.self_attention_norm),
            self.feed_forward,
            self.feed_forward_norm,
        )


class _WriterParts(_Parts):
    NORMS = ("cross_attention_norm", "feed_forward_norm", "self_attention_norm")


@alternative("DecoderLayer")
class WriterWithBuffer(_WriterParts):
    """The causal mask is made once and kept in a buffer, which a state dict lists among the weights."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("past", torch.ones(64, 64, dtype=torch.bool).tril())

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        past = self.past[: x.shape[1], : x.shape[1]]
        for norm, work in (
            (self.self_attention_norm, lambda y: self.self_attention(y, mask=past)),
            (self.cross_attention_norm, lambda y: self.cross_attention(y, memory, memory_mask)),
            (self.feed_forward_norm, self.feed_forward),
        ):
            x = x + self.drop(work(norm(x))) if self.first else norm(x + self.drop(work(x)))
        return x


@alternative("DecoderLayer")
class WriterByFunctions(_WriterParts):
    """The exercises before, as functions."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        wrap = pre_by_modules if self.first else post_by_masks
        p = self.p if self.training else 0.0
        n, c, f = self.self_attention_norm, self.cross_attention_norm, self.feed_forward_norm
        past = causal_mask(x.shape[1], x.device)[None]
        x = wrap(x, lambda y: self.self_attention(y, mask=past), n.weight, n.bias, dropout=p)
        x = wrap(x, lambda y: self.cross_attention(y, memory, memory_mask), c.weight, c.bias, dropout=p)
        return wrap(x, self.feed_forward, f.weight, f.bias, dropout=p)


@alternative("DecoderLayer")
class WriterBySteps(_WriterParts):
    """One method for a step."""

    def step(self, x: Tensor, said: Any, norm: nn.LayerNorm) -> Tensor:
        if self.first:
            return self.drop(said(norm(x))) + x
        return norm(self.drop(said(x)) + x)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        T = x.shape[-2]
        past = ~torch.triu(torch.ones((T, T), dtype=torch.bool, device=x.device), diagonal=1)
        x = self.step(x, lambda y: self.self_attention(y, context=y, mask=past), self.self_attention_norm)
        x = self.step(x, lambda y: self.cross_attention(y, mask=memory_mask, context=memory), self.cross_attention_norm)
        return self.step(x, self.feed_forward, self.feed_forward_norm)


# --------------------------------------------------------------------------------------------------------- transformer


class _Whole(nn.Module):
    """What the alternatives below share: names and options."""

    READER: Any = ByBranches
    WRITER: Any = WriterBySteps

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        *,
        d_model: int = 512,
        n_heads: int = 8,
        d_ff: int = 2048,
        n_layers: int = 6,
        dropout: float = 0.1,
        pre_norm: bool = False,
        activation: str = "relu",
        tie_weights: bool = True,
        positions: str = "sinusoidal",
        positions_every_layer: bool = False,
        max_length: int = 512,
    ) -> None:
        super().__init__()
        if positions not in ("sinusoidal", "learned"):
            raise ValueError(positions)
        if tie_weights and source_vocab_size != target_vocab_size:
            raise ValueError("two vocabularies")
        options = {"dropout": dropout, "pre_norm": pre_norm, "activation": activation}
        sizes = (d_model, n_heads, d_ff)
        self.decoder_layers = nn.ModuleList([self.WRITER(*sizes, **options) for _ in range(n_layers)])
        self.encoder_layers = nn.ModuleList([self.READER(*sizes, **options) for _ in range(n_layers)])
        if positions == "learned":
            self.position_table = nn.Parameter(torch.randn(max_length, d_model) / 50)
        if tie_weights:
            self.embedding = nn.Embedding(target_vocab_size, d_model)
        else:
            self.output = nn.Linear(d_model, target_vocab_size, bias=False)
            self.target_embedding = nn.Embedding(target_vocab_size, d_model)
            self.source_embedding = nn.Embedding(source_vocab_size, d_model)
        if pre_norm:
            self.decoder_norm = nn.LayerNorm(d_model)
            self.encoder_norm = nn.LayerNorm(d_model)
        for part in self.children():
            if isinstance(part, nn.Embedding):
                part.weight.data /= d_model**0.5
        self.d, self.tied, self.pre, self.every = d_model, tie_weights, pre_norm, positions_every_layer
        self.learned = positions == "learned"
        self.drop = nn.Dropout(dropout)

    def add(self, x: Tensor) -> Tensor:
        if not self.learned:
            return x + by_complex_numbers(x.shape[1], self.d, x.device).to(x)
        if x.shape[1] > self.position_table.shape[0]:
            raise ValueError("too long")
        return x + self.position_table[: x.shape[1]]

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.decode(target, self.encode(source, source_mask), source_mask)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        x = self.run(source, "source_embedding", self.encoder_layers, *self.wide(source_mask, source))
        return self.encoder_norm(x) if self.pre else x

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor | None = None) -> Tensor:
        x = self.run(target, "target_embedding", self.decoder_layers, memory, *self.wide(source_mask, target))
        x = self.decoder_norm(x) if self.pre else x
        return self.logits(x, (self.embedding if self.tied else self.output).weight)

    def run(self, tokens: Tensor, name: str, layers: Any, *given: Tensor) -> Tensor:
        table = self.embedding if self.tied else getattr(self, name)
        x = self.drop(self.add(self.look_up(table, tokens) * self.d**0.5))
        for i, layer in enumerate(layers):
            x = layer(self.add(x) if i and self.every else x, *given)
        return x

    def look_up(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, table.weight)

    def wide(self, mask: Tensor | None, tokens: Tensor) -> tuple[Tensor, ...]:
        return () if mask is None else (mask[:, None],)

    def logits(self, x: Tensor, weight: Tensor) -> Tensor:
        return torch.matmul(x, weight.mT)


@alternative("Transformer")
class WholeInOne(_Whole):
    """One method runs either stack."""

    READER = BySharedStep


@alternative("Transformer")
class WholeByOneHot(_Whole):
    """Embedding as a product with one-hot rows, masks for every pair, logits by einsum."""

    READER, WRITER = ByFunctions, WriterByFunctions

    def look_up(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        rows = torch.arange(len(table.weight), device=tokens.device)
        return (tokens[..., None] == rows).to(table.weight.dtype) @ table.weight

    def wide(self, mask: Tensor | None, tokens: Tensor) -> tuple[Tensor, ...]:
        return () if mask is None else (mask[:, None].expand(-1, tokens.shape[1], -1),)

    def logits(self, x: Tensor, weight: Tensor) -> Tensor:
        return torch.einsum("btd,vd->btv", x, weight)


@alternative("Transformer")
class WholeWithSavedBuffer(_Whole):
    """The best known way to keep the sinusoids: a buffer that the state dict lists among the weights."""

    WRITER = WriterWithBuffer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("pe", by_complex_numbers(100, self.d))

    def add(self, x: Tensor) -> Tensor:
        return super().add(x) if self.learned else x + self.pe[: x.shape[1]]

    def look_up(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        return table(tokens)


# ------------------------------------------------------------------------------------------------------------ training


@alternative("shift_right")
def shift_by_pad(targets: Tensor, bos: int = 1) -> Tensor:
    """Pad on the left, cut on the right."""
    if targets.dim() != 2:
        raise ValueError(targets.dim())
    return F.pad(targets, (1, 0), value=bos)[:, :-1]


@alternative("shift_right")
def shift_by_roll(targets: Tensor, bos: int = 1) -> Tensor:
    """Roll, then write BOS over what came round."""
    _examples, _places = targets.shape
    shifted = targets.roll(1, dims=1)
    shifted[:, 0] = bos
    return shifted


@alternative("cross_entropy")
def by_logsumexp(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The logarithm of the sum less the logit; the places that count weigh alike."""
    if tuple(logits.shape[:-1]) != tuple(targets.shape) or not logits.is_floating_point():
        raise ValueError("shapes")
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError("share")
    y = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, -2)
    t = targets.flatten()
    weight = (t != ignore_index).to(y.dtype)
    weight = weight / weight.sum().clamp(min=1.0)
    t = torch.where(t == ignore_index, torch.zeros_like(t), t)
    top = y.logsumexp(-1)
    right = torch.take_along_dim(y, t[:, None], dim=1)[:, 0]
    surprise = top - (1 - label_smoothing) * right - label_smoothing * y.mean(-1)
    return torch.dot(weight, surprise).to(logits.dtype)


@alternative("cross_entropy")
def of_what_counts(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """Only the places that count are looked at; two means, mixed."""
    if logits.shape[:-1] != targets.shape or not 0 <= label_smoothing < 1 or not torch.is_floating_point(logits):
        raise ValueError((logits.shape, targets.shape, label_smoothing))
    rows = logits[targets != ignore_index]
    tokens = targets[targets != ignore_index]
    if not len(tokens):
        return logits.sum() * 0
    log_p = F.log_softmax(rows, dim=1, dtype=torch.promote_types(rows.dtype, torch.float32))
    hard = -log_p[torch.arange(len(tokens), device=tokens.device), tokens].mean()
    return torch.lerp(hard, -log_p.mean(), label_smoothing).to(logits.dtype)


@alternative("noam_learning_rate")
def by_cases(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """Two cases."""
    if step <= 0 or warmup <= 0 or d_model <= 0:
        raise ValueError(step)
    height = factor / math.sqrt(d_model * warmup)
    return height * step / warmup if step < warmup else height * math.sqrt(warmup / step)


@alternative("noam_learning_rate")
def by_powers(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The smaller of two products."""
    if min(step, d_model, warmup) < 1:
        raise ValueError(warmup)
    return min(factor * (d_model * step) ** -0.5, factor * step * math.pow(warmup, -1.5) / math.sqrt(d_model))


@alternative("average_checkpoints")
def by_sums(checkpoints: Any) -> dict[str, Tensor]:
    """Sums in double precision, made in tensors of their own."""
    if len(checkpoints) == 0:
        raise ValueError("none")
    total: dict[str, Tensor] = {}
    for state in checkpoints:
        if list(state) != list(checkpoints[0]):
            raise ValueError("other names")
        for name, x in state.items():
            if x.shape != checkpoints[0][name].shape:
                raise ValueError("other shapes")
            if not torch.is_floating_point(x):
                total[name] = x.clone()
            elif name in total:
                total[name] += x.double()
            else:
                total[name] = x.double().clone()
    return {
        name: (x / len(checkpoints)).to(checkpoints[0][name].dtype) if torch.is_floating_point(x) else x
        for name, x in total.items()
    }


@alternative("average_checkpoints")
def by_weights(checkpoints: Any) -> dict[str, Tensor]:
    """A product with equal weights."""
    if not checkpoints or any(set(state) != set(checkpoints[-1]) for state in checkpoints):
        raise ValueError("which?")
    share = torch.full((len(checkpoints),), 1 / len(checkpoints), dtype=torch.float64)
    averaged = {}
    for name in checkpoints[-1]:
        values = [state[name] for state in checkpoints]
        if len({x.shape for x in values}) > 1:
            raise ValueError(name)
        last = values[-1]
        averaged[name] = (
            torch.tensordot(share, torch.stack(values).double(), dims=1).to(last.dtype)
            if last.is_floating_point()
            else last.detach().clone()
        )
    return averaged


@alternative("training_step")
def cleared_by_hand(
    model: Any, optimizer: Any, inputs: Any, targets: Tensor, *, learning_rate: Any = None, label_smoothing: float = 0.0
) -> Tensor:
    """Gradients from autograd.grad, put where the optimiser looks for them."""
    loss = by_logsumexp(model(*inputs), targets, label_smoothing=label_smoothing)
    weights = [w for group in optimizer.param_groups for w in group["params"]]
    for w, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
        w.grad = gradient
    if learning_rate is not None:
        for group in optimizer.param_groups:
            group.update(lr=learning_rate)
    optimizer.step()
    return loss.detach()


@alternative("training_step")
def cleared_to_zero(
    model: Any, optimizer: Any, inputs: Any, targets: Tensor, *, learning_rate: Any = None, label_smoothing: float = 0.0
) -> Tensor:
    """Gradients are set to zero at the beginning, and again at the end."""
    if learning_rate is not None:
        for i in range(len(optimizer.param_groups)):
            optimizer.param_groups[i]["lr"] = float(learning_rate)
    optimizer.zero_grad(set_to_none=False)
    loss = by_logsumexp(model(*inputs), targets, label_smoothing=label_smoothing)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.clone().detach()


def _loss(logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=0, label_smoothing=label_smoothing)


@alternative("training_loop")
def loop_by_hand(
    model: Any, optimizer: Any, batches: Any, *, learning_rate: Any = None, label_smoothing: float = 0.0
) -> Tensor:
    """A count from 0, and a tensor that grows."""
    model.train(True)
    told = None
    for done, (inputs, targets) in enumerate(batches):
        if learning_rate is not None:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(done + 1)
        optimizer.zero_grad()
        loss = _loss(model(*inputs), targets, label_smoothing)
        loss.backward()
        optimizer.step()
        told = loss.data[None] if told is None else torch.cat([told, loss.data[None]])
    if told is None:
        raise ValueError("nothing to learn from")
    return told


@alternative("training_loop")
def loop_into_a_tensor(
    model: Any, optimizer: Any, batches: Any, *, learning_rate: Any = None, label_smoothing: float = 0.0
) -> Tensor:
    """The rates are listed first, the losses fill a tensor, and the step is that of another exercise."""
    batches = tuple(batches)
    if not batches:
        raise ValueError("empty")
    rates = [learning_rate and learning_rate(n) for n in range(1, len(batches) + 1)]
    model.train()
    losses = next(model.parameters()).new_empty(len(batches))
    for n, (batch, rate) in enumerate(zip(batches, rates, strict=True)):
        losses[n] = cleared_by_hand(model, optimizer, *batch, learning_rate=rate, label_smoothing=label_smoothing)
    return losses
