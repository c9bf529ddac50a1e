"""The exercises of chapter 12 solved in other ways than the reference: right, so each must get all the points."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or a class as a solution of an exercise."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = name
        ALTERNATIVES.setdefault(name, []).append(solution)
        return solution

    return enter


def _wide(*tensors: Tensor) -> list[Tensor]:
    return [tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in tensors]


def _softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores.softmax(-1)
    filled = scores.masked_fill(~mask, -1e30)
    powers = (filled - filled.amax(-1, keepdim=True)).exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


def _odd_tables(k: Tensor, v: Tensor, key_offsets: Tensor, value_offsets: Tensor | None) -> None:
    if key_offsets.shape[0] % 2 != 1 or key_offsets.shape[-1] != k.shape[-1]:
        raise ValueError("key_offsets")
    if value_offsets is not None and (value_offsets.shape[0] % 2 != 1 or value_offsets.shape[-1] != v.shape[-1]):
        raise ValueError("value_offsets")


@alternative("relative_attention")
def relative_with_tables(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_offsets: Tensor,
    value_offsets: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """A vector for every pair: slow, and right."""
    _odd_tables(k, v, key_offsets, value_offsets)
    dtype = q.dtype
    q, k, v, key_offsets = _wide(q, k, v, key_offsets)
    T, S = q.shape[-2], k.shape[-2]
    offset = torch.arange(S, device=q.device)[None] - torch.arange(T, device=q.device)[:, None]

    def vectors(table: Tensor) -> Tensor:
        reach = (len(table) - 1) // 2
        return table[torch.clip(offset, -reach, reach) + reach]  # (T, S, D)

    scores = torch.einsum("...td,...sd->...ts", q, k) + torch.einsum("...td,tsd->...ts", q, vectors(key_offsets))
    weights = _softmax(scores / math.sqrt(q.shape[-1]), mask)
    out = torch.einsum("...ts,...sd->...td", weights, v)
    if value_offsets is not None:
        out = out + torch.einsum("...ts,tsd->...td", weights, vectors(_wide(value_offsets)[0]))
    return out.to(dtype)


@alternative("relative_attention")
def relative_by_adding_to_keys(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_offsets: Tensor,
    value_offsets: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Keys and values of each query are moved by its offsets, as the equations are written."""
    _odd_tables(k, v, key_offsets, value_offsets)
    dtype = q.dtype
    q, k, v, key_offsets = _wide(q, k, v, key_offsets)
    i, j = torch.arange(q.shape[-2], device=q.device), torch.arange(k.shape[-2], device=q.device)
    reach = key_offsets.shape[0] // 2
    keys = k[..., None, :, :] + key_offsets[(j - i[:, None]).clamp(-reach, reach) + reach]  # (..., T, S, Dh)
    weights = _softmax((q[..., None, :] * keys).sum(-1) * q.shape[-1] ** -0.5, mask)
    values = v[..., None, :, :].expand(*v.shape[:-2], len(i), *v.shape[-2:])
    if value_offsets is not None:
        reach = value_offsets.shape[0] // 2
        values = values + _wide(value_offsets)[0][(j - i[:, None]).clamp(-reach, reach) + reach]
    return (weights[..., None] * values).sum(-2).to(dtype)


@alternative("alibi_slopes")
def slopes_by_recursion(n_heads: int) -> Tensor:
    """As the paper's code does."""
    if n_heads < 1:
        raise ValueError("no heads")

    def slopes(n: int) -> list[float]:
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return slopes(closest) + slopes(2 * closest)[0::2][: n - closest]

    return torch.tensor(slopes(n_heads))


@alternative("alibi_slopes")
def slopes_by_powers(n_heads: int) -> Tensor:
    """With tensors."""
    if n_heads <= 0:
        raise ValueError("no heads")
    power = 1
    while 2 * power <= n_heads:
        power *= 2
    first = 2.0 ** (-8.0 * torch.arange(1, power + 1) / power)
    more = 2.0 ** (-4.0 * torch.arange(1, 2 * power + 1, 2) / power)
    return torch.cat([first, more])[:n_heads]


@alternative("alibi_bias")
def bias_by_outer_products(slopes: Tensor, T: int, S: int, *, start: int = 0) -> Tensor:
    """An einsum of slopes and distances."""
    places = torch.arange(start, start + T, device=slopes.device, dtype=slopes.dtype)
    keys = torch.arange(S, device=slopes.device, dtype=slopes.dtype)
    return torch.einsum("h,ts->hts", slopes, -torch.abs(keys[None, :] - places[:, None]))


