"""Define the tolerances of comparisons in one table, with a reason for each."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Tolerance:
    """Two numbers agree if ``|seen - expected| <= absolute + relative * |expected|``."""

    relative: float
    absolute: float
    reason: str


_CPU = {
    torch.float64: Tolerance(1e-9, 1e-10, "double precision: only the order of a few hundred additions may differ"),
    torch.float32: Tolerance(
        1e-4, 1e-5, "single precision: another order of summation or a fused kernel moves the last two digits"
    ),
    torch.bfloat16: Tolerance(4e-2, 4e-2, "8 bits of significand: one rounding is 0.4 %, an attention makes several"),
    torch.float16: Tolerance(1e-2, 5e-3, "11 bits of significand: one rounding is 0.05 %, an attention makes several"),
}
_CUDA = {
    **_CPU,
    torch.float32: Tolerance(2e-3, 1e-3, "TensorFloat-32, where switched on, multiplies with 11 bits of significand"),
}
PYTHON_FLOAT = Tolerance(
    1e-5, 1e-12, "a number of Python is often read from a float32 tensor, whose last two digits of seven may differ"
)
_EXACT = Tolerance(0.0, 0.0, "integers, truth values and text are compared exactly")


def choose_tolerance(dtype: torch.dtype, device: str = "cpu") -> Tolerance:
    """Return the tolerance for a dtype on a device type (``"cpu"`` or ``"cuda"``)."""
    table = _CUDA if device.startswith("cuda") else _CPU
    return table.get(dtype, _EXACT)
