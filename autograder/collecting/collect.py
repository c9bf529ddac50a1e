"""Bringing submissions into the course folder, as ``submitted/STUDENT/CHAPTER/CHAPTER.ipynb``."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.atomic_files import drafted
from autograder.collecting.archive import Entry, RefusedError, entries_of, notebooks, readable
from autograder.collecting.candidates import Candidate, decide, examine
from autograder.collecting.choices import MAX_NOTEBOOKS, carry_out, notebooks_beside, read_choice
from autograder.collecting.pending import KIND as NOT_BROUGHT_IN
from autograder.collecting.pending import Awaited, expect, files_to_come, hash_of, settle
from autograder.collecting.pending import problems as problems_of_missing
from autograder.collecting.roster import (
    Student,
    is_safe,
    known_students,
    merged,
    read_roster,
    roster_path,
    safe_id,
    write_roster,
)
from autograder.collecting.student_ids import by_student
from autograder.collecting.uploads import Upload, owners_elsewhere, uploads_of, without_notebook
from autograder.course.folder import Course
from autograder.submission.manifest import Manifest, released_manifest
from autograder.submission.notebook_reader import UnreadableError, read_file
from autograder.submission.problem import Problem
from autograder.submission.timestamp import read_time

_NAMED = 5
# Who handed in no notebook may have handed in a whole project.
_COPIED = 20


@dataclass
class Collection:
    """What was brought in.

    Attributes:
        chapter: the chapter.
        new: students whose submission was not there before.
        replaced: students whose submission was there and is now another.
        unchanged: students whose submission was there already.
        problems: what went otherwise than it should, or should be known; ``where`` names the file.
        missing: what this collection or an earlier one was to bring, and what has not come yet.
    """

    chapter: str
    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    missing: list[Awaited] = field(default_factory=list)

    @property
    def students(self) -> list[str]:
        """Everybody who has a submission in this collection."""
        return sorted({*self.new, *self.replaced, *self.unchanged})


def collect(
    course: Course,
    chapter: str,
    submissions: Path | None = None,
    *,
    trust_dates: bool = False,
    chapters: Iterable[str] = (),
) -> Collection:
    """Bring submissions in.

    Args:
        course: the course, with the chapter released.
        chapter: the chapter.
        submissions: a zip archive or a folder: nbgrader's layout, a download of Canvas or of Moodle, one folder per student, or a flat
            folder of notebooks. By default the course's own ``submitted`` folder, in which nothing but a missing name is added.
        trust_dates: let the files' dates decide who is late. A platform's download usually carries the date of the download.
        chapters: names of chapters that the gradebook need not know: a notebook or folder that is called like one is no student.

    Returns:
        Who was brought in, and the problems; one bad file never keeps another out.

    Raises:
        CourseError: if the chapter is not released, the source is not there or cannot be read at all, or there is no room to write down
            what is to come; then nothing was brought in.
    """
    manifest = released_manifest(course, chapter)
    others = frozenset([*manifest.elsewhere, *chapters]) - {chapter}
    _remove_drafts(course, chapter)
    if submissions is None or submissions.resolve() == course.folder("submitted"):
        return _in_place(course, manifest, others)
    entries, problems = entries_of(submissions)
    found = Collection(chapter, problems=problems)
    uploads, unknown, elsewhere = uploads_of(list(notebooks(entries)), chapter, others, known_students(course))
    found.problems += _of_other_chapters(elsewhere, uploads, chapter, others)
    roster = read_roster(course)
    files, unclear = without_notebook(entries, chapter, others, known_students(course))
    found.problems += [
        Problem("unknown owner", file.why, str(file.entry.path), file.do) for file in (*unknown, *unclear)
    ]
    everybody, same_names = by_student([*uploads, *files], roster, chapter)
    meant = {id(upload) for upload in uploads}
    owned = {student: [upload for upload in own if id(upload) in meant] for student, own in everybody.items()}
    found.problems += same_names
    with_files = {student: everybody[student] for student, own in owned.items() if not own}
    students = _bring_files(course, chapter, with_files, found)
    chosen = _chosen(course, owned, manifest, found, entries, trust_dates)
    expect(course, chapter, [_awaited(course, chapter, submissions, item) for item in chosen])
    failed = set()
    for item in chosen:
        try:
            _place(course, chapter, item, found)
            carry_out(course, chapter, item.student)
        except (OSError, RefusedError) as error:
            failed.add(item.student)
            found.problems.append(_not_brought_in(course, chapter, item, error))
            continue
        students.append(_about(item.student, item.upload, chapter))
    found.missing = settle(course, chapter)
    found.problems += problems_of_missing(
        course, chapter, [item for item in found.missing if item.student not in failed]
    )
    try:
        write_roster(course, merged(roster, students))
    except OSError as error:
        what = f"Names and numbers of this download are not kept: the list of students could not be written ({error.strerror or error})."
        do = _what_to_do(error, "See to it that the course folder can be written, then collect again.")
        found.problems.append(Problem("list not written", what, roster_path(course).name, do))
    return found


@dataclass(frozen=True)
class _Chosen:
    """What is to be brought in of one student.

    Attributes:
        student: the student's id.
        uploads: by the names that they get, the upload that counts, or all those of which a person has to choose one. Their contents are
            read again when they are needed: a class's would fill the memory.
        digests: hashes of the notebooks, by the same names.
        stamp: when it was handed in, or None if that is not known.
    """

    student: str
    uploads: Mapping[str, Upload]
    digests: Mapping[str, str]
    stamp: bytes | None

    @property
    def upload(self) -> Upload:
        """The upload that counts; of several, the last."""
        return list(self.uploads.values())[-1]


def _chosen(
    course: Course,
    owned: Mapping[str, Sequence[Upload]],
    manifest: Manifest,
    found: Collection,
    entries: Sequence[Entry],
    trust_dates: bool,
) -> list[_Chosen]:
    """Return what is to be brought in of everybody; nothing is written yet."""
    chosen = []
    for student, mine in sorted(owned.items()):
        if reads := _choose(mine, manifest, found):
            upload = reads[-1].upload
            names = _named_apart(reads, manifest.chapter)
            try:
                stamp = _time_stamp(upload, entries, trust_dates)
            except RefusedError as error:
                stamp = None
                folder = _place_of(course, manifest.chapter, student).parent
                found.problems.append(_no_time(str(error), folder, f"{upload.folder}/timestamp.txt"))
            uploads = {name: read.upload for name, read in names.items()}
            digests = {name: hash_of(read.notebook.data) for name, read in names.items()}
            chosen.append(_Chosen(student, uploads, digests, stamp))
    return chosen


def _awaited(course: Course, chapter: str, submissions: Path, item: _Chosen) -> Awaited:
    place = _place_of(course, chapter, item.student)
    new = {**item.digests} | ({"timestamp.txt": hash_of(item.stamp)} if item.stamp is not None else {})
    files = files_to_come(place.parent, new)
    return Awaited(item.student, str(submissions.resolve()), str(item.upload.entry.path), files)


def _not_brought_in(course: Course, chapter: str, item: _Chosen, error: OSError | RefusedError) -> Problem:
    reason = getattr(error, "strerror", None) or error
    what = f"{item.student}: it could not be brought in ({reason})."
    if os.path.lexists(_place_of(course, chapter, item.student)):
        what = f"{what[:-1]}; what was handed in before is still there."
    otherwise = f"Look at submitted/{item.student}/{chapter}."
    do = _what_to_do(error, otherwise) if isinstance(error, OSError) else otherwise
    return Problem(NOT_BROUGHT_IN, what, str(item.upload.entry.path), do)


def _what_to_do(error: OSError, otherwise: str) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "Make room on the disk, then collect again." if full else otherwise


def _place_of(course: Course, chapter: str, student: str) -> Path:
    return course.folder("submitted", student, chapter) / f"{chapter}.ipynb"


def _remove_drafts(course: Course, chapter: str) -> None:
    """Remove what a collection that was killed had begun to write."""
    for folder in course.folder("submitted").glob("*/"):
        if not folder.is_symlink():
            for draft in folder.glob(f"{glob.escape(chapter)}.*.part"):
                with suppress(OSError):
                    draft.unlink()


def _in_place(course: Course, manifest: Manifest, others: frozenset[str]) -> Collection:
    chapter = manifest.chapter
    found = Collection(chapter, problems=_misplaced(course.folder("submitted"), chapter, others))
    found.missing = settle(course, chapter)
    found.problems += problems_of_missing(course, chapter, found.missing)
    for folder in sorted(course.folder("submitted").glob(f"*/{chapter}")):
        student = folder.parent.name
        where = f"submitted/{student}/{chapter}"
        if not is_safe(student) and folder.is_dir():
            continue  # grading names it
        if folder.is_dir():
            carry_out(course, chapter, student)
        if problem := _named(folder, manifest, where):
            found.problems.append(problem)
            if not problem.fatal:
                found.unchanged.append(student)
        else:
            found.unchanged.append(student)
        try:
            read_time(folder)
        except UnreadableError as error:
            found.problems.append(_no_time(error.problem.what, folder, f"{where}/timestamp.txt"))
    return found


def _no_time(reason: str, folder: Path, where: str) -> Problem:
    what = f"The time cannot be read, so nothing is taken off for being late. {reason}"
    return Problem("no time", what, where, f"Write it into {folder / 'timestamp.txt'}.")


def _misplaced(submitted: Path, chapter: str, others: frozenset[str]) -> list[Problem]:
    """Name the notebooks that nobody would find where they lie, and the folders that are the wrong way round."""
    do = (
        f"Each belongs to submitted/STUDENT/{chapter}/{chapter}.ipynb. "
        "Or move them out of submitted/ into another folder, and name that with --submissions."
    )
    students = [
        folder
        for folder in sorted(submitted.glob("*/"))
        if not (folder.name in others or folder.name.startswith(".") or folder.is_symlink())
        and not os.path.lexists(folder / chapter)
    ]
    problems = []
    for folder in (submitted, *students):
        where = readable(folder.relative_to(submitted.parent))
        inside = sorted(folder.glob("*"))
        if lost := [path.name for path in inside if path.name.lower().endswith(".ipynb") and path.is_file()]:
            what = f"{_counted(lost, 'notebook')} here, not in a student's folder of {chapter}: passed over."
            problems.append(Problem("wrong place", what, where, do))
        if folder.name == chapter and (names := [path.name for path in inside if path.is_dir()]):
            what = f"The folders are the wrong way round: {_counted(names, 'folder')} in the chapter's: passed over."
            problems.append(Problem("wrong place", what, where, do))
    return problems


def _counted(names: Sequence[str], what: str) -> str:
    shown = readable(", ".join(names[:_NAMED])) + (" …" if len(names) > _NAMED else "")
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''} ({shown})"


def _named(folder: Path, manifest: Manifest, where: str) -> Problem | None:
    """See to it that a student's folder holds a notebook of the chapter's name; say what is wrong if that cannot be."""
    chapter = manifest.chapter
    path = folder / f"{chapter}.ipynb"
    try:
        if folder.is_symlink() or folder.parent.is_symlink():
            read_file(path, above=2)
        if os.path.lexists(path):
            read_file(path, above=2)
            return None
        candidates = sorted(other for other in folder.iterdir() if other.name.lower().endswith(".ipynb"))
        if not candidates:
            return Problem("no notebook", "No notebook is here.", where, "Ask for the .ipynb file.", fatal=True)
        if len(candidates) > MAX_NOTEBOOKS:
            what = f"{len(candidates)} notebooks are here; only the first {MAX_NOTEBOOKS} are looked at."
            return Problem("too many notebooks", what, where, f"Leave one, and call it {chapter}.ipynb.")
        data = [read_file(other, above=2) for other in candidates]
        number, why = decide([examine(one, manifest) for one in data]) if len(data) > 1 else (0, "")
        if number is None:
            return None  # grading tells it, with the points of each
        _write(path, data[number])
    except UnreadableError as error:
        do = "Ask for the notebook once more, and put it there as a file."
        return replace(error.problem, where=where, do=do)
    except OSError as error:
        do = _what_to_do(error, "See to it that it can be read and written, then collect again.")
        return Problem("file refused", f"The folder cannot be used ({error.strerror}).", where, do, fatal=True)
    reason = f": of {len(candidates)} notebooks here it counts, for {why}" if why else ""
    return Problem("renamed", f"{candidates[number].name} was copied to {chapter}.ipynb{reason}.", where)


def _bring_files(
    course: Course, chapter: str, owned: Mapping[str, Sequence[Upload]], found: Collection
) -> list[Student]:
    """Bring in what was handed in by those who handed in no notebook, and name them; return who they are.

    Grading finds their folder without a notebook, so they are not absent but cannot be graded.
    """
    students = []
    for student, uploads in sorted(owned.items()):
        what, do = f"{uploads[0].owner} handed in {len(uploads)} file(s), and no notebook.", "Ask for the .ipynb file."
        if any(upload.entry.path.suffix.lower() == ".zip" for upload in uploads):
            what += " An archive within an archive is not looked into."
            do = f"Unpack it yourself and collect again. Or: {do}"
        path = _place_of(course, chapter, student)
        if os.path.lexists(path) or notebooks_beside(path.parent, chapter):
            what += " The notebook that was handed in before still counts."
        else:
            what += _copied(path.parent, uploads)
            students.append(_about(student, uploads[-1], chapter))
        found.problems.append(Problem("no notebook", what, str(uploads[0].entry.path), do))
    return students


def _copied(folder: Path, uploads: Sequence[Upload]) -> str:
    """Copy files into a student's folder, as many as there is a use for; return what kept some of them out, as a sentence."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for upload in uploads[:_COPIED]:
            name = upload.entry.path.name
            # Archives stay where they are: the notebook may be in one, and is to be unpacked by a person.
            if name != "timestamp.txt" and upload.entry.path.suffix.lower() != ".zip":
                _write(folder / name, upload.entry.open())
    except RefusedError as error:
        return f" {error}"
    except OSError as error:
        return f" They could not be brought in ({error.strerror or error})."
    return ""


