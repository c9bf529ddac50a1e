"""The check of ``mirostat``: a controller for the surprisal of a text."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, share
from autograder.checks.combined_rows import also_asking, joined
from tfcourse import sampling


def _case(draw: Draw, rows_of_logits: int, tokens: int = 9) -> Case:
    """Rows with different limits, none of which equals a token's surprisal."""
    while True:
        logits = draw.normal(rows_of_logits, tokens, scale=1.5)
        mu = torch.linspace(1.6, 4.2, rows_of_logits)[draw.permutation(rows_of_logits)]
        surprise = -torch.log_softmax(logits.double(), dim=-1) / torch.log(torch.tensor(2.0))
        apart = (surprise - mu.unsqueeze(-1)).abs() > 0.02
        if bool(apart.all()) and bool((surprise.amin(dim=-1) < mu).all()):
            break
    prop = {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}
    return Case({"logits": logits, "mu": mu, "tau": 3.0, "eta": 0.4}, props={"generator": prop})


def steered(draw: Draw) -> Case:
    """Twelve texts, each with its own mu."""
    return _case(draw, 12)


def slow(draw: Draw) -> Case:
    """Another target, and a slower controller."""
    return _case(draw, 10).with_arguments(tau=2.2, eta=0.1)


def holes(draw: Draw) -> Case:
    """Logits of which some are excluded already; a limit below the surprisal of the best token."""
    case = _case(draw, 14)
    logits, mu = case.arguments["logits"].clone(), case.arguments["mu"].clone()
    logits[0, :3] = logits[1, 4:] = -torch.inf
    logits[2] = torch.linspace(0, 0.3, 9)
    mu[:3] = torch.tensor([9.0, 11.0, 0.7])
    return case.with_arguments(logits=logits, mu=mu)


def exactly(draw: Draw) -> Case:
    """Half of the tokens have exactly the surprise mu, in rows of double precision with a mu of single precision."""
    case = exact(0, 1, 1, mu=torch.full((3,), 2.0), tau=0.5, eta=0.0)(draw)
    while True:
        seed = int(draw.integers(1, 10**6))
        p = torch.softmax(case.arguments["logits"], dim=-1)
        drawn, single = (torch.multinomial(q, 1, generator=torch.Generator().manual_seed(seed)) for q in (p, p.float()))
        # Not the best token in every row, and the same tokens in float32.
        if bool((p.gather(1, drawn) < 0.5).any()) and torch.equal(drawn, single):
            return replace(case, props={"generator": {"kind": "Generator", "init": {"seed": seed}}})


def more(draw: Draw, size: int) -> Case:
    """More rows."""
    return _case(draw, 2 * size, 6)


def no_target(draw: Draw) -> Case:
    """A target of 0 bits: the surest text, for which nothing need be drawn."""
    return steered(draw).with_arguments(tau=0.0)


def runaway(draw: Draw) -> Case:
    """An eta below 0 steers away from the target."""
    return steered(draw).with_arguments(eta=-0.4)


def one_mu(draw: Draw) -> Case:
    """One mu for all rows."""
    case = steered(draw)
    return case.with_arguments(mu=case.arguments["mu"][:1])


def any_controller(draw: Draw) -> Case:
    """One to four texts of few tokens, with any target and any speed."""
    while True:
        case = _case(draw, 1 + int(draw.integers(0, 4)), 3 + int(draw.integers(0, 5)))
        case = case.with_arguments(tau=share(draw, 0.3, 5.0), eta=share(draw, 0.0, 1.5))
        if _same_tokens(case):
            return case


def _same_tokens(case: Case) -> bool:
    """Whether the same tokens are drawn in single and in double precision."""
    logits, mu, tau, eta = (case.arguments[name] for name in ("logits", "mu", "tau", "eta"))
    seed = case.props["generator"]["init"]["seed"] if case.props else 0
    drawn = [
        sampling.mirostat(numbers, mu, tau=tau, eta=eta, generator=torch.Generator().manual_seed(seed))[0]
        for numbers in (logits, logits * 1.0001, logits * 0.9999)
    ]
    return all(torch.equal(drawn[0], other) for other in drawn[1:])


MIROSTAT = Exercise(
    reference=sampling.mirostat,
    rows=(
        rows.numbers(
            2.5,
            steered,
            steered,
            title="The tokens are those that the generator draws, and mu moves against a surprisal that is too large.",
            gradients=False,
        ),
        also_asking(
            rows.many(
                1,
                any_controller,
                count=48,
                title="Any target and learning rate are right, for one text and for several.",
            ),
            rows.numbers(0, slow, gradients=False),
        ),
        rows.edge(
            0.5,
            holes,
            exactly,
            name="edges",
            title="What was excluded is not drawn, a surprisal of mu is allowed, the best token is left whatever mu is.",
            gradients=False,
            dtypes=(),
        ),
        joined(
            "manner",
            "The inputs are left as they were, and there is no Python loop over rows.",
            0.5,
            rows.inputs_kept(1, steered),
            rows.no_loop(1, more, over="rows"),
        ),
        rows.errors(
            0.5,
            steered,
            no_target,
            runaway,
            one_mu,
            title="A target of 0, an eta below 0, and a mu that is not one for each row, are a ValueError.",
        ),
    ),
)
