"""The lesson of chapter 03 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
import nbclient
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tfcourse import attention
from tfcourse.attention import (
    attention_backward,
    attention_cost,
    cosine_attention,
    masked_attention_weights,
    projected_attention,
    scaled_dot_product_attention,
    soft_lookup,
)

from .lesson import KernelOverFiles

LESSON = Path(__file__).parents[2] / "chapters" / "03_scaled_dot_product" / "lesson.md"
SOURCE = LESSON.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The lesson, executed twice, each time in a fresh kernel."""
    executed = []
    for _ in range(2):
        notebook = jupytext.reads(SOURCE, fmt="md:myst")
        folder = tmp_path_factory.mktemp("lesson")
        nbclient.NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            kernel_manager_class=KernelOverFiles,
            resources={"metadata": {"path": str(folder)}},
        ).execute()
        executed.append(notebook)
    return executed


@pytest.fixture(scope="module")
def outputs(runs: list[Any]) -> list[Any]:
    return [output for cell in runs[0].cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.fixture(scope="module")
def printed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


@pytest.fixture(scope="module")
def figures(outputs: list[Any]) -> list[str]:
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    return [page for page in pages if page.startswith(("<svg", '<div class="tfcourse-drawing"'))]


def test_the_lesson_runs_without_an_error_or_a_warning(outputs: list[Any]) -> None:
    assert [output for output in outputs if output.output_type == "error"] == []
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


def _shown(cell: Any) -> tuple[str, list[Any]]:
    """What a cell prints, in one piece however the kernel cut it, and what it displays."""
    text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    return text, [output.get("data") for output in cell.outputs if output.output_type != "stream"]


def test_the_lesson_gives_the_same_outputs_on_every_run(runs: list[Any]) -> None:
    for one, other in zip(*(run.cells for run in runs), strict=True):
        if one.cell_type == "code":
            assert _shown(one) == _shown(other), one.source


def test_the_lesson_links_and_uses_every_public_function() -> None:
    linked = set(re.findall(r"\{py:func\}`~tfcourse\.attention\.(\w+)`", SOURCE))
    used = set(re.findall(r"\w+", " ".join(re.findall(r"```\{code-cell\}.*?```", SOURCE, flags=re.DOTALL))))
    functions = {name for name in attention.__all__ if name != "AttentionCost"}
    assert linked == functions
    assert functions <= used


def test_every_figure_has_a_description_and_a_numbered_caption(figures: list[str], outputs: list[Any]) -> None:
    captions = re.findall(r"^(?:\*|    caption=\")Figure 3\.(\d+)\. ", SOURCE, flags=re.MULTILINE)
    assert [int(n) for n in captions] == list(range(1, len(figures) + 3)), "drawings, plots and two explorers"
    for figure in figures:
        description = re.search(r'role="img" aria-label="([^"]+)"', figure)
        assert description is not None
        assert len(description[1]) > 60
    assert not [output for output in outputs if {"image/png", "image/svg+xml"} & set(output.get("data", {}))]


def test_no_two_figures_of_the_page_share_an_identifier(figures: list[str]) -> None:
    identifiers = [re.findall(r'\sid="([^"]+)"', figure) for figure in figures]
    flat = list(itertools.chain(*identifiers))
    assert flat
    assert len(flat) == len(set(flat))


def test_the_dial_says_something_where_no_script_runs(outputs: list[Any]) -> None:
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    (dial,) = [page for page in pages if page.startswith("<lookup-explorer")]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in dial.split("<tr>")]
    assert ["c = 0.5: Forecast 3.00 m", "0.57", "0.29", "0.14"] in rows
    assert "http" not in dial


# ---------------------------------------------------------------------------------------------------------------------
# The numbers. A claim is a piece of the lesson's text and the values of the numbers in it, computed here.

