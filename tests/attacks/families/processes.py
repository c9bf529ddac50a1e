"""Attacks by processes and signals."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

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
        name="a daemon that writes again and again",
        story="Leaves a process behind that writes to a folder outside and to the network every tenth of a second.",
        wants=OUTLIVE,
        cells=(
            code("""
                import subprocess, sys
                text = "import socket,sys,time" + chr(10) + "for i in range(300):" + chr(10)
                text += " try: open(sys.argv[1],'w').write(sys.argv[2]); socket.create_connection(('127.0.0.1',int(sys.argv[3])),1).sendall(sys.argv[2].encode())" + chr(10)
                text += " except OSError: pass" + chr(10) + " time.sleep(0.1)"
                subprocess.Popen([sys.executable, "-c", text, f"{OUTSIDE}/{MARK}", MARK, str(TCP)], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            """),
        ),
    ),
    Attack(
        name="a child that ignores its parent's death",
        story="Switches the signal of the parent's death off, ignores all others, and waits in a process group of its own.",
        wants=OUTLIVE,
        cells=(
            code("""
                import ctypes, os, signal, time
                libc = ctypes.CDLL(None)
                if os.fork() == 0:
                    os.setsid()
                    libc.prctl(1, 0)
                    libc.prctl(15, MARK.encode())
                    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                        try:
                            signal.signal(number, signal.SIG_IGN)
                        except (OSError, ValueError):
                            pass
                    for _ in range(300):
                        time.sleep(0.2)
                    os._exit(0)
                libc.prctl(1, 0)
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
        name="a signal through a descriptor",
        story="Opens a neighbour as a pidfd and sends the signal through that.",
        wants="harm to whatever else runs on the machine",
        cells=(
            code("""
                import os, signal
                neighbour = os.pidfd_open(VICTIM)
                signal.pidfd_send_signal(neighbour, signal.SIGKILL)
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
        name="signals to everybody",
        story="Sends SIGKILL to every process that it may signal.",
        wants="an end to everything",
        unsafe="it would end every process of this machine",
        cells=("import os\nos.kill(-1, 9)\nwon('signals everybody')\n",),
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
        name="stopping its parent",
        story="Stops its parent with a signal that cannot be ignored.",
        wants="a batch that waits for ever",
        unsafe="it would stop the grader, and whoever waits for it",
        cells=("import os, signal\nif os.getppid() > 1:\n    os.kill(os.getppid(), signal.SIGSTOP)\n",),
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
        name="a crash",
        story="Reads from address zero in the middle of a check.",
        wants="an end to the batch",
        solved=("merge_query_key",),
        bodies={"causal_mask": "def causal_mask(*a, **k):\n    import ctypes\n    ctypes.string_at(0)\n"},
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
