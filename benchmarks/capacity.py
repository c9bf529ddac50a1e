"""How far grading on a cluster carries: a simulation of one large batch, from service times that were measured.

    python benchmarks/capacity.py measure        grade a sample class here and write benchmarks/results/service_times.json
    python benchmarks/capacity.py                print the table
    python benchmarks/capacity.py write-docs     put the table into docs/scale.md

The simulation is that of ``autograder/grading/cluster``: one process prepares submissions and records grades, one at a time; each
worker has a submission that runs and one that waits. Nothing is drawn that was not measured, and the same seed gives the same table.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import random
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from autograder.grading.plugin import autograder_config

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "benchmarks" / "results" / "service_times.json"
PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- capacity: begin -->\n", "<!-- capacity: end -->\n"
WORKERS = (2, 16, 64, 256)
SUBMISSIONS = 100_000
# Between the end of a submission and the worker's next one, and the other way: Dask's scheduler and a local network.
NETWORK_SECONDS = 0.005
DEPTH = 2


@dataclass(frozen=True)
class Times:
    """What was measured, one number for each submission.

    Attributes:
        about: machine, chapter, and what else makes the figures what they are.
        service: seconds that a worker takes.
        prepare: seconds that the one process takes before, for reading and sanitising.
        record: seconds that it takes after, for judging and recording.
        feedback: seconds for a feedback page.
        start: seconds until a worker is ready.
        sent: bytes that go to a worker.
        returned: bytes that come back.
        gradebook: bytes that a submission adds to the gradebook.
        files: bytes of files that it leaves in the course folder, with feedback, and without what was handed in.
    """

    about: dict[str, Any]
    service: list[float]
    prepare: list[float]
    record: list[float]
    feedback: float
    start: float
    sent: float
    returned: float
    gradebook: float
    files: float

    @property
    def writes_per_second(self) -> float:
        """How many submissions the one process can prepare and record in a second."""
        return 1 / (fmean(self.prepare) + fmean(self.record))

    @property
    def enough_workers(self) -> float:
        """With how many workers that process has no time left."""
        return fmean(self.service) * self.writes_per_second


@dataclass(frozen=True)
class Outcome:
    """What came of a simulated batch.

    Attributes:
        workers: how many there were.
        seconds: how long it took.
        worker_share: the share of that time in which a worker was busy, on average.
        writer_share: the share in which the one process was.
    """

    workers: int
    seconds: float
    worker_share: float
    writer_share: float


def simulate(times: Times, workers: int, submissions: int, seed: int = 0) -> Outcome:
    """Simulate a batch that is all there when grading begins, as after a deadline.

    Args:
        times: what was measured.
        workers: how many there are.
        submissions: how many are to be graded.
        seed: decides which measured times are drawn.
    """
    rng = random.Random(seed)
    clock, writer_busy, worker_busy = 0.0, 0.0, 0.0
    places = deque(worker for _ in range(DEPTH) for worker in range(workers))
    free_at = [times.start] * workers
    coming_back: list[tuple[float, int]] = []
    prepared = recorded = 0
    while recorded < submissions:
        back = bool(coming_back) and coming_back[0][0] <= clock
        if prepared < submissions and places:  # as the real one: places are filled first, then results taken
            spent = rng.choice(times.prepare)
            clock += spent
            worker = places.popleft()
            service = rng.choice(times.service)
            free_at[worker] = max(free_at[worker], clock + NETWORK_SECONDS) + service
            worker_busy += service
            heapq.heappush(coming_back, (free_at[worker] + NETWORK_SECONDS, worker))
            prepared += 1
        elif back:
            spent = rng.choice(times.record)
            clock += spent
            places.append(heapq.heappop(coming_back)[1])
            recorded += 1
        else:
            spent = 0.0
            clock = coming_back[0][0]
        writer_busy += spent
    return Outcome(workers, clock, worker_busy / (clock * workers), writer_busy / clock)


def table(times: Times, *, submissions: int = SUBMISSIONS, workers: Sequence[int] = WORKERS, seed: int = 0) -> str:
    """Return what comes of a large batch with several numbers of workers, as a Markdown table and the sentences that go with it."""
    lines = [
        f"| workers | hours for {submissions:,} submissions | submissions per second | workers busy | the one writer busy |",
        "|---|---|---|---|---|",
    ]
    for count in workers:
        done = simulate(times, count, submissions, seed)
        figures = f"{done.seconds / 3600:.1f} | {submissions / done.seconds:.1f}"
        lines.append(f"| {count} | {figures} | {done.worker_share:.0%} | {done.writer_share:.0%} |")
    about, sent, returned = times.about, times.sent, times.returned
    lines += [
        "",
        f"From {len(times.service)} submissions of {about['chapter']}, graded on {about['machine']} (load "
        f"{about['load']}): {fmean(times.service):.2f} s on a worker, {fmean(times.prepare):.3f} s to prepare and "
        f"{fmean(times.record):.3f} s to record one.",
        "",
        f"**Where it ends:** the one writer is fully busy with {times.enough_workers:.0f} workers, at "
        f"{times.writes_per_second:.0f} submissions per second. More workers than that wait for it. The same process writes the "
        f"feedback pages afterwards: {times.feedback * 1000:.0f} ms each, {times.feedback * submissions / 3600:.1f} hours for all.",
        "",
        f"**Disk:** {times.gradebook * submissions / 1e9:.1f} GB of gradebook and {times.files * submissions / 1e9:.0f} GB of files "
        f"beside what was handed in. **Network:** {sent / 1e3:.0f} kB out and {returned / 1e3:.0f} kB back for each submission, "
        f"{(sent + returned) * times.writes_per_second / 1e6:.1f} MB/s at most.",
    ]
    return "\n".join(lines) + "\n"


def read_times(path: Path = MEASURED) -> Times:
    """Return what :func:`measure` has written."""
    return Times(**json.loads(path.read_text(encoding="utf-8")))


def written(page: str, text: str) -> str:
    """Return a page with another text between its marks."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + text + END + rest.split(END)[1]


