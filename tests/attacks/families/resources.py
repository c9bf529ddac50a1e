"""Attacks that use up what there is: time, memory, output."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

HANG = "a batch that waits for ever"
DOWN = "a machine without memory"


def greedy(
    name: str,
    story: str,
    wants: str,
    text: str,
    *,
    unsafe: str = "",
    limit: bool = True,
    solved: tuple[str, ...] = ("merge_query_key",),
    due: float = 0.0,
) -> Attack:
    """Return an attack that a call of causal_mask makes; where the other exercise is solved, it must keep its points."""
    return Attack(
        name=name,
        story=story,
        wants=wants,
        bodies={"causal_mask": code(text)},
        solved=solved,
        due=due,
        limit=limit,
        unsafe=unsafe,
    )


ATTACKS = (
    greedy(
        "an endless loop",
        "Loops for ever and swallows every exception, KeyboardInterrupt among them.",
        HANG,
        """
        def causal_mask(*a, **k):
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass
        """,
    ),
    greedy(
        "an endless loop in C",
        "Runs a regular expression that backtracks for ever and never lets go of the interpreter's lock.",
        HANG,
        """
        import re
        def causal_mask(*a, **k):
            re.match("(a|aa)+$", "a" * 80 + "b")
        """,
    ),
    greedy(
        "a very large power",
        "Computes a whole number with more digits than there is time for.",
        HANG,
        "def causal_mask(*a, **k):\n    return (10**9_999_999) ** 99 % 7\n",
        unsafe="it would take gigabytes of memory",
    ),
    greedy(
        "sleep", "Sleeps for a year.", HANG, "def causal_mask(*a, **k):\n    import time\n    time.sleep(31_536_000)\n"
    ),
    greedy(
        "sleep with all signals ignored",
        "Sleeps in short pieces with every signal blocked, so that it can be neither interrupted nor asked to end.",
        HANG,
        """
        def causal_mask(*a, **k):
            import signal, time
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
            while True:
                time.sleep(0.1)
        """,
    ),
    greedy(
        "all memory at once",
        "Asks for more memory than the machine has, and writes to it.",
        DOWN,
        """
        def causal_mask(*a, **k):
            kept = []
            while True:
                kept.append(bytearray(1 << 28))
        """,
        unsafe="it would fill the memory",
    ),
    greedy(
        "a huge tensor",
        "Makes a tensor of a terabyte and fills it.",
        DOWN,
        "def causal_mask(*a, **k):\n    return torch.empty(1 << 40, dtype=torch.uint8).fill_(1)\n",
        unsafe="it would fill the memory",
    ),
    greedy(
        "shared memory",
        "Fills anonymous shared mappings, which the limit on a process's data does not count.",
        DOWN,
        """
        def causal_mask(*a, **k):
            import mmap
            kept = []
            while True:
                kept.append(mmap.mmap(-1, 1 << 28))
                kept[-1].write(b"x" * (1 << 28))
        """,
        unsafe="it would fill the memory",
    ),
    greedy(
        "memory without a file",
        "Fills files that exist in memory only, made by memfd_create.",
        DOWN,
        """
        def causal_mask(*a, **k):
            import os
            while True:
                fd = os.memfd_create("kept")
                for _ in range(64):
                    os.write(fd, b"x" * (1 << 24))
        """,
        unsafe="it would fill the memory",
    ),
    greedy(
        "many processes with memory each",
        "Shares the memory out among children, each of which stays below the limit of a single process.",
        DOWN,
        """
        def causal_mask(*a, **k):
            import os, time
            for _ in range(60):
                if os.fork() == 0:
                    kept = bytearray(1 << 30)
                    kept[::4096] = b"x" * len(kept[::4096])
                    while True:
                        time.sleep(1)
            while True:
                time.sleep(1)
        """,
        limit=False,  # the kernel refuses the first copy
        unsafe="it would fill the memory",
    ),
    greedy(
        "a temporary folder filled",
        "Fills /tmp and /dev/shm, which may lie in memory.",
        DOWN,
        """
        def causal_mask(*a, **k):
            import itertools
            written = 0
            for place in ("/dev/shm", "/tmp", "."):
                try:
                    with open(f"{place}/{MARK}", "wb") as file:
                        for _ in range(1 << 14):
                            written += file.write(b"x" * (1 << 20))
                except OSError as error:
                    failed = error
            raise failed
        """,
        unsafe="it would fill the disk and the memory",
    ),
    greedy(
        "a bomb in an archive",
        "Unpacks a few kilobytes to many gigabytes in memory.",
        DOWN,
        """
        def causal_mask(*a, **k):
            import zlib
            packer = zlib.compressobj(9)
            packed = b"".join(packer.compress(b"0" * (1 << 24)) for _ in range(64)) + packer.flush()
            return [zlib.decompress(packed) for _ in range(1000)]
        """,
        unsafe="it would fill the memory",
    ),
    greedy(
        "a bomb of threads",
        "Starts threads for ever, each of which burns time.",
        "a machine that does nothing else any more",
        """
        def causal_mask(*a, **k):
            import threading
            def burn():
                while True:
                    pass
            while True:
                try:
                    threading.Thread(target=burn, daemon=True).start()
                except BaseException:
                    pass
        """,
        unsafe="it would fill the table of processes",
    ),
    greedy(
        "burning in the background",
        "Leaves threads burning time while its own cell ends at once.",
        "the processor, at the cost of later cells and submissions",
        """
        def causal_mask(T, device=None):
            import threading
            def burn():
                while True:
                    pass
            for _ in range(3):
                threading.Thread(target=burn, daemon=True).start()
            return torch.zeros(T, T, dtype=torch.bool)
        """,
        # Its own threads burn the time of its other exercises too; that is its own loss.
        limit=False,
        solved=(),
        unsafe="it would keep both processors of this machine busy",
    ),
    greedy(
        "a flood of print",
        "Prints for ever.",
        "a grader without memory, and a notebook of gigabytes",
        "def causal_mask(*a, **k):\n    while True:\n        print('x' * 100_000)\n",
        unsafe="stock nbgrader keeps every character in memory",
    ),
    greedy(
        "a flood on stderr",
        "Writes to the process's own error descriptor for ever, past Python's.",
        "a grader without memory, or a full log",
        "def causal_mask(*a, **k):\n    import os\n    while True:\n        os.write(2, b'x' * 65_536)\n        os.write(1, b'x' * 65_536)\n",
        unsafe="stock nbgrader passes it on to the terminal",
    ),
    greedy(
        "a flood of displays",
        "Displays figures and tables for ever.",
        "a grader without memory",
        """
        def causal_mask(*a, **k):
            from IPython.display import HTML, display
            while True:
                display(HTML("<p>" + "x" * 100_000))
        """,
        unsafe="stock nbgrader keeps every output in memory",
    ),
    greedy(
        "a million small outputs",
        "Displays very many very small outputs, below any limit on characters.",
        "a grader that never comes to the end of the messages",
        """
        def causal_mask(*a, **k):
            from IPython.display import display
            for number in range(10_000_000):
                display(number)
        """,
        unsafe="stock nbgrader keeps every output in memory",
    ),
    greedy(
        "an exception with a very long text",
        "Raises an exception whose text has fifty million characters.",
        "a notebook and a gradebook of hundreds of megabytes",
        "def causal_mask(*a, **k):\n    raise ValueError('x' * 50_000_000)\n",
        limit=False,
        unsafe="stock nbgrader keeps every character in memory",
    ),
    greedy(
        "a very long text form",
        "Returns an object whose text form is endless, for whoever shows it in a message.",
        "a grader without memory",
        """
        class Long:
            def __repr__(self):
                return "x" * 200_000_000
            __str__ = __repr__
        def causal_mask(*a, **k):
            return Long()
        """,
        limit=False,
        unsafe="it would take gigabytes where it is shown several times",
    ),
    greedy(
        "recursion without end",
        "Switches the limit of recursion off and recurses until the stack is used up.",
        "an end to the grader's process",
        """
        import sys
        def causal_mask(*a, **k):
            sys.setrecursionlimit(10**9)
            def down(x):
                return [down(x)]
            return down(1)
        """,
        limit=False,
    ),
    greedy(
        "a flood of hashes",
        "Puts numbers that all have the same hash into a set, so that each takes longer than the last.",
        HANG,
        """
        def causal_mask(*a, **k):
            return len({number * (2**61 - 1) for number in range(1, 2_000_000)})
        """,
    ),
    greedy(
        "a step of computing without end",
        "Starts one operation of PyTorch that takes hours and cannot be interrupted.",
        HANG,
        """
        def causal_mask(*a, **k):
            x = torch.rand(3000, 3000, dtype=torch.float64)
            for _ in range(1000):
                x = torch.linalg.matrix_power(x, 10**6)
        """,
    ),
    greedy(
        "very many descriptors",
        "Opens files until there are no more descriptors, and keeps them.",
        "a grader that cannot open the gradebook",
        """
        kept = []
        def causal_mask(*a, **k):
            while True:
                kept.append(open("/dev/null"))
        """,
        limit=False,
    ),
)