NUMBER = re.compile(
    r"(?P<fraction>\\tfrac\{(\d+)\}\{(\d+)\}|\\tfrac(\d)(\d)|\b(\d+)/(\d+)\b)"
    r"|(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d+\.\d+|\d+))(?![\d])"
)
LN2 = math.log(2)
KEYS = torch.tensor([[2, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, -1]], dtype=torch.float64)
VALUES = torch.tensor([[4.2, 2.1], [2.1, 6.3], [0.0, 21.0]], dtype=torch.float64)
QUERIES = LN2 * torch.tensor([[1, 1, 1, 0], [0, 2, -2, -4]], dtype=torch.float64)


def prose() -> str:
    """The text a reader sees: no code cells, no roles, no numbers of sections, figures and chapters."""
    text = re.sub(r"\A---.*?\n---\n", "", SOURCE, flags=re.DOTALL)
    text = re.sub(r"```\{code-cell\}.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"\{[a-z:]+\}`[^`]*`|^\([a-z0-9-]+\)=$|`[^`\n]*`", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"[Ff]igures? \d\.\d+|\*\*It takes\*\* about \d+ minutes|section \d\.\d\.\d|[Cc]hapters? \d\d(?: and \d\d)?|In 2017",
        "",
        text,
    )
    return re.sub(r"\s+", " ", text.replace("{,}", ",").replace("\u2212", "-"))


def tokens(text: str) -> Iterator[tuple[str, float, float]]:
    """Each number in the text: as written, its value, and how far the truth may be from it."""
    for match in NUMBER.finditer(text):
        if match["fraction"]:
            above, below = (int(group) for group in match.groups()[1:7] if group)
            yield match[0], above / below, 1e-9
        else:
            decimals = len(match[0].partition(".")[2])
            yield match[0], float(match[0].replace(",", "")), 0.5 * 10**-decimals + 1e-9


def fixed_weights() -> Any:
    """What `experiments/fixed_weights.py` has recorded."""
    return json.loads((LESSON.parents[2] / "experiments" / "results" / "fixed_weights.json").read_text("utf-8"))


def layer_flops(N: int, D: int = 512) -> tuple[int, int]:
    """The operations of an attention layer with its four projections, and of a recurrent layer, counted."""
    x, w = torch.empty(N, D, device="meta"), torch.empty(D, D, device="meta")
    with FlopCounterMode(display=False) as layer:
        projected_attention(x, x, w, w, w) @ w
    with FlopCounterMode(display=False) as recurrent:
        for x_t in x.split(1):
            x_t @ w + x_t @ w
    return layer.get_total_flops(), recurrent.get_total_flops()


