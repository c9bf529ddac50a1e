"""Put the figures of benchmarks/results/*.json and experiments/results/*.json into docs/benchmarks.md, between its markers.

    python benchmarks/write_docs.py [--check]

What stands between two markers is what the command printed when it was run, with the machine that it was run on. ``--check`` writes nothing
and ends with 1 if the page does not show the figures that are there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from measure import RESULTS

_ROOT = Path(__file__).resolve().parents[1]
PAGE = _ROOT / "docs" / "benchmarks.md"
FOLDERS = (RESULTS, _ROOT / "experiments" / "results")
_MARKED = re.compile(r"(<!-- (?P<name>\w+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def main() -> int:
    """Write the page, or check it; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and end with 1 if the page is behind")
    options = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8")
    after, missing = with_figures(before)
    for name in missing:
        print(
            f"{name}: there is no {name}.json in {' or '.join(map(str, FOLDERS))}; run the command that the page gives",
            file=sys.stderr,
        )
    if not options.check:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        print(f"{PAGE} does not show the figures; run python benchmarks/write_docs.py", file=sys.stderr)
    return 1 if missing or (options.check and after != before) else 0


def with_figures(page: str, folders: Sequence[Path] = FOLDERS) -> tuple[str, list[str]]:
    """Return a page with all figures that are there, and the names of those that are not."""
    missing = []

    def fill(match: re.Match[str]) -> str:
        files = [folder / f"{match['name']}.json" for folder in folders]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            missing.append(match["name"])
            return match[0]
        found = json.loads(file.read_text(encoding="utf-8"))
        machine = ", ".join(f"{name} {value}" for name, value in found["machine"].items())
        return f"{match[1]}{found['text']}\n\nMachine: {machine}.\n{match[3]}"

    return _MARKED.sub(fill, page), missing


if __name__ == "__main__":
    sys.exit(main())
