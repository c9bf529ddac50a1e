"""What an answer may import and call without a word: a short list, kept as data. Everything else is named to the lecturer.

A module that is not here is named with its import. ``ALL`` allows all public names of a module but other modules, which are here by
themselves or not at all; ``PACKAGE`` allows the modules below it as well. A set of names allows just these.
"""

from __future__ import annotations

from collections.abc import Mapping

ALL = frozenset({"*"})
PACKAGE = frozenset({"**"})


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: Mapping[str, frozenset[str]] = {
    # Whole packages.
    "tfcourse": PACKAGE,
    "numpy": PACKAGE,
    "matplotlib": PACKAGE,
    "mpl_toolkits": PACKAGE,
    "einops": PACKAGE,
    "tqdm": PACKAGE,
    "jaxtyping": ALL,
    "seaborn": ALL,
    "pandas": ALL,
    "numpy.random": ALL,
    "numpy.testing": ALL,
    "numpy.linalg": ALL,
    "google": frozenset(),
    "google.colab": _names("drive files output userdata"),
    # Of PyTorch, the modules that everybody uses.
    "torch": ALL,
    "torch.autograd": _names(
        "Function Variable anomaly_mode backward detect_anomaly enable_grad functional grad gradcheck gradgradcheck "
        "inference_mode no_grad profiler set_detect_anomaly set_grad_enabled"
    ),
    "torch.autograd.functional": ALL,
    "torch.autograd.profiler": _names("profile record_function"),
    "torch.amp": ALL,
    "torch.backends": ALL,
    "torch.backends.cudnn": ALL,
    "torch.backends.mps": ALL,
    "torch.backends.cuda": _names("is_built matmul"),
    "torch.compiler": _names("disable"),
    "torch.cpu": ALL,
    "torch.cuda": ALL,
    "torch.cuda.amp": ALL,
    "torch.distributions": PACKAGE,
    "torch.fft": ALL,
    "torch.func": _names("grad grad_and_value hessian jacfwd jacrev jvp stack_module_state vjp vmap"),
    "torch.jit": _names("annotate export ignore is_scripting is_tracing script script_if_tracing unused Final"),
    "torch.linalg": ALL,
    "torch.mps": ALL,
    "torch.nn": ALL,
    "torch.nn.functional": ALL,
    "torch.nn.init": ALL,
    "torch.nn.modules": PACKAGE,
    "torch.nn.parameter": ALL,
    "torch.nn.utils": ALL,
    "torch.nn.utils.rnn": ALL,
    "torch.nn.utils.parametrizations": ALL,
    "torch.optim": ALL,
    "torch.optim.lr_scheduler": ALL,
    "torch.profiler": _names("ProfilerActivity profile record_function"),
    "torch.random": ALL,
    "torch.special": ALL,
    "torch.testing": ALL,
    "torch.types": ALL,
    "torch.utils": frozenset(),
    "torch.utils.checkpoint": _names("checkpoint checkpoint_sequential"),
    "torch.utils.data": ALL,
    "torch.version": ALL,
    # Of Python's library, what computes, names and prints.
    **dict.fromkeys(
        _names(
            "__future__ abc bisect cmath collections collections.abc contextlib copy dataclasses datetime decimal enum "
            "fractions functools heapq itertools json math numbers pprint random re statistics string textwrap time timeit "
            "typing typing_extensions warnings logging platform tempfile pathlib"
        ),
        ALL,
    ),
    "operator": ALL,
    "inspect": _names("Parameter Signature getdoc getsource isclass isfunction signature"),
    "importlib": _names("reload"),
    "importlib.metadata": _names("version"),
    "os": _names("chdir cpu_count environ getcwd getenv getpid kill linesep listdir makedirs mkdir name path sep"),
    "os.path": ALL,
    "sys": _names(
        "argv byteorder exit float_info getsizeof maxsize path platform stderr stdout version version_info executable"
    ),
    "types": _names("MappingProxyType NoneType SimpleNamespace"),
    "IPython": ALL,
    "IPython.core": frozenset(),
    "IPython.core.interactiveshell": _names("InteractiveShell"),
    "io": _names("BytesIO StringIO"),
    "pdb": _names("set_trace"),
    "tracemalloc": ALL,
    "unicodedata": ALL,
    "IPython.display": ALL,
    "unittest": _names("TestCase main"),
}

# Of a module that is listed whole, these are named all the same: they tell whether somebody looks, run text, or hide what is called.
BUT_NOT: Mapping[str, frozenset[str]] = {
    "torch": _names("classes is_autocast_enabled is_grad_enabled is_inference_mode_enabled library ops package"),
    "numpy": _names("ctypeslib distutils f2py fromfile"),
    "pandas": _names("eval read_pickle to_pickle"),
    "IPython": _names("embed get_ipython start_ipython"),
}

