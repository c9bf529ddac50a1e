"""Submissions per second: stock ``nbgrader autograde`` and ``tfcourse autograde``, on the same submissions, in one run.

    python benchmarks/grading.py [--students 60] [--stock 3] [--rounds 3] [--chapter 05] [--json FILE]

Stock nbgrader grades a copy of the course whose configuration is untouched; its test cells work, for the course's package is installed.
Ours grades with the full sandbox and the checker deciding, and writes feedback besides. The last row is the least that the machinery can
cost: a fork, the sandbox, and the same cells run plainly in it, with nobody who decides.

The ways take turns, round by round, and a ratio is taken within a round: a machine that others use, too, is fast in one minute and slow in
the next.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, time

import nbformat
from classroom import CHAPTER, PROJECT, Classroom, classroom
from measure import Figures, Processors, Target, adopt_orphans, cost_of, wait_for_orphans

from autograder.course.authoring.chapter import find_chapter
from autograder.course.folder import CONFIG_NAME, Course
from autograder.engine.checker.zygote_client import ZygoteClient
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.serialization import pack, unpack
from autograder.engine.workers.sandbox_settings import engine_settings, student_environment
from autograder.grading.record.journal import RECORDED, read_events
from autograder.grading.record.results import read_results
from autograder.intake.notebook.test_cells import is_test

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
    parser.add_argument("--rounds", type=int, default=3, help="how often every way has its turn (default: 3)")
    parser.add_argument("--chapter", default=CHAPTER, help="the chapter, as a number or a folder (default: 03)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    if not 2 <= options.stock <= options.students or options.students < 4 * _WARM or options.rounds < 1:
        parser.error(f"--stock must be 2 or more, --students at least that and {4 * _WARM}, --rounds 1 or more")
    os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        room = classroom(Path(folder) / "course", options.students, chapter=find_chapter(PROJECT, options.chapter).name)
        figures = compare(room, Path(folder) / "stock", options.stock, options.rounds)
    figures.command = (
        f"python benchmarks/grading.py --students {options.students} --stock {options.stock} --rounds {options.rounds}"
        + (f" --chapter {options.chapter}" if options.chapter != CHAPTER else "")
    )
    figures.tell(options.json)


def compare(room: Classroom, stock_folder: Path, stock_students: int, rounds: int) -> Figures:
    """Measure every way of grading, and return the table."""
    prepare_stock(room, stock_folder, stock_students)
    count = len(room.students)
    ways = {
        "stock nbgrader autograde": Way(stock_students, lambda: stock_nbgrader(room, stock_folder, stock_students)),
        "tfcourse autograde --jobs 1": Way(count, lambda: tfcourse(room, 1)),
        "tfcourse autograde --jobs 2": Way(count, lambda: tfcourse(room, 2)),
        "fork, sandbox, cells without a checker (1 process)": Way(count, lambda: lower_bound(room)),
    }
    alone = _with_one_submission(room, stock_folder.with_name("alone"))
    seconds_alone: list[float] = []
    for number in range(rounds):
        for name, way in ways.items():
            way.turns.append(way.take())
            print(f"round {number + 1}: {name}: steady {way.turns[-1].steady:.3f} s each", file=sys.stderr, flush=True)
        seconds_alone.append(one_submission(alone, room.chapter))
        print(f"round {number + 1}: one submission: {seconds_alone[-1]:.2f} s", file=sys.stderr, flush=True)
    stock, one, two, _ = ways.values()
    columns = (
        "cold: wall s each",
        "cold: CPU s each",
        "steady: wall s each",
        "steady: processors busy",
        "against stock, cold",
        "against stock, steady",
    )
    figures = Figures("grading", "", ("way of grading", "submissions", *columns))
    for name, way in ways.items():
        cold = [turn.cold / way.students for turn in way.turns if turn.cold]
        figures.rows.append(
            (
                name,
                way.students,
                median(cold) if cold else "",
                median(turn.cpu / way.students for turn in way.turns),
                median(turn.steady for turn in way.turns),
                f"{way.busy:.0%}" if way.busy else "",
                f"{way.faster_than(stock, _whole_command):.1f}×" if cold else "",
                f"{way.faster_than(stock):.1f}×",
            )
        )
    figures.targets = [
        Target("2 workers against stock, steady", two.faster_than(stock), 20, unit="×"),
        Target("1 worker against stock, steady", one.faster_than(stock), 9, unit="×"),
        Target("2 workers against 1, steady", two.faster_than(one), 1.8, unit="×"),
        Target("2 workers against stock, the whole command", two.faster_than(stock, _whole_command), 12, unit="×"),
        Target(
            "from the command to the first grade", median(turn.first for turn in two.turns), 4, most=True, unit=" s"
        ),
        Target("one submission, to its feedback page", median(seconds_alone), 4, most=True, unit=" s"),
    ]
    figures.notes = [
        f"Steady time per submission: for stock nbgrader, computed from the difference between a run with {stock_students} submissions and "
        f"a run with 1; for tfcourse, the time between two recorded grades after the first {count // _WARM}. Values are medians "
        f"of {rounds} rounds. Ratios per round: 2 workers against stock: "
        f"{', '.join(f'{ratio:.1f}×' for ratio in two.ratios(stock))}; 1 worker against stock: "
        f"{', '.join(f'{ratio:.1f}×' for ratio in one.ratios(stock))}; 2 workers against 1: "
        f"{', '.join(f'{ratio:.2f}×' for ratio in two.ratios(one))}. One worker and the main process keep {one.busy:.0%} of the processors "
        f"busy, so more workers are at most about {1 / one.busy:.2f} times as fast.",
    ]
    return figures


@dataclass(frozen=True)
class Turn:
    """What one way of grading took in one round.

    Attributes:
        cold: seconds of the whole command, or 0 if there is none.
        cpu: seconds of processor time of it.
        steady: seconds that one more submission takes.
        busy: share of all processors' time that was used meanwhile, or 0 if nobody looked.
        first: seconds from its start to the first recorded grade, or 0 if nobody looked.
    """

    cold: float
    cpu: float
    steady: float
    busy: float = 0.0
    first: float = 0.0


def _whole_command(turn: Turn, students: int) -> float:
    return turn.cold / students


@dataclass
class Way:
    """A way of grading.

    Attributes:
        students: how many submissions it grades.
        take: lets it take its turn.
        turns: what it took, round by round.
    """

    students: int
    take: Callable[[], Turn]
    turns: list[Turn] = field(default_factory=list)

    def ratios(self, other: Way, of: Callable[[Turn, int], float] = lambda turn, _: turn.steady) -> list[float]:
        """Return how many times faster this way was than another one, in each round."""
        pairs = zip(self.turns, other.turns, strict=True)
        return [of(theirs, other.students) / of(mine, self.students) for mine, theirs in pairs]

    @property
    def busy(self) -> float:
        """The median of the shares of all processors' time."""
        return median(turn.busy for turn in self.turns)

    def faster_than(self, other: Way, of: Callable[[Turn, int], float] = lambda turn, _: turn.steady) -> float:
        """Return the median of these."""
        return median(self.ratios(other, of))


