"""Attacks on the conversation between the grader and the student's process: garbage, forgeries, and answers that are no answers."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

STUCK = "a grader that fails, waits or runs out of memory"
SOCKETS = code("""
    import os, socket, stat, struct, threading, time
    def wires():
        found = []
        for fd in range(3, 1024):
            try:
                if stat.S_ISSOCK(os.fstat(fd).st_mode) or stat.S_ISFIFO(os.fstat(fd).st_mode):
                    found.append(fd)
            except OSError:
                pass
        return found
    def send(data, repeat=1):
        for fd in wires():
            os.set_blocking(fd, False)
            for _ in range(repeat):
                try:
                    os.write(fd, data)
                except OSError:
                    break
            os.set_blocking(fd, True)
""")
# What a reply may look like to somebody who guesses: full points, everything passed, and the shape of an observation.
FORGED = code("""
    try:
        from msgpack import packb
    except ImportError:
        import json
        packb = lambda item: json.dumps(item).encode()
    def frames():
        for item in ({"outputs": {"output": True}, "error": None}, {"ok": True, "score": 4.0}, ["reply", 1, {"output": 4.0}], {"verdict": 4.0, "passed": True}):
            body = packb(item)
            yield from (struct.pack(order + size, len(body)) + body for order in "<>" for size in "IQ")