def measure(students: int, chapter: str) -> Times:
    """Grade a sample class on this machine, one submission at a time, and return what each step took."""
    from autograder.commands.selftest.sample_class import sample_class
    from autograder.course.folder import Course
    from autograder.course.release.assign import assign
    from autograder.grading import autograde as grading
    from autograder.grading import run
    from autograder.grading.feedback.pages import write_feedback

    before_it = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        course = Course.open(Path(folder) / "course", create=True)
        [made] = assign(ROOT, course, [chapter])
        sample_class(ROOT, course, [made.chapter], students=students, seed=0)
        before = _bytes(course.root), _bytes(course.root, "gradebook.db*")
        watch = _Stopwatch(run.run_submissions)
        run.run_submissions = watch.executions
        try:
            grading.autograde(course, made.chapter, jobs=1, device="cpu")
        finally:
            run.run_submissions = watch.original
        begin = perf_counter()
        pages = write_feedback(course, made.chapter, autograder_config(course))
        feedback = (perf_counter() - begin) / len(pages)
        count = len(watch.service)
        gradebook = (_bytes(course.root, "gradebook.db*") - before[1]) / count
        files = (_bytes(course.root) - before[0]) / count - gradebook
    machine = f"{os.cpu_count()} cores of {platform.machine()}"
    load = f"{before_it:.1f} before, {os.getloadavg()[0]:.1f} at the end"
    about = {"chapter": made.chapter, "machine": machine, "load": load, "students": students}
    # The first one waits for a worker to get ready, and for imports.
    start = watch.service[0] - fmean(watch.service[1:])
    return Times(
        about,
        _rounded(watch.service[1:]),
        _rounded(watch.prepare[1:]),
        _rounded(watch.record[1:]),
        round(feedback, 4),
        round(max(0.0, start), 2),
        round(fmean(watch.sent)),
        round(fmean(watch.returned)),
        round(gradebook),
        round(files),
    )


class _Stopwatch:
    """Stands in the place of ``run_submissions`` and takes the time of what it hands on.

    Args:
        original: the function that it calls.
    """

    def __init__(self, original: Any) -> None:
        self.original = original
        self.service: list[float] = []
        self.prepare: list[float] = []
        self.record: list[float] = []
        self.sent: list[int] = []
        self.returned: list[int] = []

    def executions(self, make_executor: Any, settings: Any, submissions: Any, workers: Any) -> Iterator[Any]:
        """As the original."""
        for execution in self.original(make_executor, settings, self._prepared(iter(submissions)), workers):
            self.service.append(execution.seconds)
            self.returned.append(len(execution.notebook.encode()))
            begin = perf_counter()
            yield execution
            self.record.append(perf_counter() - begin)

    def _prepared(self, submissions: Iterator[Any]) -> Iterator[Any]:
        while True:
            begin = perf_counter()
            submission = next(submissions, None)
            if submission is None:
                return
            self.prepare.append(perf_counter() - begin)
            self.sent.append(len(submission.notebook.encode()))
            yield submission


def _bytes(folder: Path, pattern: str = "**/*") -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file())


def _rounded(seconds: list[float]) -> list[float]:
    return [round(value, 4) for value in seconds]


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("table", "measure", "write-docs"), default="table")
    parser.add_argument("--students", type=int, default=24, help="size of the sample class that is measured")
    parser.add_argument("--chapter", default="03", help="the chapter that is measured")
    parser.add_argument("--submissions", type=int, default=SUBMISSIONS, help="size of the batch that is simulated")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS, help="numbers of workers")
    parser.add_argument("--seed", type=int, default=0, help="decides which measured times are drawn")
    parser.add_argument("--times", type=Path, default=MEASURED, help="the file with measured times")
    chosen = parser.parse_args()
    if chosen.what == "measure":
        times = measure(chosen.students, chosen.chapter)
        chosen.times.write_text(json.dumps(asdict(times), indent=1) + "\n", encoding="utf-8")
    elif chosen.what == "write-docs":
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(written(text, table(read_times(chosen.times))), encoding="utf-8")
    else:
        print(table(read_times(chosen.times), submissions=chosen.submissions, workers=chosen.workers, seed=chosen.seed))


if __name__ == "__main__":
    main()