def prepare_stock(room: Classroom, folder: Path, students: int) -> None:
    """Make a copy of the course for stock nbgrader, with some of the students."""
    shutil.copytree(room.course.root, folder)
    (folder / CONFIG_NAME).write_text(_STOCK_CONFIG, encoding="utf-8")
    for student in room.students[students:]:
        shutil.rmtree(folder / "submitted" / student)


def stock_nbgrader(room: Classroom, folder: Path, students: int) -> Turn:
    """Let stock nbgrader grade some students."""
    command = [BIN / "nbgrader", "autograde", room.chapter, "--force"]
    one = cost_of([*command, f"--student={room.students[0]}"], cwd=folder)
    several = cost_of(command, cwd=folder)
    graded = list((folder / "autograded").glob(f"*/{room.chapter}/{room.chapter}.ipynb"))
    if len(graded) != students:
        raise RuntimeError(f"stock nbgrader graded {len(graded)} of {students} submissions")
    return Turn(several.wall, several.cpu, (several.wall - one.wall) / (students - 1))


def tfcourse(room: Classroom, jobs: int) -> Turn:
    """Let our command grade all students."""
    command = [
        BIN / "tfcourse",
        "autograde",
        room.chapter,
        "--force",
        "--jobs",
        str(jobs),
        "--course",
        room.course.root,
    ]
    begin = time()
    with Processors() as processors:
        cost = cost_of(command)
    results = read_results(room.course, room.chapter)
    isolation = {result.provenance.isolation for result in results if result.provenance}
    if len(results) != len(room.students) or isolation != {"sandbox"}:
        raise RuntimeError(
            f"{len(results)} of {len(room.students)} submissions graded, isolation {isolation or 'unknown'}"
        )
    times = sorted(
        datetime.fromisoformat(event["time"]).timestamp()
        for event in read_events(room.course, room.chapter)[_last_run(room) :]
        if event["event"] == RECORDED
    )
    first = len(times) // _WARM
    steady = (times[-1] - times[first]) / (len(times) - 1 - first)
    return Turn(cost.wall, cost.cpu, steady, processors.busy(times[first], times[-1]), times[0] - begin)