""")


def answering(
    name: str, story: str, expression: str, wants: str = STUCK, *, unsafe: str = "", before: str = ""
) -> Attack:
    """Return an attack by what causal_mask returns; the other exercise is solved, and must keep its points."""
    return Attack(
        name=name,
        story=story,
        wants=wants,
        unsafe=unsafe,
        solved=("merge_query_key",),
        bodies={"causal_mask": f"{before}def causal_mask(T, device=None):\n    return {expression}\n"},
    )


def talking(name: str, story: str, text: str, wants: str = STUCK) -> Attack:
    """Return an attack by what causal_mask writes to the descriptors that it finds."""
    return Attack(
        name=name,
        story=story,
        wants=wants,
        cells=(SOCKETS + FORGED,),
        bodies={"causal_mask": code(text)},
    )


ATTACKS = (
    talking(
        "garbage on the wire",
        "Writes bytes without meaning to every socket and pipe that it inherited.",
        """
        def causal_mask(*a, **k):
            send(bytes(range(256)) * 16)
        """,
    ),
    talking(
        "a forged reply",
        "Writes replies that say that everything passed, in every framing it can think of, before its real answer.",
        """
        def causal_mask(T, device=None):
            for frame in frames():
                send(frame)
            return torch.zeros(T, T, dtype=torch.bool)
        """,
        "full marks from a reply of its own",
    ),
    talking(
        "a huge length",
        "Announces a message of four gigabytes and more.",
        """
        def causal_mask(*a, **k):
            for header in (b"\\xff" * 4, b"\\x7f" + b"\\xff" * 7, struct.pack("<Q", 1 << 40), struct.pack(">Q", 1 << 40)):
                send(header)
            time.sleep(1)
        """,
    ),
    talking(
        "a message cut short",
        "Announces a message, sends half of it and closes the wire.",
        """
        def causal_mask(*a, **k):
            send(struct.pack(">I", 1000) + b"x" * 500)
            for fd in wires():
                os.close(fd)
        """,
    ),
    talking(
        "a flood on the wire",
        "Writes for ever to every socket and pipe that it inherited.",
        """
        def causal_mask(*a, **k):
            while True:
                send(b"x" * 65536, repeat=1000)
        """,
    ),
    talking(
        "a late reply",
        "Lets a thread write forged replies while later questions are asked.",
        """
        def causal_mask(T, device=None):
            def later():
                for _ in range(200):
                    for frame in frames():
                        send(frame)
                    time.sleep(0.01)
            threading.Thread(target=later, daemon=True).start()
            return torch.zeros(T, T, dtype=torch.bool)
        """,
        "points for a question that somebody else answers",
    ),
    talking(
        "two replies from two threads",
        "Answers a question twice at once, from two threads.",
        """
        def causal_mask(T, device=None):
            both = [threading.Thread(target=lambda: [send(frame) for frame in frames()]) for _ in range(2)]
            for thread in both:
                thread.start()
            for thread in both:
                thread.join()
            return torch.zeros(T, T, dtype=torch.bool)
        """,
        "points for a question that somebody else answers",
    ),
    talking(
        "the wire in other hands",
        "Hands copies of all descriptors to a child that goes on writing, and closes its own.",
        """
        def causal_mask(*a, **k):
            copies = [os.dup(fd) for fd in wires()]
            if os.fork() == 0:
                for _ in range(100):
                    for fd in copies:
                        try:
                            os.write(fd, MARK.encode() * 100)
                        except OSError:
                            pass
                    time.sleep(0.05)
                os._exit(0)
            os._exit(0)
        """,
    ),
    talking(
        "descriptors passed on",
        "Sends its own descriptors along with a message, for a grader that takes them and never closes them.",
        """
        def causal_mask(*a, **k):
            import array
            for fd in wires():
                try:
                    wire = socket.socket(fileno=os.dup(fd))
                    many = array.array("i", [os.open("/dev/null", os.O_RDONLY) for _ in range(100)])
                    for _ in range(20):
                        wire.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)], socket.MSG_DONTWAIT)
                except OSError:
                    pass
        """,
    ),
    answering(
        "lists in lists in lists",
        "Returns a list a million levels deep.",
        "deep()",
        before=code("""
            def deep():
                nested = []
                for _ in range(1_000_000):
                    nested = [nested]
                return nested
        """),
    ),
    answering(
        "a list that holds itself",
        "Returns containers that hold themselves.",
        "round_and_round()",
        before=code("""
            def round_and_round():
                a, b = [], {}
                a.append(b)
                b["a"] = a
                a.append(a)
                return a
        """),
    ),
    answering(
        "very many outputs",
        "Returns a tuple of ten million numbers.",
        "tuple(range(10_000_000))",
    ),
    answering("no numbers", "Returns NaN and infinity everywhere.", "torch.full((T, T), math.nan)"),
    answering(
        "a tensor of a trillion elements",
        "Returns one number expanded to a trillion elements, which takes no memory until somebody copies it.",
        "torch.zeros(1).expand(1_000_000, 1_000_000)",
        unsafe="it would take terabytes of memory where it is copied",
    ),
    answering(
        "strides that overlap and overflow",
        "Returns views whose sizes multiply to more than 64 bits hold, or to nothing.",
        "[torch.empty(0, 2**62, 2), torch.zeros(1).as_strided((2**31, 2**31), (0, 0)), torch.empty(2**62, 0)]",
        unsafe="it would take terabytes of memory where it is copied",
    ),
    answering(
        "tensors without ordinary numbers",
        "Returns sparse, quantised, complex, nested and bit tensors.",
        "strange(T)",
        before=code("""
            def strange(T):
                import warnings
                warnings.simplefilter("ignore")
                x = torch.eye(T)
                made = [x.to_sparse(), x.to_sparse_csr(), x.to(torch.complex64).conj(), torch._neg_view(x)]
                made += [torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), torch.nested.nested_tensor([x, x[:1]])]
                return made
        """),
    ),
    answering(
        "a tensor without data",
        "Returns tensors on the meta device, whose shapes are right and which have no numbers.",
        'torch.empty(T, T, dtype=torch.bool, device="meta")',
        "full marks for a shape",
    ),
    answering(
        "a tensor whose storage is gone",
        "Returns a tensor whose storage it has freed.",
        "freed(T)",
        "memory of the process that reads it",
        before=code("""
            def freed(T):
                x = torch.ones(T, T)
                y = x.view(-1)
                x.untyped_storage().resize_(0)
                return y
        """),
    ),
    answering(
        "numbers that are too large",
        "Returns whole numbers of a hundred thousand digits, and strings that are no text.",
        '[10**100_000, -(10**100_000), "\\ud800" * 1000, b"\\xff" * 1000, 1e308 * 10, complex(1, math.nan)]',
    ),
    answering(
        "keys that clash",
        "Returns dictionaries whose keys are equal as text, endless, or no plain data.",
        '{1: 1, "1": 2, (1,): 3, None: 4, "x" * 1_000_000: 5, float("nan"): 6, frozenset({1}): 7}',
    ),
    answering(
        "functions and modules",
        "Returns functions, modules, classes and generators, which are no data.",
        "[causal_mask, math, int, (x for x in ()), nn.Linear(2, 2), open, Ellipsis, object(), memoryview(b'x')]",
    ),
)