def _of_other_chapters(
    elsewhere: Iterable[Entry], uploads: Iterable[Upload], mine: str, others: frozenset[str]
) -> list[Problem]:
    """Name the notebooks of students who have nothing here but another chapter's, going by the names of their files."""
    have = {safe_id(upload.owner) for upload in uploads}
    return [
        Problem(
            "other chapter",
            f"By its name it is of {chapter}, and there is nothing of {owner} for {mine}.",
            str(entry.path),
            f"Rename it if it is of {mine} after all.",
        )
        for entry, owner, chapter in owners_elsewhere(elsewhere, others)
        if safe_id(owner) not in have
    ]


@dataclass(frozen=True)
class _Read:
    """An upload, and the notebook that it holds."""

    upload: Upload
    notebook: Candidate

    @property
    def where(self) -> str:
        return str(self.upload.entry.path)


def _choose(uploads: Sequence[Upload], manifest: Manifest, found: Collection) -> list[_Read]:
    """Return which of a student's uploads counts: one, several if a person has to choose, or none if none can be read."""
    series: dict[tuple[str, ...], list[_Read]] = defaultdict(list)
    ordered = sorted(uploads, key=lambda upload: upload.order)
    if len(ordered) > MAX_NOTEBOOKS:
        what = f"{len(ordered)} notebooks of one student; only the last {MAX_NOTEBOOKS} are looked at."
        found.problems.append(Problem("too many notebooks", what, str(ordered[0].entry.path), "Ask for one."))
    for upload in ordered[-MAX_NOTEBOOKS:]:
        try:
            data = upload.entry.open()
        except RefusedError as error:
            do = "Download it again, or ask for the notebook once more."
            found.problems.append(Problem("file refused", str(error), str(upload.entry.path), do))
            continue
        exact = upload.is_named_after(manifest.chapter)
        series[upload.series].append(_Read(upload, examine(data, manifest, exact=exact)))
    # Of one file that was handed in several times the last counts, the last that holds work if there is one.
    last = [max(enumerate(own), key=lambda item: (item[1].notebook.worth, item[0]))[1] for own in series.values()]
    for own, best in zip(series.values(), last, strict=True):
        _tell_uncounted(best, own, "it has the higher number", found)
    if not last:
        return []
    number, why = decide([read.notebook for read in last])
    if number is None:
        return last
    _tell_uncounted(last[number], last, why, found)
    if (fatal := last[number].notebook.fatal) is not None:
        found.problems.append(replace(fatal, where=last[number].where))
    return [last[number]]