def claims() -> Iterator[tuple[str, list[float]]]:
    """The lesson's statements with numbers in them, and what the numbers ought to be, in the order of the text."""
    yield from words_by_hand()
    unscaled = soft_lookup(QUERIES[0], KEYS, VALUES).tolist()
    mean = VALUES.mean(dim=0).tolist()
    weights = masked_attention_weights(QUERIES, KEYS)
    first, second = scaled_dot_product_attention(QUERIES, KEYS, VALUES).tolist()
    a, u = weights[0].tolist(), torch.softmax(KEYS @ QUERIES[0], dim=0).tolist()
    heights, views = VALUES[:, 0].tolist(), VALUES[:, 1].tolist()

    yield r"multiples of $\ln 2 \approx 0.693$", [2, LN2]
    for name, exponential, weight in zip(
        ("(2 + 1 + 1 + 0)\\ln 2 = 4", "(1 + 1 + 0 + 0)\\ln 2 = 2"), (16, 4), u, strict=False
    ):
        parts = [float(n) for n in re.findall(r"\d", name)]
        yield (
            rf"${name} \ln 2$ | {exponential} | {exponential}/21 ≈ {weight:.3f} |",
            [*parts, 2, exponential, weight, weight],
        )
    yield "| 1 | 1/21 ≈ 0.048 |", [1, u[2], u[2]]
    yield (
        r"$\tfrac{16}{21}\cdot 4.2 + \tfrac{4}{21}\cdot 2.1 + \tfrac{1}{21}\cdot 0 = 3.2 + 0.4 + 0 = 3.6$ metres",
        [u[0], 4.2, u[1], 2.1, u[2], 0, *(x * y for x, y in zip(u, heights, strict=True)), unscaled[0]],
    )
    yield "$1.6 + 1.2 + 1.0 = 3.8$ nautical miles", [*(x * y for x, y in zip(u, views, strict=True)), unscaled[1]]
    yield "plain average of the book, 2.1 metres and 9.8 nautical miles", mean
    yield (
        "$c = 0.5$: we shall meet its forecast of 3.0 metres",
        [0.5, soft_lookup(QUERIES[0] / 2, KEYS, VALUES)[0].item()],
    )
    yield (
        r"scores become $2 \ln 2$, $\ln 2$ and $0$, their exponentials 4, 2 and 1, and the weights $\tfrac47$, $\tfrac27$,"
        r" $\tfrac17$. The forecast is $2.4 + 0.6 + 0 = 3.0$ metres of waves (there it is) and $1.2 + 1.8 + 3.0 = 6.0$",
        [2, 2, 2, 0, 4, 2, 1, *a]
        + [w * h for w, h in zip(a, heights, strict=True)]
        + [first[0]]
        + [w * view for w, view in zip(a, views, strict=True)]
        + [first[1]],
    )
    yield "the forecast is 1.2 metres with a view of 14.1 nautical miles", second
    yield "The scaled and the unscaled forecast differ: 3.0 metres against 3.6", [first[0], unscaled[0]]

    def slope(gap: float) -> float:
        p = 1 / (1 + math.exp(-gap))
        return p * (1 - p)

    yield "8 for the width 64 of the original Transformer", [math.sqrt(64), 64]
    yield "| 1 | 0.731 | 0.197 |", [1, 1 / (1 + math.exp(-1)), slope(1)]
    yield "| 8 | 0.9997 | 0.00034 |", [8, 1 / (1 + math.exp(-8)), slope(8)]
    yield "about 600 times less than at a gap of 1", [round(slope(1) / slope(8), -2), 1]
    yield "For widths from 1 to 1024", [1, 1024]

    shouted = KEYS.clone()
    shouted[1] *= 4
    loud = masked_attention_weights(QUERIES, shouted)[0].tolist()
    cosines = torch.nn.functional.cosine_similarity(QUERIES[:1], KEYS).tolist()
    yield (
        r"from $\tfrac47, \tfrac27, \tfrac17$ into $\tfrac{4}{21}, \tfrac{16}{21}, \tfrac{1}{21}$. By shouting, the breeze"
        " page has overtaken the gale, and the forecast drops from 3.0 to 2.4 metres",
        [*a, *loud, first[0], scaled_dot_product_attention(QUERIES, shouted, VALUES)[0, 0].item()],
    )
    yield (
        r"\tfrac{4}{\sqrt{18}} \approx 0.943, \quad \tfrac{2}{\sqrt{6}} \approx 0.816, \quad 0",
        [4, 18, cosines[0], 2, 6, cosines[1], cosines[2]],
    )

    hidden = torch.tensor([False, True, True])
    proper = scaled_dot_product_attention(QUERIES, KEYS, VALUES, hidden)[0, 0].item()
    left = (weights * hidden)[0]
    yield (
        r"weights $\tfrac47, \tfrac27, \tfrac17$ as before, then replace the first by 0. The rest is"
        r" $0, \tfrac27, \tfrac17$. The forecast is 0.6 metres",
        [*a, 0, *left.tolist(), (left @ VALUES)[0].item()],
    )
    yield (
        r"the others share the whole: $0, \tfrac23, \tfrac13$. The forecast is 1.4 metres",
        [*masked_attention_weights(QUERIES, KEYS, hidden)[0].tolist(), proper],
    )
    yield r"Its weights sum to $\tfrac37 \approx 0.43$", [left.sum().item()] * 2
    yield "gives the same 1.40 metres both times", [proper]
    yield "the forecasts 3.0, 6.0 and 1.2, 14.1", [*first, *second]
    yield "with 20,000 logs to learn from and 127 coefficients", [20_000, 20 * 6 + 6 + 1]
    fixed = fixed_weights()
    yield "hidden layers of 256, on the same flattened row, trained on 768,000 logs", [256, 768_000]
    yield "and 19,200 logs", [300 * 64]
    yield "its error is 0.08", [statistics.mean(fixed["errors by logs"]["768000"])]
    yield "98,561 parameters", [fixed["parameters"]]
    yield "with the 19,200 logs of attention it is no better than the linear map", [19_200]
    yield "reads logs of 20 pages only", [20]
    yield "Each log has 20 pages", [20]
    yield "also on logs of 60 pages", [60]
    yield "attention, with 54 parameters", [6 * 4 + 6 * 4 + 6 * 1]
    yield (
        r"$D = 512$ and $D_h = 64$. Two matrices: $2 \cdot 512 \cdot 64 = 65,536$ parameters",
        [512, 64, 2, 512, 64, 65_536],
    )
    yield "One: $512^2 = 262,144$", [512, 2, 512**2]
    yield "keys of width 64 instead of 512", [64, 512]
    yield "in a subspace of 64 directions", [64]

    upstream = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    pull = [w * (h - first[0]) for w, h in zip(a, heights, strict=True)]
    grad_q = attention_backward(QUERIES[:1], KEYS, VALUES, upstream)[0][0].tolist()
    assert sum(pull) == pytest.approx(0, abs=1e-12)
    yield "average is the forecast, 3.0 metres", [first[0]]
    yield r"above average, $\bar a_j - 3.0$ |", [first[0]]
    yield "| gale | 4/7 | 4.2 | 1.2 | 0.686 |", [a[0], 4.2, 4.2 - first[0], pull[0]]
    yield "| breeze | 2/7 | 2.1 | -0.9 | -0.257 |", [a[1], 2.1, 2.1 - first[0], pull[1]]
    yield "| calm | 1/7 | 0 | -3.0 | -0.429 |", [a[2], 0, -first[0], pull[2]]
    yield r"$\tfrac12 (2 \cdot 0.686 - 0.257) \approx 0.557$", [0.5, 2, pull[0], -pull[1], grad_q[0]]

    gibi, mebi = 1024**3, 1024**2
    yield "a book of 65,536 tokens", [65_536]
    yield "that is 16 GiB for *one* matrix", [4 * 65_536**2 / gibi]
    yield "an output of perhaps 16 MiB", [4 * 65_536 * 64 / mebi]
    yield "$e^{89}$ is too much", [math.ceil(math.log(torch.finfo(torch.float32).max))]
    yield r"$\tfrac12 + 1 = 1.5$", [0.5, 1, 1.5]
    yield r"$\tfrac12 \cdot 0 + 1 \cdot 2.1 = 2.1$", [0.5, 0, 1, 2.1, 2.1]
    yield r"$\tfrac12 \cdot 1.5 + 1 = 1.75$", [0.5, 1.5, 1, 0.5 * 1.5 + 1]
    yield r"$\tfrac12 \cdot 2.1 + 1 \cdot 4.2 = 5.25$", [0.5, 2.1, 1, 4.2, 0.5 * 2.1 + 4.2]
    yield "$5.25 / 1.75 = 3.0$ metres", [5.25, 1.75, first[0]]

    cost = attention_cost(1024, 1024, 64, 64)
    yield (
        r"Take $N = 1024$ and $D_h = D_v = 64$: $2 \cdot 1024^2 \cdot 128 = 268,435,456$ operations, and"
        r" $4 \cdot (4 \cdot 65,536 + 1,048,576) = 5,242,880$ bytes",
        [1024, 64, 2, 1024, 2, 128, cost.flops, 4, 4, 1024 * 64, 1024**2, cost.bytes],
    )
    yield "of which the weights are 80%", [100 * 4 * 1024**2 / cost.bytes]
    yield "At $N = 256$ weights and everything else are equal", [next(n for n in range(1, 999) if n * n == 4 * n * 64)]
    yield "224 by 224 pixels is a sequence of 50,176 tokens", [224, 224, 224**2]
    yield "would take 10 GB", [4 * 50_176**2 / 1e9]

    yield "four times as many matrices, $16 N D^2$ FLOP", [4 * 4, 2]
    yield "cheaper than that while $N < 2D$", [(16 - 8) / 4]
    yield (
        "Counted at width 512, it takes 143 MFLOP for 64 tokens and 1,611 for 512,",
        [
            512,
            layer_flops(64)[0] / 1e6,
            64,
            layer_flops(512)[0] / 1e6,
            512,
        ],
    )
    yield "a recurrent layer 67 and 537", [layer_flops(64)[1] / 1e6, layer_flops(512)[1] / 1e6]
    yield "About 0.9, where sixteen equal weights would be 0.06", [0.919, 1 / 16]
    yield "width 256, scores not divided", [256]
    yield "With the division it is about 0.25", [0.245]

    yield "ends at 65,504", [torch.finfo(torch.float16).max]
    yield "width 128 whose entries are all 30", [128, 30]
    yield r"$128 \cdot 30^2 = 115,200$", [128, 30, 2, 128 * 30**2]
    yield "could shrink it to 10,182", [128 * 30**2 / math.sqrt(128)]
    yield (
        "only 8 significant bits, so that $256 + 1$ is still 256",
        [8, 256, 1, (torch.tensor(256.0).bfloat16() + 1).item()],
    )

    scores = KEYS @ QUERIES.T / 2  # (S, T)
    wrong_axis = torch.softmax(scores, dim=1)[:, 0]
    added = torch.softmax(scores[:, 0] + hidden, dim=0)[0].item()
    yield "Carrow Head's forecast of 3.0 metres", [first[0]]
    yield "| 3.6 m; with wide heads", [unscaled[0]]
    yield (
        "weights sum to 1.5, and the forecast is 4.41 m: higher than any wave",
        [wrong_axis.sum().item(), (wrong_axis @ VALUES[:, 0]).item()],
    )
    yield "the gale keeps the weight 0.33 instead of 0", [added, 0]


