"""Select the notebook that counts among several notebooks of one student, if rules can decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from autograder.intake.downloads.archive import RefusedError
from autograder.intake.downloads.choices import MAX_NOTEBOOKS
from autograder.intake.downloads.journal import Choice, hash_content
from autograder.intake.downloads.uploads import Upload
from autograder.intake.notebook.intake import prepare_submission
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.notebook_reader import UnreadableError, read_notebook
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.restore import names_present

NOT_COUNTED = "not counted"


@dataclass(frozen=True)
class Candidate:
    """A notebook that may be a student's submission."""

    digest: str  # a hash of the file
    exact: bool = False  # whether its file name is the chapter's name
    fatal: Problem | None = None  # the reason why it cannot be graded; empty if it can
    cells: frozenset[str] = frozenset()  # names of the chapter's exercises and questions that it contains
    # names of the exercises and questions in which the student has written something
    solved: frozenset[str] = frozenset()
    written: tuple[str, ...] = ()  # the sources of all its cells, in order

    @property
    def worth(self) -> tuple[bool, bool]:
        """A sort key: ungradable notebooks first, then empty notebooks, then notebooks with work."""
        return (self.fatal is None, bool(self.solved))

    def covers(self, other: Candidate) -> bool:
        """Return whether this notebook has all cells that another has, and solves everything that the other solves."""
        return self.cells >= other.cells and self.solved >= other.solved


def examine_file(data: bytes, manifest: Manifest, *, exact: bool = False) -> Candidate:
    """Read a file that may be a student's submission."""
    try:
        notebook, problems = read_notebook(data)
    except UnreadableError as error:
        return Candidate(hash_content(data), exact, error.problem)
    cells = names_present(notebook) & manifest.work
    written = tuple(cell["source"].strip() for cell in notebook.cells if cell["source"].strip())
    restored = prepare_submission(notebook, problems, manifest)
    fatal = next((problem for problem in restored.problems if problem.fatal), None)
    solved = set()
    for cell in restored.notebook.cells:
        released = manifest.by_name.get(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))
        if released is not None and released.solution and cell["source"].split() != released.source.split():
            solved.add(released.name)
    return Candidate(hash_content(data), exact, fatal, cells, frozenset(solved), written)


def pick_candidate(candidates: Sequence[Candidate]) -> tuple[int | None, str]:
    """Select the notebook that counts from a student's notebooks.

    Notebooks that cannot be graded or contain only empty exercises are dropped if another one contains work. Among the others, a notebook
    with the chapter's file name wins. Otherwise a notebook wins if it contains and solves every exercise that any other notebook contains
    and solves.
    Return its index among the notebooks, of which the last is the latest, or None if the rules do not decide; and the rule that decided.
    """
    best = max(candidate.worth for candidate in candidates)
    remaining = [i for i, candidate in enumerate(candidates) if candidate.worth == best]
    if len(remaining) == 1:
        return remaining[0], "it holds the work" if best == (True, True) else "the others cannot be graded"
    if named := [i for i in remaining if candidates[i].exact]:
        remaining = named
        if len(remaining) == 1:
            return remaining[0], "its name is the chapter's"
    if not candidates[remaining[-1]].worth[0]:
        return remaining[-1], "none of them can be graded"
    if len({candidates[i].written for i in remaining}) == 1:
        return remaining[-1], "they say the same"
    full = [i for i in remaining if all(candidates[i].covers(candidates[j]) for j in remaining)]
    return (full[0], "it has more of the chapter's cells solved") if len(full) == 1 else (None, "")


@dataclass(frozen=True)
class ExaminedUpload:
    """An upload and the notebook that it contains."""

    upload: Upload
    notebook: Candidate

    @property
    def where(self) -> str:
        """The upload's path in the download."""
        return str(self.upload.entry.path)


@dataclass
class Selection:
    """The result of selecting among a student's readable notebooks."""

    counting: list[ExaminedUpload]  # one notebook, several if the lecturer has to choose, and none if none can be read
    uncounted: list[ExaminedUpload]  # other gradable notebooks
    problems: list[Problem]


def select_notebook(uploads: Sequence[Upload], manifest: Manifest, preference: Choice | None) -> Selection:
    """Select the student's notebook that counts; an earlier choice by the lecturer has priority."""
    problems: list[Problem] = []
    series: dict[tuple[str, ...], list[ExaminedUpload]] = defaultdict(list)
    ordered = sorted(uploads, key=lambda upload: upload.order)
    if len(ordered) > MAX_NOTEBOOKS:
        message = f"{len(ordered)} notebooks of one student; only the last {MAX_NOTEBOOKS} are looked at."
        problems.append(Problem("too many notebooks", message, str(ordered[0].entry.path), "Ask for one."))
    for upload in ordered[-MAX_NOTEBOOKS:]:
        try:
            data = upload.entry.open()
        except RefusedError as error:
            do = "Download it again, or ask for the notebook once more."
            problems.append(Problem("file refused", str(error), str(upload.entry.path), do))
            continue
        notebook = examine_file(data, manifest, exact=upload.is_named_after(manifest.chapter))
        series[upload.series].append(ExaminedUpload(upload, notebook))
    everything = [one for attempts in series.values() for one in attempts]
    digests = [one.notebook.digest for one in everything]
    if preference is not None and preference.still_applies(digests):
        best = everything[digests.index(preference.digest)]
        problems += _uncounted_problems(best, everything, "you chose it")
    else:
        # Of one file that was handed in several times the last counts, the last that holds work if there is one.
        last = [max(reversed(attempts), key=lambda one: one.notebook.worth) for attempts in series.values()]
        for attempts, latest in zip(series.values(), last, strict=True):
            problems += _uncounted_problems(latest, attempts, "it has the higher number")
        number, why = pick_candidate([one.notebook for one in last]) if last else (None, "")
        if number is None:
            return Selection(last, [], problems)
        best = last[number]
        problems += _uncounted_problems(best, last, why)
        if best.notebook.fatal is not None:
            problems.append(replace(best.notebook.fatal, where=best.where))
    others = [one for one in everything if one is not best and one.notebook.fatal is None]
    return Selection([best], others, problems)


def _uncounted_problems(best: ExaminedUpload, examined: Iterable[ExaminedUpload], why: str) -> list[Problem]:
    """Return a problem for each notebook except the selected one, with the reason why it does not count."""
    problems = []
    for one in examined:
        if one is best:
            continue
        reason = why
        if best.notebook.fatal is None and one.notebook.fatal is not None:
            reason = f"the other cannot be graded: {one.notebook.fatal.kind}"
        elif best.notebook.solved and not one.notebook.solved:
            reason = "nothing is solved in the other"
        message = f"{best.where} of the same student counts, for {reason}."
        problems.append(Problem(NOT_COUNTED, message, one.where))
    return problems


def assign_file_names(examined: Sequence[ExaminedUpload], chapter: str) -> dict[str, ExaminedUpload]:
    """Assign distinct file names to several notebooks: their own names, none equal to the chapter's."""
    files: dict[str, ExaminedUpload] = {}
    taken = {chapter.casefold()}
    for one in sorted(examined, key=lambda one: one.where):
        *folders, title = one.upload.series
        names = [title, f"{folders[-1]}_{title}" if folders else title]
        names += [f"{title}_{number}" for number in range(1, len(examined) + 2)]
        name = next(name[:100] for name in names if name[:100].casefold() not in taken)
        taken.add(name.casefold())
        files[f"{name}.ipynb"] = one
    return files