def _tell_uncounted(best: _Read, reads: Iterable[_Read], why: str, found: Collection) -> None:
    """Say of all uploads but one that they do not count, and why."""
    for read in reads:
        if read is best:
            continue
        reason, do = why, "If this one should count, remove the other from the download and collect again."
        if best.notebook.fatal is None and read.notebook.fatal is not None:
            reason, do = f"the other cannot be graded: {read.notebook.fatal.kind}", ""
        elif best.notebook.solved and not read.notebook.solved:
            reason, do = "nothing is solved in the other", ""
        what = f"{best.where} of the same student counts, for {reason}."
        found.problems.append(Problem("not counted", what, read.where, do))


def _place(course: Course, chapter: str, item: _Chosen, found: Collection) -> None:
    """Put what a student has handed in in its place: the notebook that counts, or all those of which a person has to choose one."""
    student, where = item.student, str(item.upload.entry.path)
    path = _place_of(course, chapter, student)
    if path.parent.resolve() != course.folder("submitted").resolve() / student / chapter:
        raise OSError(f"submitted/{student}/{chapter} is a link that leads elsewhere")
    if path.is_dir() and not path.is_symlink():
        raise OSError(f"{path.name} is a folder there")
    files = {name: upload.entry.open() for name, upload in item.uploads.items()}
    if any(upload.late for upload in item.uploads.values()) and item.stamp is None:
        what = "Canvas calls it late, but does not say by how much; nbgrader takes nothing off without a time."
        found.problems.append(Problem("late", what, where, f"Write the time into {path.parent / 'timestamp.txt'}."))
    same = _content(path) == files[path.name] if path.name in files else notebooks_beside(path.parent, chapter) == files
    if same:
        if item.stamp is not None:
            _write(path.with_name("timestamp.txt"), item.stamp)
        found.unchanged.append(student)
    elif kept := _put(course, chapter, student, files, item.stamp):
        found.replaced.append(student)
        found.problems.append(
            Problem("replaced", f"It replaces an earlier submission, which is kept in {kept}.", where)
        )
    else:
        found.new.append(student)


