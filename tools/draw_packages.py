"""Write the table and the drawing of the packages in ``docs``: ``python -m tools.draw_packages``."""

from __future__ import annotations

import ast
import re
import textwrap
from html import escape

from tools.import_graph import ROOMS, ROOT, modules

PAGE, PICTURE = ROOT / "docs" / "packages.md", ROOT / "docs" / "packages.svg"
BEGIN, END = "<!-- packages: begin -->", "<!-- packages: end -->"
# The rows of the drawing, in the order of the table: a package imports from earlier rows and, in its own, from what stands before it.
BANDS = {
    "what is taught": ("tfcourse", "tfcourse.lessons"),
    "small modules": ROOMS[2:10],
    "what decides": ("checking", "static_analysis", "mistakes", "checks"),
    "chapters": ("course", "site"),
    "submissions": ("intake", "engine", "grading"),
    "people": ("marking", "quizzes"),
    "at the front": ("commands",),
}
WIDTH, LEFT, GAP, COLUMNS = 1120, 130, 10, 4
BOX = (WIDTH - LEFT - 20 - GAP * (COLUMNS - 1)) // COLUMNS
HEIGHT, LINE = 88, 15
STYLE = """
    .paper { fill: #ffffff } .box { fill: #f5f7fb; stroke: #5b6b8c; stroke-width: 1.2 }
    .name { font-size: 15px; font-weight: 600; fill: #1c2536 }
    .job { font-size: 12px; fill: #3a465c }
    .band { font-size: 13px; font-weight: 600; fill: #3a465c } .rule { stroke: #c3cad8; stroke-width: 1 }
"""


def job_of(package: str) -> str:
    """Return what a package is for: the first sentence of its docstring."""
    name = package if package.startswith("tfcourse") else f"autograder.{package}"
    docstring = ast.get_docstring(ast.parse(modules()[name].read_text("utf-8"))) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ").replace("``", "").rstrip(".")


def table() -> str:
    """Return the rooms, what each is for, and its budget, as a table in Markdown. The budgets are those of the page."""
    rows, limits = ["| room | holds | statements |", "|:--|:--|--:|"], budgets()
    return "\n".join([*rows, *(f"| `{name}` | {job_of(name)} | {limits.get(name, '')} |" for name in ROOMS)])


def budgets() -> dict[str, str]:
    """Return the number of statements that the page allows each room."""
    return dict(re.findall(r"^\| `([\w.]+)` \|.*\| ([\d,]+) \|$", PAGE.read_text("utf-8"), re.M))


def drawing() -> str:
    """Return the packages in their rows, as SVG."""
    parts, top = [], 20
    for band, names in BANDS.items():
        parts.append(f'<text class="band" x="16" y="{top + 24}">{escape(band)}</text>')
        for index, name in enumerate(names):
            row, column = divmod(index, COLUMNS)
            x, y = LEFT + column * (BOX + GAP), top + row * (HEIGHT + GAP)
            parts.append(f'<rect class="box" x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6"/>')
            parts.append(f'<text class="name" x="{x + 10}" y="{y + 21}">{escape(name)}</text>')
            lines = textwrap.wrap(job_of(name), 33, max_lines=4, placeholder=" …")
            parts += [
                f'<text class="job" x="{x + 10}" y="{y + 38 + LINE * number}">{escape(line)}</text>'
                for number, line in enumerate(lines)
            ]
        top += (HEIGHT + GAP) * -(-len(names) // COLUMNS) + 8
        parts.append(f'<path class="rule" d="M16 {top - 7}H{WIDTH - 16}"/>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img" aria-labelledby="t d" '
        "font-family=\"Inter, 'Segoe UI', Helvetica, Arial, sans-serif\">"
    )
    told = "; ".join(f"{band}: {', '.join(names)}" for band, names in BANDS.items())
    return "\n".join(
        [
            head,
            '<title id="t">The rooms, from what imports nothing to what imports everything</title>',
            f'<desc id="d">{escape(told)}.</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{top}"/>',
            *parts[:-1],
            "</svg>\n",
        ]
    )


def page() -> str:
    """Return the page on the packages with today's table."""
    text = PAGE.read_text("utf-8")
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table()}\n{END}", text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    PICTURE.write_text(drawing(), "utf-8")
