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
