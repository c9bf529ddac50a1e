"""Attacks on later submissions: whatever they might inherit. The next honest student sees the world as if nobody had come before."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

LATER = "grades of others, and a chance to act in their names"

ATTACKS = (
    Attack(
        name="a start-up file for IPython",
        story="Leaves a start-up file in the grader's IPython profile, which every later kernel runs.",
        wants=LATER,
        cells=(
            code("""
                import os
                for home in (HOME, os.path.expanduser("~")):
                    folder = home + "/.ipython/profile_default/startup"
                    os.makedirs(folder, exist_ok=True)
                    open(folder + "/00.py", "w").write(f"import builtins; builtins.{MARK} = 1" + chr(10))
            """),
        ),
    ),
    Attack(
        name="a start-up file for Python",
        story="Leaves usercustomize.py and a .pth file in the user's own packages, which every later Python runs.",
        wants=LATER,
        cells=(
            code("""
                import os, sys
                folder = f"{HOME}/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
                os.makedirs(folder, exist_ok=True)
                for name in ("usercustomize.py", "sitecustomize.py", MARK + ".pth"):
                    open(f"{folder}/{name}", "w").write(f"import builtins; builtins.{MARK} = 1" + chr(10))
            """),
        ),
    ),
    Attack(
        name="a kernel of its own",
        story="Installs a kernel under the name python3 that runs the attacker's program for every later submission.",
        wants=LATER,
        cells=(
            code("""
                import json, os, sys
                folder = HOME + "/.local/share/jupyter/kernels/python3"
                os.makedirs(folder, exist_ok=True)
                start = f"import builtins, runpy; builtins.{MARK} = 1; runpy.run_module('ipykernel_launcher', run_name='__main__')"
                spec = {"argv": [sys.executable, "-c", start, "-f", "{connection_file}"], "display_name": "Python 3", "language": "python"}
                json.dump(spec, open(folder + "/kernel.json", "w"))
            """),
        ),
    ),
    Attack(
        name="the installed packages",
        story="Writes a .pth file and a changed module into the folder of installed packages.",
        wants=LATER,
        unsafe="it would change the packages installed on this machine",
        cells=(
            code("""
                import os
                folder = os.path.dirname(os.path.dirname(torch.__file__))
                for path in (f"{folder}/{MARK}.pth", f"{folder}/torch/{MARK}.py", f"{folder}/torch/__pycache__/{MARK}.pyc"):
                    try:
                        open(path, "w").write("import builtins")
                        won("writes into the installed packages")
                    except OSError as error:
                        print(type(error).__name__)
            """),
        ),
    ),
    Attack(
        name="settings for matplotlib",
        story="Leaves a matplotlibrc in the grader's configuration folder.",
        wants="a say in every later figure",
        cells=(
            code("""
                import os
                for home in (HOME, os.path.expanduser("~")):
                    folder = home + "/.config/matplotlib"
                    os.makedirs(folder, exist_ok=True)
                    open(folder + "/matplotlibrc", "w").write("figure.dpi: 17" + chr(10) + "# " + MARK + chr(10))
            """),
        ),
    ),
    Attack(
        name="PyTorch's caches",
        story="Leaves files in the folders in which PyTorch keeps extensions, hubs and compiled kernels.",
        wants="code that a later submission loads",
        cells=(
            code("""
                import os, tempfile
                for folder in (HOME + "/.cache/torch/hub", HOME + "/.cache/torch_extensions", tempfile.gettempdir() + "/torchinductor_root"):
                    os.makedirs(folder, exist_ok=True)
                    open(f"{folder}/{MARK}.py", "w").write("import builtins")
            """),
        ),
    ),
    Attack(
        name="temporary files",
        story="Leaves files in the temporary folders, under names that libraries look for.",
        wants="a letter box for later submissions",
        cells=(
            code("""
                import tempfile
                for folder in {tempfile.gettempdir(), "/tmp", "/var/tmp"}:
                    open(f"{folder}/{MARK}", "w").write("here")
            """),
        ),
    ),
    Attack(
        name="environment variables",
        story="Changes environment variables, in Python and below it, that decide about threads, modules and preloaded libraries.",
        wants="a say in how later submissions run",
        cells=(
            code("""
                import ctypes, os
                libc = ctypes.CDLL(None)
                for name in ("OMP_NUM_THREADS", "PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "TFCOURSE_DEVICE", "TZ", "HOME", MARK):
                    os.environ[name] = "7"
                    libc.setenv(name.encode(), b"7", 1)
            """),
        ),
    ),
    Attack(
        name="random numbers",
        story="Seeds all random generators, replaces their functions, and leaves them so.",
        wants="known random numbers in later submissions",
        cells=(
            code("""
                import random, numpy
                random.seed(1); numpy.random.seed(1); torch.manual_seed(1)
                random.random = lambda: 0.5
                numpy.random.rand = lambda *a: 0.5
                torch.rand = lambda *a, **k: torch.zeros(())
            """),
        ),
    ),
    Attack(
        name="modules and built-ins",
        story="Changes modules that every submission uses, the table of modules and the built-ins, and goes.",
        wants=LATER,
        cells=(
            code("""
                import builtins, math, sys, types
                setattr(builtins, MARK, 1)
                math.sqrt = lambda x: 1.0
                torch.Tensor.transpose = lambda self, *a: self
                torch.ones = torch.zeros
                torch.set_default_dtype(torch.float64)
                torch.testing.assert_close = lambda *a, **k: None
                sys.modules[MARK] = types.ModuleType(MARK)
                sys.setrecursionlimit(123_456)
                sys.path.insert(0, "/" + MARK)
            """),
        ),
    ),
    Attack(
        name="time zone and locale",
        story="Changes the time zone, the locale, the mask of permissions and the working folder of its process.",
        wants="a say in how later submissions read and write",
        cells=(
            code("""
                import locale, os, time
                os.environ["TZ"] = "Asia/Kathmandu"
                time.tzset()
                for name in ("C", "POSIX", "C.UTF-8", "tr_TR.UTF-8"):
                    try:
                        locale.setlocale(locale.LC_ALL, name)
                    except locale.Error:
                        pass
                os.umask(0o777)
                os.chdir("/")
            """),
        ),
    ),
    Attack(
        name="limits and priorities",
        story="Lowers the limits of its process to next to nothing, and its priority to the least.",
        wants="later submissions that fail",
        cells=(
            code("""
                import os, resource
                for name in ("RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NOFILE"):
                    try:
                        resource.setrlimit(getattr(resource, name), (64, 64))
                    except (OSError, ValueError):
                        pass
                os.nice(19)
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            """),
        ),
    ),
    Attack(
        name="signal handlers and alarms",
        story="Replaces all signal handlers and sets alarms that go off when somebody else is graded.",
        wants="later submissions that are interrupted",
        cells=(
            code("""
                import signal
                for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1):
                    signal.signal(number, signal.SIG_IGN)
                signal.setitimer(signal.ITIMER_VIRTUAL, 3600)
                signal.alarm(3600)
            """),
        ),
    ),
    Attack(
        name="code in its own folder",
        story="Leaves modules named like torch, json and conftest in its working folder and above it.",
        wants="an import by the grader or by a later submission",
        cells=(
            code("""
                for folder in (".", ".."):
                    for name in ("torch", "json", "conftest", "sitecustomize", "tfcourse", "autograder"):
                        try:
                            open(f"{folder}/{name}.py", "w").write(f"import builtins; builtins.{MARK} = 1" + chr(10))
                        except OSError:
                            pass
            """),
        ),
    ),
    Attack(
        name="memory that stays",
        story="Leaves a segment of System V shared memory and a message queue, which belong to no process.",
        wants="a letter box for later submissions",
        unsafe="it would leave shared memory behind on this machine",
        cells=(
            code("""
                import ctypes, os
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.shmget(int(MARK[1:8], 16), 4096, 0o1666) >= 0 and os.path.exists(OUTSIDE):
                    won("leaves shared memory")
                if libc.msgget(int(MARK[1:8], 16), 0o1666) >= 0 and os.path.exists(OUTSIDE):
                    won("leaves a message queue")
            """),
        ),
    ),
    Attack(
        name="an answer changed afterwards",
        story="Answers every question with one and the same object, and writes into that object whenever it is asked again.",
        wants="an answer that a grader has kept, and holds the next submission to",
        bodies={
            "causal_mask": code("""
                import threading
                kept = torch.ones(1, 1, dtype=torch.bool)
                def causal_mask(*args, **kwargs):
                    size = next((x for x in (*args, *kwargs.values()) if type(x) is int), 1)
                    kept.resize_(size, size).logical_not_()
                    threading.Timer(0.001, kept.fill_, (True,)).start()
                    return kept
            """),
            "merge_query_key": code("""
                import numpy
                shared = numpy.zeros(64, numpy.float32)
                def merge_query_key(*args, **kwargs):
                    shared[:] += 1
                    return torch.from_numpy(shared)
            """),
        },
    ),
    Attack(
        name="kinds without number",
        story="Answers each question with records, exceptions and texts of kinds that nobody has seen, more than anything remembers.",
        wants="a grader that is full of them when somebody else is graded",
        bodies={
            "causal_mask": code("""
                import itertools
                from collections import namedtuple
                numbers = itertools.count()
                def causal_mask(*args, **kwargs):
                    return [namedtuple(f"Kind{next(numbers)}", ["a", f"b{next(numbers)}"])(1, "x" * 1000) for _ in range(90)]
            """),
            "merge_query_key": code("""
                def merge_query_key(*args, **kwargs):
                    number = next(numbers)
                    raise type(f"Error{number}", (ValueError if number % 2 else torch.OutOfMemoryError,), {})(f"{number} " * 200)
            """),
        },
    ),
)