@alternative("alibi_bias")
def bias_by_distances(slopes: Tensor, T: int, S: int, *, start: int = 0) -> Tensor:
    """The largest of both differences."""
    away = (
        torch.arange(S, device=slopes.device).view(1, 1, S)
        - torch.arange(T, device=slopes.device).view(1, T, 1)
        - start
    )
    return slopes.view(-1, 1, 1) * torch.minimum(away, -away)


@alternative("rotary_frequencies")
def frequencies_by_exp(d_head: int, theta: float = 10_000.0, device: torch.device | str | None = None) -> Tensor:
    """Exponentials of logarithms."""
    if d_head % 2 == 1:
        raise ValueError("odd")
    steps = torch.arange(d_head // 2, dtype=torch.float64, device=device)
    return torch.exp(-2 * steps / d_head * math.log(theta))


@alternative("rotary_frequencies")
def frequencies_as_quotients(d_head: int, theta: float = 10_000.0, device: torch.device | str | None = None) -> Tensor:
    """One over a power, as most code has it."""
    if d_head % 2:
        raise ValueError("odd")
    return 1.0 / theta ** (torch.arange(0, d_head, 2, device=device).double() / d_head)


@alternative("rotary_embedding")
def turned_as_complex_numbers(
    x: Tensor, positions: Tensor, frequencies: Tensor, *, interleaved: bool = False
) -> Tensor:
    """A pair is a complex number, and turning it a product."""
    size = len(frequencies)
    if 2 * size > x.shape[-1]:
        raise ValueError("too many frequencies")
    (wide,) = _wide(x)
    angle = positions[..., None].double() * frequencies.double()
    turn = torch.complex(angle.cos().to(wide.dtype), angle.sin().to(wide.dtype))
    head, tail = wide[..., : 2 * size], x[..., 2 * size :]
    if not interleaved:
        head = torch.stack([head[..., :size], head[..., size:]], -1).flatten(-2)
    pairs = torch.view_as_real(torch.view_as_complex(head.contiguous().unflatten(-1, (-1, 2))) * turn)
    turned = pairs.flatten(-2) if interleaved else torch.cat([pairs[..., 0], pairs[..., 1]], -1)
    return torch.cat([turned.to(x.dtype), tail], -1)


@alternative("rotary_embedding")
def turned_by_half_a_head(x: Tensor, positions: Tensor, frequencies: Tensor, *, interleaved: bool = False) -> Tensor:
    """Multiplied with cosines, and with sines after the halves have changed places."""
    size = frequencies.shape[0]
    if x.shape[-1] < 2 * size:
        raise ValueError("too many frequencies")
    (wide,) = _wide(x)
    angle = positions.double().unsqueeze(-1) * frequencies.double()
    angle = angle.repeat_interleave(2, -1) if interleaved else torch.cat([angle, angle], -1)
    head = wide[..., : 2 * size]
    if interleaved:
        other = torch.stack([-head[..., 1::2], head[..., ::2]], -1).flatten(-2)
    else:
        other = torch.cat([-head[..., size:], head[..., :size]], -1)
    turned = head * angle.cos().to(wide.dtype) + other * angle.sin().to(wide.dtype)
    return torch.cat([turned.to(x.dtype), x[..., 2 * size :]], -1)


@alternative("rotary_score")
def score_of_complex_numbers(q: Tensor, k: Tensor, offset: Tensor, frequencies: Tensor) -> Tensor:
    """The real part of query times conjugated key times the turn."""
    if q.shape[-1] != 2 * len(frequencies):
        raise ValueError("pairs")
    wide_q, wide_k = _wide(q, k)
    angle = offset.double().unsqueeze(-1) * frequencies.double()
    turn = torch.complex(angle.cos().to(wide_q.dtype), angle.sin().to(wide_q.dtype))
    a = torch.complex(wide_q[..., ::2], wide_q[..., 1::2])
    b = torch.complex(wide_k[..., ::2], wide_k[..., 1::2])
    return (a * b.conj() * turn).sum(-1).real.to(q.dtype)


@alternative("rotary_score")
def score_of_a_turned_query(q: Tensor, k: Tensor, offset: Tensor, frequencies: Tensor) -> Tensor:
    """Turn the query by the offset and leave the key."""
    if q.shape[-1] != 2 * len(frequencies):
        raise ValueError("pairs")
    wide_q, wide_k = _wide(q, k)
    angle = offset.double().unsqueeze(-1) * frequencies.double()
    cos, sin = angle.cos().to(wide_q.dtype), angle.sin().to(wide_q.dtype)
    a, b = wide_q[..., ::2], wide_q[..., 1::2]
    return ((a * cos - b * sin) * wide_k[..., ::2] + (a * sin + b * cos) * wide_k[..., 1::2]).sum(-1).to(q.dtype)


@alternative("convert_rotary_weight")
def converted_by_an_order(weight: Tensor, n_heads: int, *, to: str) -> Tensor:
    """An order of rows."""
    if to not in {"half", "interleaved"} or weight.shape[0] % (2 * n_heads):
        raise ValueError(to)
    size = weight.shape[0] // n_heads
    order = torch.cat([torch.arange(0, size, 2), torch.arange(1, size, 2)])
    order = order if to == "half" else order.argsort()
    rows = (torch.arange(n_heads)[:, None] * size + order).flatten().to(weight.device)
    return weight[rows]


@alternative("convert_rotary_weight")
def converted_by_views(weight: Tensor, n_heads: int, *, to: str) -> Tensor:
    """As a published script does it."""
    if to == "half":
        first, second = -1, 2
    elif to == "interleaved":
        first, second = 2, -1
    else:
        raise ValueError(to)
    if len(weight) % (2 * n_heads):
        raise ValueError("heads")
    table = weight[:, None] if weight.ndim == 1 else weight
    pairs = table.unflatten(0, (n_heads, -1)).unflatten(1, (first, second))
    return pairs.swapaxes(1, 2).reshape(weight.shape)


@alternative("interpolate_positions")
def squeezed_as_a_product(positions: Tensor, scale: float) -> Tensor:
    """Whole numbers times a real one."""
    if scale <= 0 or scale > 1:
        raise ValueError(scale)
    return torch.mul(positions if positions.dtype == torch.float64 else positions.float(), scale)


@alternative("interpolate_positions")
def squeezed_as_a_quotient(positions: Tensor, scale: float) -> Tensor:
    """Divided by the inverse."""
    if not (0 < scale <= 1):
        raise ValueError(scale)
    (wide,) = _wide(positions) if positions.is_floating_point() else (positions.float(),)
    return wide / (1 / scale)


@alternative("ntk_theta")
def base_by_logarithms(theta: float, factor: float, d_head: int) -> float:
    """Logarithms add."""
    if factor < 1 or d_head % 2 or d_head <= 2:
        raise ValueError(factor)
    return math.exp(math.log(theta) + math.log(factor) * d_head / (d_head - 2))


@alternative("ntk_theta")
def base_from_the_slowest_pair(theta: float, factor: float, d_head: int) -> float:
    """Solved for the base at which the slowest pair is slowed by the factor."""
    if factor < 1 or d_head % 2 or d_head <= 2:
        raise ValueError(factor)
    slowest = theta ** (-(d_head - 2) / d_head) / factor
    return float(slowest ** (-d_head / (d_head - 2)))


@alternative("scale_frequencies_llama3")
def scaled_by_wavelength(
    frequencies: Tensor, *, factor: float = 8.0, low: float = 1.0, high: float = 4.0, original_length: int = 8192
) -> Tensor:
    """By wavelengths, as the released code does."""
    wavelength = 2 * math.pi / frequencies
    smooth = (original_length / wavelength - low) / (high - low)
    blended = (1 - smooth) * frequencies / factor + smooth * frequencies
    slow = wavelength > original_length / low
    fast = wavelength < original_length / high
    return torch.where(slow, frequencies / factor, torch.where(fast, frequencies, blended))


@alternative("scale_frequencies_llama3")
def scaled_by_lerp(
    frequencies: Tensor, *, factor: float = 8.0, low: float = 1.0, high: float = 4.0, original_length: int = 8192
) -> Tensor:
    """Between both ends."""
    turns = frequencies * original_length / math.tau
    share = torch.clip((turns - low) / (high - low), 0.0, 1.0)
    return torch.lerp(frequencies / factor, frequencies, share)


@alternative("loss_by_position")
def surprise_by_cross_entropy(logits: Tensor, targets: Tensor, *, bins: int) -> Tensor:
    """PyTorch's own loss for each place."""
    if bins < 1 or targets.shape[1] % bins:
        raise ValueError(bins)
    (wide,) = _wide(logits)
    each = nn.functional.cross_entropy(wide.transpose(1, 2), targets, reduction="none")
    return torch.stack([part.mean() for part in each.chunk(bins, dim=1)]).to(logits.dtype)


@alternative("loss_by_position")
def surprise_of_places(logits: Tensor, targets: Tensor, *, bins: int) -> Tensor:
    """The mean of each place first."""
    if bins < 1 or targets.shape[1] % bins:
        raise ValueError(bins)
    (wide,) = _wide(logits)
    each = wide.logsumexp(-1) - wide.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return each.mean(0).view(bins, -1).mean(1).to(logits.dtype)


class _Rotary(nn.Module):
    """What all solutions of the layer share: its maps."""

    def __init__(self, d_model: int, n_heads: int, *, theta: float = 10_000.0, bias: bool = False) -> None:
        super().__init__()
        if n_heads < 1 or d_model % (2 * n_heads):
            raise ValueError("heads")
        self.n_heads, self.theta = n_heads, theta
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

    def heads(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, (B, H, T, Dh)."""
        return [
            getattr(self, name)(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for name in ("q_proj", "k_proj", "v_proj")
        ]

    def angles(self, x: Tensor, start: int, frequencies: Tensor | None, scale: float) -> Tensor:
        """Angles of all places, (T, Dh / 2), in double precision."""
        if frequencies is None:
            width = x.shape[-1] // self.n_heads
            frequencies = self.theta ** -(torch.arange(0, width, 2, device=x.device).double() / width)
        places = torch.arange(start, start + x.shape[1], device=x.device).double() * scale
        return torch.outer(places, frequencies.double())

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal attention, and the output map."""
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        out = scores.masked_fill(future, -torch.inf).softmax(-1) @ v
        result: Tensor = self.o_proj(out.transpose(1, 2).flatten(2))  # type: ignore[operator]
        return result


@alternative("RotaryAttention")
class RotaryByHalves(_Rotary):
    """Halves that change places."""

    def forward(self, x: Tensor, start: int = 0, frequencies: Tensor | None = None, scale: float = 1.0) -> Tensor:
        q, k, v = self.heads(x)
        angle = self.angles(x, start, frequencies, scale).repeat(1, 2)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)

        def turn(y: Tensor) -> Tensor:
            a, b = y.chunk(2, -1)
            return y * cos + torch.cat([-b, a], -1) * sin

        return self.attend(turn(q), turn(k), v)


@alternative("RotaryAttention")
class RotaryByMatrices(_Rotary):
    """A rotation matrix for each place and pair."""

    def forward(self, x: Tensor, start: int = 0, frequencies: Tensor | None = None, scale: float = 1.0) -> Tensor:
        q, k, v = self.heads(x)
        angle = self.angles(x, start, frequencies, scale)
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        matrix = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)  # (T, Dh / 2, 2, 2)

        def turn(y: Tensor) -> Tensor:
            pairs = y.unflatten(-1, (2, -1)).transpose(-1, -2)  # (B, H, T, Dh / 2, 2)
            return torch.einsum("tpij,bhtpj->bhtip", matrix, pairs).flatten(-2)

        return self.attend(turn(q), turn(k), v)


@alternative("RotaryAttention")
class RotaryByDifferences(_Rotary):
    """Nothing is turned: the scores follow from the difference of the places."""

    def forward(self, x: Tensor, start: int = 0, frequencies: Tensor | None = None, scale: float = 1.0) -> Tensor:
        q, k, v = self.heads(x)
        angle = self.angles(x, start, frequencies, scale)
        between = angle[:, None] - angle[None]  # (T, T, Dh / 2)
        cos, sin = between.cos().to(x.dtype), between.sin().to(x.dtype)
        (a, b), (c, d) = q.chunk(2, -1), k.chunk(2, -1)
        along = a[:, :, :, None] * c[:, :, None] + b[:, :, :, None] * d[:, :, None]
        across = a[:, :, :, None] * d[:, :, None] - b[:, :, :, None] * c[:, :, None]
        scores = (along * cos + across * sin).sum(-1) / math.sqrt(q.shape[-1])
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).tril()
        heads = _softmax(scores, seen) @ v
        result: Tensor = self.o_proj(heads.transpose(1, 2).flatten(2))  # type: ignore[operator]
        return result
