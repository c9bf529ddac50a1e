"""Submissions per second: stock ``nbgrader autograde`` and ``tfcourse autograde``, on the same submissions, in one run.

    python benchmarks/grading.py [--students 60] [--stock 3] [--json FILE]

Stock nbgrader grades a copy of the course whose configuration is untouched; its test cells work, for the course's package is installed.
Ours grades with the full sandbox and the checker deciding, and writes feedback besides. The last row is the least that the machinery can
cost: a fork, the sandbox, and the same cells run plainly in it, with nobody who decides.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from time import monotonic, perf_counter

import nbformat
from classroom import CHAPTER, Classroom, classroom
from measure import Cost, Figures, Target, adopt_orphans, cost_of, wait_for_orphans

from autograder.course import CONFIG_NAME
from autograder.engine.nursery import Nursery
from autograder.engine.plan import engine_settings, student_environment
from autograder.engine.wire import pack, unpack
from autograder.grading.graded_cells import is_test
from autograder.grading.journal import RECORDED, events
from autograder.grading.results import read_results
from autograder.grading.settings import GradingSettings

BIN = Path(sys.executable).parent
_STOCK_CONFIG = 'c = get_config()  # noqa: F821\nc.CourseDirectory.course_id = "tfcourse"\n'
# So many submissions pass before the rate is steady: the first of a worker makes the questions, and each new mistake is worked out once.
_WARM = 3


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--students", type=int, default=60, help="submissions that ours grades (default: 60)")
    parser.add_argument(
        "--stock", type=int, default=3, help="of these, how many stock nbgrader grades too (default: 3)"
    )
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    if not 2 <= options.stock <= options.students or options.students < 4 * _WARM:
        parser.error(f"--stock must be 2 or more, and --students at least that and {4 * _WARM}")
    os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        room = classroom(Path(folder) / "course", options.students)
        figures = compare(room, Path(folder) / "stock", options.stock)
    figures.command = f"python benchmarks/grading.py --students {options.students} --stock {options.stock}"
    figures.tell(options.json)


def compare(room: Classroom, stock_folder: Path, stock_students: int) -> Figures:
    """Measure every way of grading, and return the table."""
    count = len(room.students)
    stock, stock_steady = stock_nbgrader(room, stock_folder, stock_students)
    ours = {jobs: tfcourse(room, jobs) for jobs in (1, 2)}
    bound = lower_bound(room)
    figures = Figures(
        "grading",
        "",
        (
            "way of grading",
            "submissions",
            "cold: wall s each",
            "cold: CPU s each",
            "steady: wall s each",
            "against stock, cold",
            "against stock, steady",
        ),
    )
    rows = [("stock nbgrader autograde", stock_students, stock, stock_steady)]
    rows += [(f"tfcourse autograde --jobs {jobs}", count, cost, steady) for jobs, (cost, steady) in ours.items()]
    rows += [("fork, sandbox, cells plainly (1 process)", count, None, bound.wall)]
    for name, number, cost, steady in rows:
        figures.rows.append(
            (
                name,
                number,
                cost.wall / number if cost else "",
                cost.cpu / number if cost else bound.cpu,
                steady,
                f"{stock.wall / stock_students * number / cost.wall:.1f}×" if cost else "",
                f"{stock_steady / steady:.1f}×",
            )
        )
    figures.targets = [
        Target("2 workers against stock, steady", stock_steady / ours[2][1], 20, unit="×"),
        Target("1 worker against stock, steady", stock_steady / ours[1][1], 9, unit="×"),
        Target("2 workers against 1, steady", ours[1][1] / ours[2][1], 1.8, unit="×"),
    ]
    figures.notes = [
        "Cold is the whole command from its start to its end, ours with feedback pages, divided by the submissions. Steady is what "
        f"one more submission takes: for stock the difference between {stock_students} and 1, for ours the time between the recordings "
        f"after the first {count // _WARM}. CPU is of all processes together; in the last row, of those that are forked."
    ]
    return figures


def stock_nbgrader(room: Classroom, folder: Path, students: int) -> tuple[Cost, float]:
    """Return what stock nbgrader takes for some students, and what one more takes."""
    shutil.copytree(room.course.root, folder)
    (folder / CONFIG_NAME).write_text(_STOCK_CONFIG, encoding="utf-8")
    for student in room.students[students:]:
        shutil.rmtree(folder / "submitted" / student)
    command = [BIN / "nbgrader", "autograde", CHAPTER, "--force"]
    one = cost_of([*command, f"--student={room.students[0]}"], cwd=folder)
    several = cost_of(command, cwd=folder)
    graded = list((folder / "autograded").glob(f"*/{CHAPTER}/{CHAPTER}.ipynb"))
    if len(graded) != students:
        raise RuntimeError(f"stock nbgrader graded {len(graded)} of {students} submissions")
    return several, (several.wall - one.wall) / (students - 1)


def tfcourse(room: Classroom, jobs: int) -> tuple[Cost, float]:
    """Return what our command takes for all students, and what one more takes."""
    command = [BIN / "tfcourse", "autograde", CHAPTER, "--force", "--jobs", str(jobs), "--course", room.course.root]
    cost = cost_of(command)
    results = read_results(room.course, CHAPTER)
    isolation = {result.provenance.isolation for result in results if result.provenance}
    if len(results) != len(room.students) or isolation != {"sandbox"}:
        raise RuntimeError(
            f"{len(results)} of {len(room.students)} submissions graded, isolation {isolation or 'unknown'}"
        )
    times = sorted(
        datetime.fromisoformat(event["time"]).timestamp()
        for event in events(room.course, CHAPTER)[_last_run(room) :]
        if event["event"] == RECORDED
    )
    first = len(times) // _WARM
    return cost, (times[-1] - times[first]) / (len(times) - 1 - first)


def _last_run(room: Classroom) -> int:
    """Return where the journal's last run begins."""
    names = [event["event"] for event in events(room.course, CHAPTER)]
    return len(names) - 1 - names[::-1].index("run begins")


def lower_bound(room: Classroom) -> Cost:
    """Return what a submission takes that is run plainly in a sandboxed fork."""
    settings = GradingSettings()
    notebooks = [nbformat.reads(text, as_version=4) for text in room.sanitised().values()]
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        packages = Path(folder) / "packages"
        shutil.unpack_archive(room.package(), packages, "zip")
        for path in (Path(folder), packages, *packages.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        adopt_orphans()
        nursery = Nursery(engine_settings(settings, str(packages)), student_environment(settings, Path(folder)))
        try:
            nursery.make_ready()
            begin, cpu = perf_counter(), 0.0
            for notebook in notebooks:
                child = nursery.child(2**28)
                for cell in notebook.cells:
                    if cell.cell_type != "code":
                        continue
                    # Of a test cell the visible question: the answers to the hidden ones are not in the sandbox.
                    source = cell.source.partition("\n")[0] if is_test(cell) else cell.source
                    child.channel.send(pack({"do": "run", "source": source}))
                    while "out" in unpack(child.channel.receive(monotonic() + 60), lambda reference: reference):
                        pass
                cpu += child.cpu_seconds()
                child.close()
            wall = perf_counter() - begin
        finally:
            nursery.close()
            wait_for_orphans()
    return Cost(wall / len(notebooks), cpu / len(notebooks))


if __name__ == "__main__":
    main()
