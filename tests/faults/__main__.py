"""Try every fault and print what came of it: ``python -m tests.faults [NAME ...]``. The exit code is 1 if any grade differs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .classroom import classroom
from .faults import FAULTS
from .trial import Trial, undisturbed


def main(names: list[str]) -> int:
    """Try the named faults, or all of them."""
    unknown = [name for name in names if name not in FAULTS]
    if unknown:
        print(f"no fault is called {', '.join(unknown)}. The faults are:\n  " + "\n  ".join(FAULTS), file=sys.stderr)
        return 2
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tfcourse-faults-") as folder, classroom() as (root, chapter):
        subject = undisturbed(root, chapter, Path(folder))
        print(f"undisturbed: {subject.seconds:.1f} s")
        for number, name in enumerate(names or FAULTS):
            place = Path(folder) / str(number)
            place.mkdir()
            trial = Trial(subject, place)
            FAULTS[name](trial)
            differences = trial.differences()
            failed += bool(differences)
            print(f"{name}: {'; '.join(differences) if differences else 'the same grades'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