def _named_apart(reads: Sequence[_Read], chapter: str) -> dict[str, _Read]:
    """Return one notebook under the chapter's name; several under those that their student gave them, and none under the chapter's."""
    if len(reads) == 1:
        return {f"{chapter}.ipynb": reads[0]}
    files: dict[str, _Read] = {}
    taken = {chapter.casefold()}
    for read in sorted(reads, key=lambda read: read.where):
        *folders, title = read.upload.series
        names = [title, f"{folders[-1]}_{title}" if folders else title]
        names += [f"{title}_{number}" for number in range(1, len(reads) + 2)]
        name = next(name[:100] for name in names if name[:100].casefold() not in taken)
        taken.add(name.casefold())
        files[f"{name}.ipynb"] = read
    return files


def _put(course: Course, chapter: str, student: str, files: Mapping[str, bytes], stamp: bytes | None) -> str:
    """Put a submission in its place; return where the earlier one is kept, or nothing if there was none.

    Whenever this is cut short, there is what was handed in before or what is handed in now, and collecting again comes to the same end:
    nothing is changed before all that is new lies on the disk, nothing is taken away before it is kept, and the time comes first, so
    that no new notebook has an old time.
    """
    path, kept = _place_of(course, chapter, student), ""
    when = path.with_name("timestamp.txt")
    with ExitStack() as drafts:
        new = {name: drafts.enter_context(_draft(path.with_name(name), data)) for name, data in files.items()}
        time = None if stamp is None else drafts.enter_context(_draft(when, stamp))
        if os.path.lexists(path):
            kept = _set_aside(course, chapter, student, stamp)
        old = _left_by_an_open_submission(course, chapter, student)
        if old:
            kept = _set_aside_others(course, chapter, student, old) or kept
        path.parent.mkdir(exist_ok=True)
        if time is not None:
            time.replace(when)
        elif kept:
            when.unlink(missing_ok=True)
        for name, draft in new.items():
            draft.replace(path.with_name(name))
        for place in [*old, path]:
            if place.name not in files:
                place.unlink(missing_ok=True)
    return kept


