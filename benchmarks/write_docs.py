"""Put the figures of benchmarks/results/*.json into docs/benchmarks.md, between its markers.

    python benchmarks/write_docs.py [--check]

What stands between two markers is what the command printed when it was run, with the machine that it was run on. ``--check`` writes nothing
and ends with 1 if the page does not show the figures that are there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from measure import RESULTS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
_MARKED = re.compile(r"(<!-- (?P<name>\w+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def main() -> int:
    """Write the page, or check it; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and end with 1 if the page is behind")
    options = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8")
    after, missing = with_figures(before, RESULTS)
    for name in missing:
        print(f"{name}: there is no {RESULTS / f'{name}.json'}; run the command that the page gives", file=sys.stderr)
    if not options.check:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        print(f"{PAGE} does not show the figures; run python benchmarks/write_docs.py", file=sys.stderr)
    return 1 if missing or (options.check and after != before) else 0


def with_figures(page: str, results: Path) -> tuple[str, list[str]]:
    """Return a page with all figures that are there, and the names of those that are not."""
    missing = []

    def fill(match: re.Match[str]) -> str:
        file = results / f"{match['name']}.json"
        if not file.is_file():
            missing.append(match["name"])
            return match[0]
        found = json.loads(file.read_text(encoding="utf-8"))
        machine = ", ".join(f"{name} {value}" for name, value in found["machine"].items())
        return f"{match[1]}{found['text']}\n\nMachine: {machine}.\n{match[3]}"

    return _MARKED.sub(fill, page), missing


if __name__ == "__main__":
    sys.exit(main())
