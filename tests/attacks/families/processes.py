"""Attacks by processes and signals."""

from __future__ import annotations

from ..attack import Attack, code

OUTLIVE = "a process that is there while others are graded"

ATTACKS = (
    Attack(
        name="a daemon",
        story="Forks twice and begins a session of its own, so that a process outlives the submission.",
        wants=OUTLIVE,
        cells=(
            code("""
                import os, sys, time
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0:
                        for fd in range(3):
                            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
                        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", MARK])
                    os._exit(0)
                time.sleep(0.2)
            """),
        ),
    ),
    Attack(
        name="a shell",
        story="Becomes a shell that writes a file outside.",
        wants="programs of the machine",
        cells=(
            code("""
                import os
                os.execv("/bin/sh", ["sh", "-c", f"touch {OUTSIDE}/{MARK}; exit 0"])
            """),
        ),
    ),
    Attack(
        name="a fresh interpreter",
        story="Starts Python anew, by subprocess and by multiprocessing, where nobody refuses or counts anything.",
        wants="a process that nobody watches",
        unsafe="it starts processes",
        cells=(
            code("""
                import multiprocessing, subprocess, sys
                try:
                    subprocess.run([sys.executable, "-c", "pass"], check=True)
                    won("starts an interpreter")
                except OSError:
                    pass
                try:
                    process = multiprocessing.get_context("spawn").Process(target=print)
                    process.start()
                    process.join(5)
                    if process.exitcode == 0:
                        won("starts an interpreter by multiprocessing")
                except OSError:
                    pass
            """),
        ),
    ),
    Attack(
        name="a signal to a neighbour",
        story="Kills a process of the same user that has nothing to do with grading, by its number.",
        wants="harm to whatever else runs on the machine",
        cells=(
            code("""
                import os, signal
                for number in (signal.SIGTERM, signal.SIGKILL):
                    os.kill(VICTIM, number)
                won("kills a neighbour")
            """),
        ),
    ),
    Attack(
        name="a signal to the grader",
        story="Kills its parent, which is the grader or the process that makes kernels.",
        wants="an end to the batch",
        cells=(
            code("""
                import os, signal
                if os.getppid() > 1:
                    os.kill(os.getppid(), signal.SIGKILL)
            """),
        ),
    ),
    Attack(
        name="stopping itself",
        story="Stops its own process in the middle of a check, without ending it.",
        wants="a batch that waits for ever",
        solved=("merge_query_key",),
        bodies={
            "causal_mask": "def causal_mask(*a, **k):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
        },
    ),
    Attack(
        name="the grader on a leash",
        story="Attaches to its parent with ptrace, as a debugger does.",
        wants="everything the grader knows and does",
        unsafe="it would stop the grader",
        cells=(
            code("""
                import ctypes, os
                libc = ctypes.CDLL(None, use_errno=True)
                for request in (16, 0x4206):
                    if libc.ptrace(request, os.getppid(), 0, 0) == 0:
                        won("attaches to its parent")
                        libc.ptrace(17, os.getppid(), 0, 0)
            """),
        ),
    ),
    Attack(
        name="a fork bomb",
        story="Forks for ever, in every process.",
        wants="a machine that does nothing else any more",
        unsafe="it would fill the table of processes",
        limit=True,
        solved=("merge_query_key",),
        bodies={
            "causal_mask": code("""
                def causal_mask(*a, **k):
                    import os
                    while True:
                        try:
                            os.fork()
                        except OSError:
                            pass
            """),
        },
    ),
    Attack(
        name="a process that ends itself",
        story="Ends its process in the middle of a check, without a word.",
        wants="full marks for a test cell without an error, or an end to the batch",
        solved=("merge_query_key",),
        bodies={"causal_mask": "def causal_mask(*a, **k):\n    import os\n    os._exit(0)\n"},
    ),
    Attack(
        name="all descriptors closed",
        story="Closes every descriptor of its process, those of the grader's conversation among them.",
        wants="a grader that waits for an answer for ever",
        solved=("merge_query_key",),
        bodies={"causal_mask": "def causal_mask(*a, **k):\n    import os\n    os.closerange(0, 4096)\n"},
    ),
    Attack(
        name="a second process in the middle of an answer",
        story="Forks a child that answers in its place, while the parent goes on to the end of the cell.",
        wants="two answers to one question",
        solved=("merge_query_key",),
        bodies={
            "causal_mask": code("""
                def causal_mask(T, device=None):
                    import os
                    os.fork()
                    return torch.zeros(T, T, dtype=torch.bool)
            """),
        },
    ),
)
