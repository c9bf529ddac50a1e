"""The gradient explorer tells the truth about the norms."""

from __future__ import annotations

import torch
from torch import Tensor

from tfcourse.lessons.explorers.gradients import GradientExplorer, gradient_explorer

from .examples import data_of, tables_of

DIAL = (0.5, 1.0, 1.5)
NORMS = 10.0 ** (20 * torch.rand(2, 3, 4, generator=torch.Generator().manual_seed(0)) - 15)


def shown(norms: dict[str, Tensor], start: tuple[int, int, int] | None = None) -> GradientExplorer:
    return gradient_explorer(norms, DIAL, setting_name="scale", caption="c", start=start)


def test_json_holds_the_norms_to_three_significant_digits_and_the_table_to_two() -> None:
    explorer = shown({"plain": NORMS[0], "gated": NORMS[1]}, start=(1, 2, 3))
    data = data_of(explorer)
    torch.testing.assert_close(torch.tensor(data["norms"]), NORMS, rtol=5.1e-3, atol=0)
    assert (data["cells"], data["settings"], data["settingName"]) == (["plain", "gated"], list(DIAL), "scale")
    assert data["start"] == {"cell": 1, "setting": 2, "step": 3}
    for table, norms in zip(tables_of(explorer), NORMS, strict=True):
        assert [table[0][1:], [row[0] for row in table[1:]]] == [["1", "2", "3", "4"], ["0.5", "1", "1.5"]]
        expected = [[f"{float(f'{norm:.3g}'):.2g}" for norm in row] for row in norms.tolist()]
        assert [row[1:] for row in table[1:]] == expected


def test_without_a_start_the_middle_setting_and_the_first_step_are_shown() -> None:
    assert shown({"plain": NORMS[0]}).start == (0, 1, 0)


def test_norms_of_zero_and_of_every_precision_that_need_gradients_are_accepted() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        norms = torch.tensor([[0.0, 1.0]] * 3, dtype=dtype, requires_grad=True)
        assert shown({"plain": norms}).norms[0] == ((0.0, 1.0),) * 3