GIVEN = (
    "| gale | 2 | 1 | 1 | 0 | 4.2 | 2.1 |",
    "| breeze | 1 | 1 | 0 | 0 | 2.1 | 6.3 |",
    "| calm | 0 | 0 | 0 | -1 | 0 | 21 |",
)


def test_every_number_that_the_lesson_states_is_true() -> None:
    text = prose()
    for snippet, truths in claims():
        assert snippet in text, f"the lesson no longer says: {snippet}"
        stated = list(tokens(snippet))
        assert len(stated) == len(truths), f"{snippet}: {[s for s, _, _ in stated]} against {truths}"
        for (written, value, tolerance), truth in zip(stated, truths, strict=True):
            assert abs(value - truth) <= tolerance, f"{snippet!r} says {written}, but it is {truth}"


def test_the_lesson_states_no_number_that_is_not_checked() -> None:
    text = prose()
    for snippet in (*GIVEN, *(snippet for snippet, _ in claims())):
        text = text.replace(snippet, " ")
    unchecked = re.findall(r"[^.|]{0,30}(?<![\w.,^{])(?:\d+\.\d+|\d{1,3}(?:,\d{3})+|\d\d+|\d+/[1-9])[^.|]{0,20}", text)
    assert unchecked == []


def test_the_log_in_the_text_is_the_log_of_the_calculations() -> None:
    text = prose()
    for row, page, outcome in zip(GIVEN, KEYS.tolist(), VALUES.tolist(), strict=True):
        assert row in text
        assert [value for _, value, _ in tokens(row)] == [*page, *outcome]


