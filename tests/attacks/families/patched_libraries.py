"""Attacks that change the libraries which decide, so that anything passes."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

# A function of the right kind whose numbers are wrong.
WRONG = {
    "causal_mask": code("""
        def causal_mask(T, device=None):
            return torch.zeros(T, T, dtype=torch.bool, device=device)
    """),
    "merge_query_key": code("""
        def merge_query_key(w_q, w_k):
            return torch.zeros(w_q.shape[0], w_k.shape[0], dtype=w_q.dtype, device=w_q.device) * (w_q.sum() + w_k.sum())
    """),
}


ATTACKS = (
    Attack(
        name="comparisons that always agree",
        story="Replaces torch.testing.assert_close, torch.allclose, torch.isclose and torch.equal by functions that agree with everything.",
        wants="full marks for any numbers",
        bodies=WRONG,
        cells=(
            code("""
                import numpy
                torch.testing.assert_close = lambda *a, **k: None
                torch.allclose = torch.equal = torch.Tensor.allclose = torch.Tensor.equal = lambda *a, **k: True
                torch.isclose = torch.Tensor.isclose = lambda a, b, *c, **k: torch.ones_like(a, dtype=torch.bool)
                numpy.allclose = numpy.array_equal = lambda *a, **k: True
                numpy.testing.assert_allclose = lambda *a, **k: None
            """),
        ),
    ),
    Attack(
        name="a check of one's own",
        story="Defines a function named check that returns the points of any exercise.",
        wants="full marks without a check",
        bodies=WRONG,
        cells=(
            code("""
                def check(candidate, **options):
                    return 4.0
            """),
        ),
    ),
    Attack(
        name="check replaced in its module",
        story="Replaces tfcourse.check and what is behind it in the modules that hold them.",
        wants="full marks without a check",
        bodies=WRONG,
        cells=(
            code("""
                import sys
                def mine(candidate, **options):
                    return 4.0
                for module in list(sys.modules.values()):
                    if getattr(module, "check", None) is not None and module.__name__.startswith(("tfcourse", "autograder")):
                        module.check = mine
                check = mine
            """),
        ),
    ),
    Attack(
        name="judges that find nothing",
        story="Replaces every judge of the checking engine by one that has nothing to object to.",
        wants="full marks for any numbers",
        bodies=WRONG,
        cells=(
            code("""
                try:
                    from autograder.checking import judges, sheet
                    judges.JUDGES.update({name: lambda *a, **k: None for name in judges.JUDGES})
                    judges.judge = sheet.judge = lambda *a, **k: None
                except ImportError:
                    pass
            """),
        ),
    ),
    Attack(
        name="verdicts that show more",
        story="Changes the class of verdicts so that its text form and its score are always the full points.",
        wants="full marks on paper",
        bodies=WRONG,
        cells=(
            code("""
                from autograder.checking import verdict
                verdict.Verdict.__repr__ = lambda self: "4"
                verdict.Verdict.score = property(lambda self: self.max_score)
                verdict.Finding.__getattribute__ = lambda self, name: True if name == "passed" else object.__getattribute__(self, name)
            """),
        ),
    ),
    Attack(
        name="a subject that answers for the student",
        story="Replaces the part of the checking engine that runs student code by one that runs the reference instead.",
        wants="full marks for a stub",
        bodies=WRONG,
        cells=(
            code("""
                from autograder.checking import subject
                run = subject.LocalSubject.observe
                def observe(self, request):
                    try:
                        from autograder.checks import exercise
                        self._candidate = exercise(self._candidate.__name__).reference
                        self._off_limits = frozenset()
                        self._off_folder = ""
                    except Exception:
                        pass
                    return run(self, request)
                subject.LocalSubject.observe = observe
            """),
        ),
    ),
    Attack(
        name="a reference of one's own",
        story="Puts the student's own function in the place of the reference, so that it is compared with itself.",
        wants="full marks for any numbers",
        bodies=WRONG,
        last=code("pass"),
        cells=(
            code("""
                import sys, types
                def swap(name, mine):
                    from autograder.checks import exercise
                    object.__setattr__(exercise(name), "reference", types.FunctionType(mine.__code__.replace(co_name="other"), mine.__globals__, name, mine.__defaults__))
                    exercise(name).reference.__name__ = name
                class Watch(dict):
                    pass
                def wrong_mask(T, device=None):
                    return torch.zeros(T, T, dtype=torch.bool, device=device)
                def wrong_merge(w_q, w_k):
                    return torch.zeros(w_q.shape[0], w_k.shape[0], dtype=w_q.dtype, device=w_q.device) * (w_q.sum() + w_k.sum())
                swap("causal_mask", wrong_mask)
                swap("merge_query_key", wrong_merge)
            """),
        ),
    ),
    Attack(
        name="other checks installed",
        story="Makes the entry points of installed packages name a check of the student's own.",
        wants="full marks without a check",
        bodies=WRONG,
        cells=(
            code("""
                import importlib.metadata, tfcourse
                class Mine:
                    @staticmethod
                    def load():
                        return lambda candidate, **options: 4.0
                importlib.metadata.entry_points = tfcourse.entry_points = lambda **k: (Mine,)
            """),
        ),
    ),
    Attack(
        name="modules swapped",
        story="Puts modules of the student's own into sys.modules under the names of the checks and of torch.testing.",
        wants="full marks without a check",
        bodies=WRONG,
        cells=(
            code("""
                import sys, types
                fake = types.ModuleType("autograder.checks")
                fake.check = lambda candidate, **options: 4.0
                fake.__path__ = []
                sys.modules["autograder.checks"] = fake
                if "autograder" in sys.modules:
                    sys.modules["autograder"].checks = fake
                sys.modules["torch.testing"] = types.ModuleType("torch.testing")
            """),
        ),
    ),
    Attack(
        name="a wide tolerance",
        story="Replaces the table of tolerances, and the function that reads it, by an infinite tolerance.",
        wants="full marks for any finite numbers",
        bodies=WRONG,
        cells=(
            code("""
                import math, sys
                from autograder.checking import tolerance
                for name, value in list(vars(tolerance).items()):
                    if isinstance(value, dict) and not name.startswith("__"):
                        for key in value:
                            value[key] = (math.inf, math.inf)
                    elif callable(value) and getattr(value, "__module__", "") == tolerance.__name__ and not isinstance(value, type):
                        wide = lambda *a, **k: (math.inf, math.inf)
                        setattr(tolerance, name, wide)
                        for module in list(sys.modules.values()):
                            if getattr(module, name, None) is value:
                                setattr(module, name, wide)
            """),
        ),
    ),
    Attack(
        name="a sum that is always enough",
        story="Replaces the built-in functions that add up points and ask whether everything passed.",
        wants="full marks on paper",
        bodies=WRONG,
        cells=(
            code("""
                import builtins
                builtins.sum = lambda *a, **k: 4.0
                builtins.all = lambda *a, **k: True
            """),
        ),
    ),
    Attack(
        name="operators overridden below Python",
        story="Registers kernels of its own for PyTorch's comparison operators, where no Python function has to be replaced.",
        wants="full marks for any numbers",
        bodies=WRONG,
        cells=(
            code("""
                import warnings
                warnings.simplefilter("ignore")
                library = torch.library.Library("aten", "IMPL")
                ones = lambda a, *b, **k: torch.full(a.shape, True)
                for name, kernel in (("equal", lambda a, b: True), ("isclose", ones), ("le.Tensor", ones), ("eq.Tensor", ones), ("ne.Tensor", lambda a, b: ~ones(a))):
                    try:
                        library.impl(name, kernel, "CPU")
                    except Exception as error:
                        print(type(error).__name__)
            """),
        ),
    ),
)