BUILTINS = _names(
    "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BufferError "
    "BytesWarning ConnectionError DeprecationWarning EOFError Ellipsis EnvironmentError Exception ExceptionGroup "
    "False FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError "
    "ImportWarning IndentationError IndexError InterruptedError KeyError KeyboardInterrupt LookupError MemoryError "
    "ModuleNotFoundError NameError None NotImplemented NotImplementedError OSError OverflowError "
    "PendingDeprecationWarning PermissionError ReferenceError RecursionError RuntimeError RuntimeWarning "
    "StopAsyncIteration StopIteration SyntaxError SystemError SystemExit TimeoutError True TypeError "
    "UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeWarning UserWarning ValueError "
    "Warning ZeroDivisionError __annotations__ __debug__ __doc__ __file__ __name__ abs aiter all anext any ascii "
    "bin bool breakpoint bytearray bytes callable chr classmethod complex delattr dict dir display divmod enumerate "
    "exit filter float format frozenset getattr hasattr hash help hex id input int isinstance issubclass iter len "
    "list locals map max memoryview min next object oct open ord pow print property quit range repr reversed round "
    "set setattr slice sorted staticmethod str sum super tuple type zip copyright credits license"
)

# Names of an object's own that say nothing; all others with two underscores lead to what Python itself is made of.
DUNDERS = _names(
    "__abs__ __add__ __aenter__ __aexit__ __aiter__ __all__ __and__ __anext__ __annotations__ __bool__ __call__ "
    "__class__ __contains__ __delattr__ __delitem__ __doc__ __enter__ __eq__ __exit__ __file__ __float__ "
    "__floordiv__ __format__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __init__ __init_subclass__ __int__ "
    "__invert__ __iter__ __le__ __len__ __lt__ __main__ __matmul__ __mod__ __module__ __mul__ __name__ __ne__ "
    "__neg__ __new__ __next__ __or__ __post_init__ __pow__ __qualname__ __radd__ __repr__ __reversed__ __rmatmul__ "
    "__rmul__ __rsub__ __rtruediv__ __setattr__ __setitem__ __slots__ __str__ __sub__ __truediv__ __version__ "
    "__xor__ __class_getitem__ __set_name__ __get__ __set__ __traceback__ __cause__ __context__ __annotate__ "
    "__match_args__ __del__ __future__"
)
# Names with one underscore that are documented.
# `torch._VF` has the same functions as `torch`.
PRIVATE = _names("_VF _asdict _assert _buffers _fields _make _modules _parameters _replace")
# Of any object: what leads from it to a frame, a namespace or a program, or says that somebody looks.
TELLING = _names(
    "ag_frame call_boxed cr_frame eval_frame f_back f_builtins f_globals f_locals fork forkpty get_kernel "
    "get_objects get_referents get_referrers getoutput gi_frame initialized instance ast_transformers "
    "input_transformers_cleanup input_transformers_post is_cpu is_cuda is_grad_enabled is_meta load_module "
    "exec_module posix_spawn posix_spawnp popen redispatch run_cell run_cell_async run_cell_magic run_code "
    "run_line_magic safe_execfile set_custom_exc setprofile setrecursionlimit settrace system tb_frame "
    "user_global_ns user_module user_ns get_device hardlink_to symlink_to"
)
# Modules whose name in a text can mean little else.
TELLING_MODULES = _names("builtins ctypes gc importlib multiprocessing posix subprocess sys")

# Magics that change nothing but how the notebook looks or is timed, with those that run what follows them.
MAGICS = _names(
    "autoreload capture config matplotlib pinfo pinfo2 pip pprint precision pdb debug prun pylab reset "
    "reset_selective svg javascript js tensorboard time timeit who who_ls whos env cd pwd conda history lsmagic "
    "magic ls xmode automagic colors html markdown latex"
)
MAGICS_OF_CODE = _names("prun time timeit")
MAGICS_OF_CELLS = MAGICS_OF_CODE | {"capture"}
# Magics that run something, with or without their sign where a cell has but one line.
RUNNING_MAGICS = _names("alias ed edit load loadpy macro recall rep rerun run sc script store sx system")
# What follows `!` in every second notebook, and runs nothing that the student wrote.
SHELL = _names("apt apt-get cat cd date echo free head ls lscpu nproc nvidia-smi pip pip3 pwd uname wc")
# A file of these is not imported.
DATA_FILES = (
    ".csv",
    ".gz",
    ".html",
    ".json",
    ".jsonl",
    ".log",
    ".md",
    ".npy",
    ".npz",
    ".pdf",
    ".png",
    ".pt",
    ".pth.tar",
    ".svg",
    ".tsv",
    ".txt",
)
CODE_FILES = (".py", ".pyc", ".pth", ".so")