def _left_by_an_open_submission(course: Course, chapter: str, student: str) -> list[Path]:
    """Return the files that were handed in without a notebook that counts: they are no part of what is handed in next."""
    path = _place_of(course, chapter, student)
    if not path.parent.is_dir() or (os.path.lexists(path) and read_choice(course, chapter, student) is None):
        return []
    own = {path.name, "timestamp.txt"}
    return [place for place in sorted(path.parent.iterdir()) if place.name not in own and not place.is_dir()]


def _set_aside_others(course: Course, chapter: str, student: str, files: Sequence[Path]) -> str:
    """Keep files of an earlier submission; return where."""
    digest = hashlib.sha256(b"".join(hashlib.sha256(_content(path) or b"").digest() for path in files)).hexdigest()
    folder = course.root / "replaced" / chapter / student / digest[:12]
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        _keep(path, folder / path.name)
    return folder.relative_to(course.root).as_posix()


def _time_stamp(upload: Upload, entries: Sequence[Entry], trust_dates: bool) -> bytes | None:
    """Return when it was handed in: nbgrader's own word for it, or the file's date if that is to be trusted.

    nbgrader writes into the submission's own folder. A stamp further down, or in an archive, is somebody else's.
    """
    for entry in entries:
        if upload.folder is not None and entry.path == upload.folder / "timestamp.txt":
            return entry.open()[:200].decode("utf-8", "replace").strip().encode() or None
    if trust_dates and upload.entry.date is not None:
        return upload.entry.date.strftime("%Y-%m-%d %H:%M:%S UTC").encode()
    return None