def test_the_experiments_end_as_the_text_says(printed: str) -> None:
    def errors(name: str) -> float:
        found = re.search(rf"^{name} +mean squared error ([\d.]+)$", printed, flags=re.MULTILINE)
        assert found is not None, name
        return float(found[1])

    assert errors("attention") * 10 < errors("mean of the log"), "more than ten times smaller"
    assert errors("attention, 60 pages") < errors("attention"), "profits from a longer log"
    assert errors("fixed weights") > 0.9 * errors("mean of the log"), "hardly beats the mean"
    assert errors("equal mixture") < 0.36 * errors("fixed weights"), "removes two thirds of the error"
    few, many = (fixed_weights()["errors by logs"][logs] for logs in ("19200", "768000"))
    assert all(error < 2.5 * errors("attention") for error in many), "comes close to attention"
    assert min(few) > errors("fixed weights") - 0.05, "with few logs no better than the linear map"
    shuffles = re.findall(r"^(pages|queries|keys) shuffled.* (the same|different)$", printed, flags=re.MULTILINE)
    assert [verdict for _, verdict in shuffles] == ["the same", "the same", "different", "different"]
    rows = dict(re.findall(r"^(scaled_dot_product|tiled)_attention +\[([\d, ]+)\]$", printed, flags=re.MULTILINE))
    plain, tiled = ([int(n) for n in rows[name].split(",")] for name in ("scaled_dot_product", "tiled"))
    assert {b // a for a, b in itertools.pairwise(plain)} == {4}, "slope 2"
    assert {b // a for a, b in itertools.pairwise(tiled)} == {2}, "slope 1"
    assert (plain[0], tiled[0], tiled[-1]) == (16_384, 8_192, 131_072)
    assert plain[-1] > 4_000_000
    for sentence in (
        "1 call with the mask = 6 calls without it",
        "all gradients finite: True",
        "gradient after the repair: tensor(nan)",
        "rank of the merged matrix: 64 of 512",
        "9 sizes, formula and count agree to the last digit",
        "mask on cpu: RuntimeError, as on a GPU",
        "log as it is    forbidden 1.40   zeroed afterwards 0.60",
        "gale rewritten  forbidden 1.40   zeroed afterwards 0.78",
    ):
        assert sentence in printed


def test_the_descriptions_of_the_figures_state_what_the_experiments_found(printed: str, figures: list[str]) -> None:
    described = " ".join(re.findall(r'aria-label="([^"]+)"', "".join(figures)))
    dots = re.search(r"dot product: ([\d.]+) m to ([\d.]+) m\ncosine: +([\d.]+) m to ([\d.]+) m", printed)
    assert dots is not None
    assert f"falls from {float(dots[1]):.1f} to {float(dots[2]):.1f} metres" in described
    assert dots[3] == dots[4]
    assert f"stays constant at {dots[3]} metres" in described
    assert cosine_attention(QUERIES, KEYS, VALUES, scale=4.0)[0, 0].item() == pytest.approx(float(dots[3]), abs=0.005)
    assert "Carrow Head receives 0.57, 0.29 and 0.14" in described
    assert [f"{w:.2f}" for w in masked_attention_weights(QUERIES, KEYS)[0].tolist()] == ["0.57", "0.29", "0.14"]


def test_scores_of_random_vectors_behave_as_the_section_on_scale_describes(runs: list[Any]) -> None:
    """The curves of figure 3.5: its description and the text speak of these numbers."""
    (cell,) = [cell for cell in runs[0].cells if cell.source.startswith("generator") and "measured" in cell.source]
    names: dict[str, Any] = {"torch": torch, "math": math, **{n: getattr(attention, n) for n in attention.__all__}}
    exec(cell.source, names)  # the lesson's own cell
    scaled, unscaled = (names["measured"][flag] for flag in (True, False))
    for width, (variance, largest, room) in zip(names["widths"], scaled, strict=True):
        assert variance == pytest.approx(1, rel=0.1), width
        assert largest < 0.3
        assert room == pytest.approx(0.87, abs=0.01)
    for width, (variance, _, _) in zip(names["widths"], unscaled, strict=True):
        assert variance == pytest.approx(width, rel=0.1)
    assert unscaled[-1][1] > 0.9
    assert unscaled[-2][1] == pytest.approx(0.919, abs=0.002), "the answer of the guess"
    assert scaled[-2][1] == pytest.approx(0.245, abs=0.002)
    assert unscaled[-1][2] < 0.1


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As in the lesson: more threads only get into each other's way with tensors this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_attention_has_learned_to_compare_wind_with_wind(runs: list[Any]) -> None:
    """Figure 3.11: two entries close to 19, everything else close to zero, and a value matrix that passes the height."""
    cells = [cell.source for cell in runs[0].cells if cell.cell_type == "code"]
    (training,) = [source for source in cells if source.startswith("def make_logs")]
    names: dict[str, Any] = {"torch": torch, "math": math, **{n: getattr(attention, n) for n in attention.__all__}}
    exec(training, names)
    with torch.no_grad():
        learned = names["merge_query_key"](names["w_q"], names["w_k"])
        wind = learned.diagonal()[:2].clone()
        learned.diagonal()[:2] = 0
        torch.testing.assert_close(wind, torch.full((2,), 19.0), atol=1.0, rtol=0)
        assert learned.abs().max() < wind.min() / 20, "below a twentieth of these"
        torch.testing.assert_close(names["w_v"].flatten(), torch.tensor([0.0, 0, 0, 0, 0, 1]), atol=0.1, rtol=0)


def words_by_hand() -> Iterator[tuple[str, list[float]]]:
    """What the lesson works out for the word *it*."""
    query = [0.5 * thing + pronoun for thing, pronoun in zip((0, 0, 2, 4), (2, 6, 0, 0), strict=True)]
    fern, own = query[1] / 2, query[1] * 0.5 / 2
    scores = [query[0] / 2, query[2] / 2, 0, fern, 0, own, query[3] / 2, query[3] / 2]
    grown = [math.exp(score) for score in scores]
    yield "= (2, 6, 1, 2)$", query
    yield "*Ana* gets the score $2 / 2 = 1$, *watered* 0.5, *the* and *as* 0,", [query[0], 2, scores[0], scores[1], 0]
    yield "*fern* $6 / 2 = 3$,", [query[1], 2, fern]
    yield r"*it* itself $6 \cdot 0.5 / 2 = 1.5$;", [query[1], 0.5, 2, own]
    yield "The exponentials are 2.72, 1.65, 1, 20.09, 1, 4.48, 2.72 and 2.72,", grown
    yield "their sum is 36.37:", [sum(grown)]
    yield "$20.09 / 36.37 = 0.55$.", [grown[3], sum(grown), grown[3] / sum(grown)]
    yield "*fern* receives 0.65.", [grown[3] / sum(grown[:6])]


def test_words_print_the_weights_that_the_text_tells(printed: str) -> None:
    rows = {line.split()[0]: line for line in printed.splitlines() if " watered " in line}
    assert "fern 0.55" in rows["it"]
    weights = {word: float(weight) for word, weight in re.findall(r"(\w+) (\d\.\d\d)", rows["dry"])}
    assert max(weights, key=weights.get) == "fern"
    assert re.findall(r"\d\.\d\d", rows["the"]) in (["0.12"] * 8, ["0.13"] * 8)
