"""The pretend accelerator as PyTorch loads it: ``import torch`` calls :func:`load` wherever this module is installed.

PyTorch finds it by the entry point ``torch.backends``, as it finds the devices of other vendors. It stands beside ``accelerator.so``.
"""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import torch

NAME = "pretend"


def load() -> None:
    """Make the device known to PyTorch, with the functions that ``torch.cuda`` has for its own."""
    library = ctypes.CDLL(str(Path(__file__).with_name("accelerator.so")), mode=ctypes.RTLD_GLOBAL)
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _module(library))
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)


def _module(library: ctypes.CDLL) -> ModuleType:
    for name in ("memory_allocated", "max_memory_allocated"):
        getattr(library, f"pretend_{name}").restype = ctypes.c_int64
    for name in ("is_initialized", "is_in_bad_fork"):
        getattr(library, f"pretend_{name}").restype = ctypes.c_bool
    library.pretend_seed.argtypes = [ctypes.c_uint64]
    module = ModuleType(f"torch.{NAME}")
    module.__dict__.update(
        is_available=lambda: True,
        is_initialized=library.pretend_is_initialized,
        _is_in_bad_fork=library.pretend_is_in_bad_fork,
        device_count=lambda: 1,
        current_device=lambda: 0,
        set_device=lambda device: None,
        device=lambda device: nullcontext(),
        synchronize=lambda device=None: None,
        empty_cache=lambda: None,
        memory_allocated=lambda device=None: library.pretend_memory_allocated(),
        max_memory_allocated=lambda device=None: library.pretend_max_memory_allocated(),
        reset_peak_memory_stats=lambda device=None: library.pretend_reset_peak_memory_stats(),
        manual_seed=library.pretend_seed,
        manual_seed_all=library.pretend_seed,
        get_rng_state=lambda device=None: torch.ops.pretend.get_rng_state(),
        set_rng_state=lambda state, device=None: torch.ops.pretend.set_rng_state(state),
        get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16],
    )
    return module
