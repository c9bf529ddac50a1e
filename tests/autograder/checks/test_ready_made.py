"""What does an exercise by itself earns nothing where that is the exercise, although its numbers are right, and is welcome elsewhere."""

import sys

import einops
import pytest
import torch
from einops.layers.torch import Rearrange
from torch import nn

from autograder.checks import check

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def rnn_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    return torch.rnn_tanh_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh)


def lstm_cell(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    return torch.lstm_cell(x, (h, c), weight_ih, weight_hh, bias_ih, bias_hh)


def gru_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    return torch.gru_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh)


def layer(kind, weights, *, suffixes=("",), **options):
    """A layer of PyTorch's with these weights, one set of four for each layer and direction."""
    made = kind(weights[0][0].shape[1], weights[0][1].shape[1], batch_first=True, **options)
    for k, four in enumerate(weights):
        suffix = suffixes[k % len(suffixes)]
        for name, value in zip(NAMES, four, strict=True):
            setattr(made, f"{name}_l{k // len(suffixes)}{suffix}", nn.Parameter(value))
    return made


def rnn_forward(x, weight_ih, weight_hh, bias_ih, bias_hh, h_0=None):
    made = layer(nn.RNN, [(weight_ih, weight_hh, bias_ih, bias_hh)])
    states, last = made(x, None if h_0 is None else h_0[None])
    return states, last[0]


def lstm_forward(x, weight_ih, weight_hh, bias_ih, bias_hh, state=None, mask=None):
    made = layer(nn.LSTM, [(weight_ih, weight_hh, bias_ih, bias_hh)])
    states, (h, c) = made(x)
    return states, (h[0], c[0])


def bidirectional_forward(x, forward_weights, backward_weights, mask=None):
    return layer(nn.LSTM, [forward_weights, backward_weights], suffixes=("", "_reverse"), bidirectional=True)(x)


def stacked_forward(x, layers, mask=None):
    return layer(nn.LSTM, layers, num_layers=len(layers))(x)


def gradient_norm_through_time(x, weight_ih, weight_hh, bias_ih, bias_hh, grad_last, h_0=None):
    with torch.enable_grad():
        h = torch.zeros_like(grad_last, requires_grad=True) if h_0 is None else h_0.clone().requires_grad_()
        states = []
        for x_t in x.unbind(1):
            h = torch.tanh(x_t @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)
            states.append(h)
        gradients = torch.autograd.grad(h, states, grad_last)
    return torch.stack([gradient.norm(dim=-1) for gradient in gradients], dim=1)


def clip_gradient_norm(gradients, max_norm):
    parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    norm = nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters], norm


def sequence_negative_log_likelihood(logits, targets, mask=None):
    costs = nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (costs if mask is None else costs.masked_fill(~mask, 0.0)).sum(1)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError(n_heads)
    return einops.rearrange(x, "b t (h d) -> b h t d", h=n_heads)


def merge_heads(x):
    if x.ndim != 4:
        raise ValueError(x.shape)
    return Rearrange("b h t d -> b t (h d)")(x)


@pytest.mark.parametrize(
    ("ready_made", "function"),
    [
        (rnn_cell, "rnn_tanh_cell"),
        (rnn_forward, "RNN"),
        (gradient_norm_through_time, "grad"),
        (clip_gradient_norm, "clip_grad_norm_"),
        (lstm_cell, "lstm_cell"),
        (lstm_forward, "LSTM"),
        (gru_cell, "gru_cell"),
        (bidirectional_forward, "LSTM"),
        (stacked_forward, "LSTM"),
        (sequence_negative_log_likelihood, "cross_entropy"),
        (split_heads, "einops"),
        (merge_heads, "einops"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
@pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])
def test_what_is_ready_made_earns_nothing_and_is_named(ready_made, function, hidden):
    verdict = check(ready_made, hidden=hidden)
    assert verdict.score == 0
    (message,) = {finding.message for finding in verdict.findings}
    assert function in message.partition(", which")[0].removeprefix("it calls ").split(", ")


def test_what_is_profiled_before_is_profiled_again_afterwards():
    sys.setprofile(lambda frame, event, argument: None)
    try:
        mine = sys.getprofile()
        check(split_heads)
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)


def test_einops_is_welcome_elsewhere():
    def soft_lookup(query, keys, values):
        return einops.einsum(torch.softmax(einops.einsum(keys, query, "n d, d -> n"), dim=0), values, "n, n d -> d")

    assert "einops" not in str(check(soft_lookup))
