"""List the names that an answer may import and call without a remark."""

from __future__ import annotations


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Modules that may be imported, with the modules below them.
MODULES = _split_names(
    "tfcourse numpy matplotlib mpl_toolkits einops tqdm jaxtyping seaborn pandas torch IPython google.colab "
    "__future__ abc bisect cmath collections contextlib copy dataclasses datetime decimal enum fractions functools "
    "heapq itertools json math numbers operator pprint random re statistics string textwrap time timeit typing "
    "typing_extensions warnings logging platform tempfile pathlib inspect importlib.metadata importlib os sys types "
    "io pdb tracemalloc unicodedata unittest google"
)
# Of these, what runs text, compiles, records, or reaches below Python.
BUT_NOT = _split_names(
    "numpy.ctypeslib numpy.f2py numpy.distutils torch.library torch.package torch.utils.cpp_extension torch.ops torch.fx torch.export "
    "torch.overrides torch.utils.data.datapipes importlib.util importlib.machinery unittest.mock IPython.core.builtin_trap "
    "IPython.core.compilerop IPython.core.debugger IPython.core.extensions IPython.core.hooks IPython.core.inputtransformer2 "
    "IPython.core.magic IPython.core.magics IPython.core.payload IPython.core.ultratb"
)
BUILTINS = _split_names("eval exec compile globals __import__ __builtins__ __loader__ __spec__")
# Dunder names of an object's own that say nothing; others lead to what Python itself is made of.
DUNDERS = _split_names(
    "__abs__ __add__ __aenter__ __aexit__ __aiter__ __all__ __and__ __anext__ __annotations__ __bool__ __call__ "
    "__class__ __contains__ __delattr__ __delitem__ __dict__ __doc__ __enter__ __eq__ __exit__ __file__ __future__ __path__ __float__ "
    "__floordiv__ __format__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __init__ __init_subclass__ __int__ "
    "__invert__ __iter__ __le__ __len__ __lt__ __main__ __matmul__ __mod__ __module__ __mul__ __name__ __ne__ "
    "__neg__ __new__ __next__ __or__ __post_init__ __pow__ __qualname__ __radd__ __repr__ __reversed__ __rmatmul__ "
    "__rmul__ __rsub__ __rtruediv__ __setattr__ __setitem__ __slots__ __str__ __sub__ __truediv__ __version__ "
    "__xor__ __class_getitem__ __set_name__ __get__ __set__ __traceback__ __cause__ __context__ __del__ __match_args__"
)
# Of any object: what leads to a frame, a namespace, a program or PyTorch's inner parts.
TELLING = _split_names(
    "_C _dispatch _getframe _current_frames addaudithook ag_frame ast_transformers call_boxed cpp_extension cr_frame "
    "ctypeslib exec_module f_back f_builtins f_globals f_locals f2py fork forkpty get_objects get_referents get_referrers "
    "getoutput gi_frame input_transformers_cleanup input_transformers_post load_module popen posix_spawn posix_spawnp "
    "redispatch run_cell run_cell_async run_cell_magic run_code run_line_magic runstring safe_execfile set_custom_exc "
    "setprofile settrace system tb_frame user_global_ns user_module user_ns"
)
# Magics that change nothing but how the notebook looks or is timed, and programs that every second notebook calls.
MAGICS = _split_names(
    "autoreload automagic capture cd colors conda config debug env history html javascript js latex load_ext ls lsmagic magic markdown "
    "matplotlib pdb pinfo pinfo2 pip pprint precision prun pwd pylab reset reset_selective svg tensorboard time "
    "timeit who who_ls whos writefile xmode"
)
SHELL = _split_names("apt apt-get cat cd date echo free head ls lscpu nproc nvidia-smi pip pip3 pwd uname wc")