def _with_one_submission(room: Classroom, folder: Path) -> Course:
    """Make a copy of the course with one student, of whom there is no feedback page yet."""
    shutil.copytree(room.course.root, folder)
    for student in room.students[1:]:
        shutil.rmtree(folder / "submitted" / student)
    return Course.open(folder)


def one_submission(course: Course, chapter: str) -> float:
    """Grade one submission, write its feedback page, and return the seconds of the whole command."""
    shutil.rmtree(course.folder("feedback"), ignore_errors=True)
    command = [BIN / "tfcourse", "autograde", chapter, "--force", "--course", course.root]
    seconds = cost_of(command).wall
    if len(list(course.folder("feedback").glob("*/*/*.html"))) != 1:
        raise RuntimeError(f"no feedback page in {course.folder('feedback')}")
    return seconds


def _last_run(room: Classroom) -> int:
    """Return where the journal's last run begins."""
    names = [event["event"] for event in read_events(room.course, room.chapter)]
    return len(names) - 1 - names[::-1].index("run begins")


def lower_bound(room: Classroom) -> Turn:
    """Run submissions plainly, each in a sandboxed fork."""
    settings = GradingSettings()
    notebooks = [nbformat.reads(text, as_version=4) for text in room.sanitised().values()]
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        packages = Path(folder) / "packages"
        shutil.unpack_archive(room.package(), packages, "zip")
        for path in (Path(folder), packages, *packages.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        adopt_orphans()
        zygote = ZygoteClient(engine_settings(settings, str(packages)), student_environment(settings, Path(folder)))
        try:
            zygote.make_ready()
            begin, cpu = perf_counter(), 0.0
            for notebook in notebooks:
                child = zygote.fork_child(2**28)
                for cell in notebook.cells:
                    if cell.cell_type != "code":
                        continue
                    # Of a test cell the visible question: the answers to the hidden ones are not in the sandbox.
                    source = cell.source.partition("\n")[0] if is_test(cell) else cell.source
                    child.channel.send(pack({"do": "run", "source": source}))
                    while "out" in unpack(child.channel.receive(monotonic() + 60)):
                        pass
                cpu += child.cpu_seconds()
                child.close()
            wall = perf_counter() - begin
        finally:
            zygote.close()
            wait_for_orphans()
    return Turn(0.0, cpu, wall / len(notebooks))


if __name__ == "__main__":
    main()
