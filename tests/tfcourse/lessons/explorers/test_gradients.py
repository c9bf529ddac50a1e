"""The gradient explorer tells the truth about the norms, in HTML that no name can break."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser

import pytest
import torch
from torch import Tensor

from tfcourse.lessons.explorers.gradients import GradientExplorer, gradient_explorer

DIAL = (0.5, 1.0, 1.5)


def norms_of(settings: int = 3, steps: int = 4, seed: int = 0) -> Tensor:
    exponents = 20 * torch.rand(settings, steps, generator=torch.Generator().manual_seed(seed)) - 15
    return 10.0**exponents


def shown(norms: dict[str, Tensor] | None = None, **options: object) -> GradientExplorer:
    arguments: dict[str, object] = {"settings": DIAL, "setting_name": "scale", "caption": "How far?", **options}
    given = {"plain": norms_of(), "gated": norms_of(seed=1)} if norms is None else norms
    return gradient_explorer(given, **arguments)  # type: ignore[arg-type]


class Page(HTMLParser):
    """The elements of a page in order, the texts of its table cells, and the JSON."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, list[str]] = {"th": [], "td": [], "summary": [], "script": []}
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_data(self, data: str) -> None:
        if self._inside in self.texts:
            self.texts[self._inside][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def page_of(explorer: GradientExplorer) -> Page:
    return Page(explorer._repr_html_())


def test_json_holds_the_norms_to_three_significant_digits() -> None:
    norms = norms_of()
    data = json.loads(page_of(shown({"plain": norms})).texts["script"][0])
    torch.testing.assert_close(torch.tensor(data["norms"][0]), norms, rtol=5.1e-3, atol=0)
    assert data["cells"] == ["plain"]
    assert data["settings"] == list(DIAL)
    assert data["settingName"] == "scale"


def test_without_a_start_the_middle_setting_and_the_first_step_are_shown() -> None:
    assert shown().start == (0, 1, 0)
    assert json.loads(shown(start=(1, 2, 3)).to_json())["start"] == {"cell": 1, "setting": 2, "step": 3}


def test_fallback_has_a_table_a_cell_with_every_norm_and_the_chosen_one_unfolded() -> None:
    norms = {"plain": norms_of(), "gated": norms_of(seed=1)}
    explorer = shown(norms, start=(1, 0, 0))
    page = page_of(explorer)
    assert page.tags.count("table") == 2
    expected = [
        text
        for cell in norms.values()
        for row in ["corner", *cell.tolist()]
        for text in ([""] if row == "corner" else [f"{float(f'{norm:.3g}'):.2g}" for norm in row])
    ]
    assert page.texts["td"] == expected
    assert page.texts["th"] == ["1", "2", "3", "4", "0.5", "1", "1.5"] * 2
    assert "<details open><summary>gated</summary>" in explorer._repr_html_()
    assert explorer._repr_html_().count("<details open>") == 1


def test_norms_of_zero_and_of_every_precision_that_need_gradients_are_accepted() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        norms = torch.tensor([[0.0, 1.0]] * 3, dtype=dtype, requires_grad=True)
        assert shown({"plain": norms}).norms[0] == ((0.0, 1.0),) * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setting_name": ""}, "a name for its dial"),
        ({"settings": (1.0, 0.5, 1.5)}, "ascend"),
        ({"settings": ()}, "ascend"),
        ({"settings": (0.5, 1.0)}, r"\(2, T\).*\(3, 4\)"),
        ({"norms": {}}, "got 0"),
        ({"norms": {name: norms_of() for name in "abcde"}}, "got 5"),
        ({"norms": {"plain": norms_of(3, 1)}}, "two steps"),
        ({"norms": {"plain": norms_of()[0]}}, r"\(4,\)"),
        ({"norms": {"plain": norms_of(), "gated": norms_of(3, 5)}}, r"\[4, 5\]"),
        ({"norms": {"plain": -norms_of()}}, "not negative"),
        ({"norms": {"plain": torch.full((3, 4), math.inf)}}, "finite"),
        ({"norms": {"plain": torch.full((3, 4), math.nan)}}, "finite"),
        ({"start": (2, 0, 0)}, r"start=\(2, 0, 0\)"),
        ({"start": (0, 3, 0)}, "points outside"),
        ({"start": (0, 0, -1)}, "points outside"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_values(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shown(**options)  # type: ignore[arg-type]


def test_text_form_says_what_there_is_to_see() -> None:
    assert repr(shown()) == "GradientExplorer: plain, gated; 3 settings of scale; 4 steps. How far?"