def _set_aside(course: Course, chapter: str, student: str, stamp: bytes | None) -> str:
    """Keep an earlier submission, time stamp and all, before another takes its place; return where it is kept.

    Args:
        course: the course.
        chapter: the chapter.
        student: whose submission it is.
        stamp: the new submission's time stamp.
    """
    path = _place_of(course, chapter, student)
    when = path.with_name("timestamp.txt")
    digest = hashlib.sha256(_content(path) or b"").hexdigest()[:12]
    folder = course.root / "replaced" / chapter / student / digest
    # A collection that was cut short may have kept the notebook, and put the new time beside it.
    if not (os.path.lexists(folder / path.name) and _content(when) == stamp):
        folder.mkdir(parents=True, exist_ok=True)
        for old in (when, path):
            if os.path.lexists(old):
                _keep(old, folder / old.name)
    return folder.relative_to(course.root).as_posix()


def _keep(old: Path, kept: Path) -> None:
    """Give a file a second name, which stays when the first is given to another; where that cannot be, copy it."""
    kept.unlink(missing_ok=True)
    try:
        os.link(old, kept, follow_symlinks=False)
    except OSError:
        data = _content(old)
        if data is None:
            raise
        _write(kept, data)


def _content(path: Path) -> bytes | None:
    """Return what a file in the course holds; None if there is none, or a link, or something else."""
    try:
        return read_file(path)
    except UnreadableError:
        return None


def _draft_of(path: Path) -> Path:
    # Not in the file's own folder: all that lies beside a notebook is handed in with it, also what a killed collection has left.
    return path.parent.with_name(f"{path.parent.name}.{path.name}.part")


def _draft(path: Path, data: bytes) -> AbstractContextManager[Path]:
    return drafted(path, data, at=_draft_of(path))


def _write(path: Path, data: bytes) -> None:
    with _draft(path, data) as draft:
        draft.replace(path)


def _about(student: str, upload: Upload, chapter: str) -> Student:
    platform = upload.platform if upload.platform in ("canvas", "moodle") else ""
    name = upload.owner if upload.owner != student else ""
    return Student(student, name, platform, upload.user, {chapter: upload.upload} if upload.upload else {})
