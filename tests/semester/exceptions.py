"""Play a semester in which numbers change after the fact, and compare all of them after every step.

Forty students hand in chapter 03 on Moodle, and chapter 07 in groups on Canvas. Two of them are called Anna Schmidt. One leaves, one is
excused, two join late, and a stranger hands in.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from autograder.commands.main import main
from autograder.course.folder import Course

from .changed_check import ChangedCheck
from .downloads import Person, read_people
from .everywhere import Comparison, Places
from .expected import Expected, Happened, Key, Listed, Work
from .facts import cell_source, exercise_points, points_of_rows
from .marking_page import mark_group, mark_with_rubric, marking_page
from .platform_lists import login, write_groups, write_people, write_table, write_worksheet

PROJECT = Path(__file__).resolve().parents[2]
STUDENTS = 40
ON_MOODLE, IN_GROUPS, LATER = "03_scaled_dot_product", "07_decoding", "01_recurrent"
ZONE = ZoneInfo("Europe/Warsaw")
SEED = "3251450720898221488"
# Submissions run on two processes, with what isolation there is.
_OPTIONS = ("--device", "cpu", "--jobs", "2", "--allow-weaker-isolation")
# When the students of chapter 03 handed in, in Warsaw. Its clocks go back in the night after the deadline.
_TIMES = (
    datetime(2026, 10, 24, 20, 14),  # within the grace period
    datetime(2026, 10, 24, 20, 16),  # one day
    datetime(2026, 10, 25, 19, 50),  # 24 hours and 50 minutes later, on the first late day
    datetime(2026, 10, 25, 20, 30),  # two days
    datetime(2026, 10, 31, 12, 0),  # the cap
)
_IN_TIME = datetime(2026, 10, 23, 17, 5)
STRANGER = "Kim Unknown"


@dataclass
class Exceptions:
    """The semester while it is played.

    Attributes:
        folder: downloads, lists and exports.
        patch: changes what the commands use.
        happened: what has happened so far, for the second computation.
        people: the class; the id of each is ``u`` and the number.
        roles: the students to whom something happens, by what it is.
        works: the notebooks, by chapter and student.
        answered: the questions that these answer.
        has_stranger: whether a stranger is undecided, so that commands end with exit code 1.
        output: what each step printed last.
        comparisons: the outcome of the comparison after each step.
        expected: the second computation after each step.
    """

    folder: Path
    patch: pytest.MonkeyPatch
    happened: Happened
    people: Sequence[Person] = ()
    roles: dict[str, Person] = field(default_factory=dict)
    works: dict[Key, bytes] = field(default_factory=dict)
    answered: dict[Key, frozenset[str]] = field(default_factory=dict)
    has_stranger: bool = False
    output: dict[str, str] = field(default_factory=dict)
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    expected: dict[str, Expected] = field(default_factory=dict)

    @property
    def course(self) -> Path:
        """The course folder."""
        return self.folder / "course"

    def run(self, *words: object) -> str:
        """Run a command in the course and return what it prints."""
        done = CliRunner().invoke(main, [*map(str, words), "--course", str(self.course)])
        falls_short = self.has_stranger and words[0] == "report"
        # A notebook that cannot be read waits for a person all the semester long.
        allowed = {1} if falls_short else {0, 1}
        assert done.exit_code in allowed, f"{words}: {done.exit_code}\n{done.output}\n{done.exception!r}"
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done.stdout

    def compare(self, step: str) -> None:
        """Compare all numbers after a step."""
        self.happened.plan = tomllib.loads((self.course / "course.toml").read_text(encoding="utf-8"))
        for chapter, student in self.happened.works:
            self.happened.works[chapter, student] = replace(
                self.happened.works[chapter, student], earned=points_of_rows(self.course, chapter, student)
            )
        numbers = {("canvas", str(person.number)): login(person) for person in self.people}
        numbers |= {("moodle", str(person.number + 700)): login(person) for person in self.people}
        places = Places(self.course, self.run, numbers)
        expected = Expected(self.happened)
        archives = {
            (platform, chapter): self._with_page(expected, chapter)
            for platform, chapter in (("moodle", ON_MOODLE), ("canvas", IN_GROUPS))
            if any(name == chapter for name, _ in self.happened.works)
        }
        self.expected[step] = expected
        self.comparisons[step] = places.compare(expected, self.folder / "exports" / step.replace(" ", "-"), archives)

    def _with_page(self, expected: Expected, chapter: str) -> list[str]:
        """Return the students whose feedback page goes back to the platform: all in the class who handed in, and their groups."""
        return [
            student
            for (name, student), row in expected.everyone.items()
            if name == chapter
            and row.work is not None
            and student in self.happened.listed
            and student not in self.happened.withdrawn
        ]


def play(folder: Path, patch: pytest.MonkeyPatch) -> Exceptions:
    """Play the semester."""
    semester = Exceptions(folder, patch, Happened())
    for step in (
        *(_class_list, _chapter_on_moodle, _leave_and_excuse, _join_late, _chapter_in_groups, _two_deadlines),
        *(_fewer_points, _mark, _count_otherwise, _make_grades, _hand_in_again, _take_back, _change_check),
    ):
        name = step.__name__.strip("_").replace("_", " ")
        step(semester)
        if semester.happened.works:
            semester.compare(name)
    return semester


def _class_list(semester: Exceptions) -> None:
    semester.course.mkdir()
    shutil.copyfile(Path(__file__).with_suffix(".toml"), semester.course / "course.toml")
    (semester.course / "secret_seed").write_text(SEED, encoding="ascii")
    semester.run("assign", "01", "03", "07")
    for chapter in (LATER, ON_MOODLE, IN_GROUPS):
        semester.happened.worth[chapter] = exercise_points(semester.course / "release" / chapter / f"{chapter}.ipynb")
    _make_class(semester)
    _read_lists(semester, [person for person in semester.people if person not in _late_joiners(semester)])


def _make_class(semester: Exceptions) -> None:
    """Have the class do its work in a copy of the course; rename two students, and give some of them a role."""
    workshop = semester.folder / "workshop"
    shutil.copytree(semester.course, workshop)
    words = ["sample-class", "03", "07", "--students", str(STUDENTS), "--course", str(workshop)]
    assert CliRunner().invoke(main, words).exit_code == 0
    about = json.loads((workshop / "sample_class.json").read_text(encoding="utf-8"))
    people = read_people(workshop)
    plain = [p for p in people if len(p.works) == 2 and all(work.startswith(b"{") for work in p.works.values())]
    for number in (0, 3):
        people[people.index(plain[number])] = plain[number] = replace(plain[number], name="Anna Schmidt")
    semester.people = people
    blank = (semester.course / "release" / ON_MOODLE / f"{ON_MOODLE}.ipynb").read_bytes()
    names = ("anna", "withdrawn", "excused", "other anna", "late", "absent late", "extended", "early", "again", "blank")
    semester.roles = dict(zip(names, plain, strict=False))
    for person, entry in zip(people, about, strict=True):
        for chapter, work in person.works.items():
            semester.works[chapter, login(person)] = work
            semester.answered[chapter, login(person)] = frozenset(entry["chapters"][chapter]["answered"])
    key = ON_MOODLE, login(semester.roles["blank"])
    semester.works[key], semester.answered[key] = blank, frozenset()


def _late_joiners(semester: Exceptions) -> list[Person]:
    return [semester.roles["late"], semester.roles["absent late"]]


def _groups(semester: Exceptions) -> dict[str, list[Person]]:
    """Return the groups: the first member of each hands in, and both of the last one do."""
    roles = semester.roles
    others = [person for person in semester.people if person not in roles.values() and IN_GROUPS in person.works]
    gradable = [person for person in others if person.works[IN_GROUPS].startswith(b"{")]
    return {
        "Ada": [gradable[0], roles["extended"], gradable[1]],
        "Bo": [gradable[2], roles["early"]],
        "Cy": [gradable[3], roles["excused"]],
        "Dee": [roles["withdrawn"], gradable[4]],
        "Eve": [gradable[5], gradable[6]],
    }


def _submitters(semester: Exceptions) -> list[Person]:
    """Return who hands in chapter 07."""
    waiting = {person.number for members in list(_groups(semester).values())[:-1] for person in members[1:]}
    waiting.add(semester.roles["absent late"].number)
    return [person for person in semester.people if IN_GROUPS in person.works and person.number not in waiting]


def _read_lists(semester: Exceptions, people: Iterable[Person]) -> None:
    """Read Canvas's list of the class, and its list of the groups."""
    group_of = {person.number: name for name, members in _groups(semester).items() for person in members}
    listed = {}
    for person in people:
        section = "Evening" if person.number == semester.roles["early"].number else "Day"
        listed[login(person)] = Listed(section, group_of.get(person.number, ""))
    semester.happened.listed |= listed
    write_people(semester.folder / "people.csv", people, listed)
    write_groups(semester.folder / "groups.csv", people, listed)
    semester.run("students", semester.folder / "people.csv")
    semester.run("students", semester.folder / "groups.csv")


def _chapter_on_moodle(semester: Exceptions) -> None:
    """Read Moodle's worksheet, whose times wait for the submissions, and grade the download."""
    late = iter(_TIMES)
    plain = [p for p in semester.people if semester.works.get((ON_MOODLE, login(p)), b"").startswith(b"{")]
    on_time = {semester.roles[name].number for name in ("anna", "excused", "again", "blank")}
    times = {}
    for person in plain:
        skipped = person.number in on_time or person in _late_joiners(semester)
        times[person.number] = _IN_TIME if skipped else next(late, _IN_TIME)
    times[semester.roles["blank"].number] = _TIMES[2]
    participants = [person for person in plain if person not in _late_joiners(semester)]
    write_worksheet(semester.folder / "worksheet.csv", participants, times)
    semester.run("students", semester.folder / "worksheet.csv", "--chapter", "03")
    with zipfile.ZipFile(semester.folder / "moodle.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for person in participants:
            folder = f"{person.name}_{person.number + 700}_assignsubmission_file"
            archive.writestr(f"{folder}/{ON_MOODLE}.ipynb", semester.works[ON_MOODLE, login(person)])
            handed_in = times[person.number].replace(tzinfo=ZONE)
            _hand_in(semester, ON_MOODLE, login(person), handed_in, "moodle")
        stranger = semester.works[ON_MOODLE, login(semester.roles["again"])]
        archive.writestr(f"{STRANGER}_9001_assignsubmission_file/{ON_MOODLE}.ipynb", stranger)
    answered = semester.answered[ON_MOODLE, login(semester.roles["again"])]
    semester.happened.works[ON_MOODLE, "kim-unknown"] = Work(None, {}, answered, "moodle")
    semester.has_stranger = True
    semester.output["stranger"] = semester.run(
        "autograde", "03", "--submissions", semester.folder / "moodle.zip", *_OPTIONS
    )


def _hand_in(semester: Exceptions, chapter: str, student: str, handed_in: datetime | None, platform: str) -> None:
    gradable = semester.works[chapter, student].startswith(b"{")
    answered = semester.answered[chapter, student]
    semester.happened.works[chapter, student] = Work(handed_in, {}, answered, platform, gradable)


def _leave_and_excuse(semester: Exceptions) -> None:
    withdrawn, excused = login(semester.roles["withdrawn"]), login(semester.roles["excused"])
    semester.output["archive"] = semester.run("export", "--feedback", "moodle", "03")
    semester.run("students", "--withdraw", withdrawn)
    semester.run("students", "--excuse", excused, "03")
    semester.happened.withdrawn.add(withdrawn)
    semester.happened.excused.add((ON_MOODLE, excused))


def _join_late(semester: Exceptions) -> None:
    """Read the list again, which now has two more students: one hands in chapter 07, one joins after it was due."""
    _read_lists(semester, semester.people)
    for role, day in (("late", "2026-11-02"), ("absent late", "2026-11-16")):
        semester.run("students", "--joined", login(semester.roles[role]), day)
        semester.happened.joined[login(semester.roles[role])] = date.fromisoformat(day)


def _chapter_in_groups(semester: Exceptions) -> None:
    """Grade a download of Canvas, whose times come in a table of their own."""
    groups, due = _groups(semester), datetime(2026, 11, 9, 23, 59, tzinfo=ZONE)
    times = {person.number: due - timedelta(hours=7) for person in _submitters(semester)}
    times[groups["Ada"][0].number] = due + timedelta(days=1, hours=11)
    times[groups["Bo"][0].number] = due - timedelta(days=2, hours=3)
    times[groups["Cy"][0].number] = due + timedelta(hours=1)
    with zipfile.ZipFile(semester.folder / "canvas.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for person in _submitters(semester):
            work = semester.works[IN_GROUPS, login(person)]
            late = "LATE_" if times[person.number] > due else ""
            name = f"{person.on_canvas}_{late}{person.number}_{person.number + 5000}_{IN_GROUPS}.ipynb"
            archive.writestr(name, work)
            _hand_in(semester, IN_GROUPS, login(person), times[person.number], "canvas")
    semester.run("autograde", "07", "--submissions", semester.folder / "canvas.zip", *_OPTIONS)
    rows = [(login(person), times[person.number].isoformat(" ")) for person in _submitters(semester)]
    write_table(semester.folder / "times.csv", ("student", "time"), rows)
    semester.run("students", semester.folder / "times.csv", "--chapter", "07")


def _two_deadlines(semester: Exceptions) -> None:
    """Give one member of a group an extension, and a section an earlier deadline."""
    extended = login(semester.roles["extended"])
    _append(
        semester,
        f"[extensions.{extended}]\n{IN_GROUPS} = 2026-11-12T23:59:00\n"
        f"[deadlines.Evening]\n{IN_GROUPS} = 2026-11-06T12:00:00\n{ON_MOODLE} = 2026-10-22T12:00:00\n",
    )


def _fewer_points(semester: Exceptions) -> None:
    """Give a question other points while its answers wait, and another one none that have to be earned."""
    _append(
        semester,
        f"[chapters.{IN_GROUPS}.exercises.question_sampler_order]\npoints = 2\n"
        f'[chapters.{ON_MOODLE}.exercises.question_query_key]\ncount = "bonus"\n',
    )


def _mark(semester: Exceptions) -> None:
    """Tick items of the rubrics, and type points with a decimal comma."""
    for chapter in (ON_MOODLE, IN_GROUPS):
        command = [
            str(Path(sys.executable).with_name("tfcourse")),
            "mark",
            chapter,
            "--names",
            "--course",
            str(semester.course),
        ]
        with marking_page(command, PROJECT) as (address, _):
            for question, students, points in mark_with_rubric(address):
                for student in students:
                    semester.happened.marks[chapter, student, question] = points
            if chapter == ON_MOODLE:
                for student in mark_group(address, "causal_mask", "1,5", "Draw it first."):
                    semester.happened.marks[chapter, student, "causal_mask"] = 1.5


def _count_otherwise(semester: Exceptions) -> None:
    """Count exercises otherwise after hand-in."""
    _append(
        semester,
        f'[chapters.{ON_MOODLE}.exercises.padding_mask]\ncount = "drop"\n'
        f'[chapters.{ON_MOODLE}.exercises.soft_lookup]\ncount = "full"\n'
        f'[chapters.{IN_GROUPS}.exercises.length_penalty]\ncount = "bonus"\n'
        f"[chapters.{IN_GROUPS}.exercises.temperature]\npoints = 7.5\n",
    )
    semester.output["rules"] = semester.run("regrade", "03", "--dry-run", *_OPTIONS)


def _make_grades(semester: Exceptions) -> None:
    """Make grades of the totals, and give a chapter a rule of its own for late work: after one day nothing counts."""
    _append(
        semester,
        f"[chapters.{IN_GROUPS}.late]\nper_day = 0.05\ngrace_minutes = 0\nclosed_after_days = 1\n"
        "[total]\nscale = 60\npass_mark = 60\ndrop_lowest = 1\ngrades = { excellent = 90, good = 75, sufficient = 60 }\n",
    )


def _hand_in_again(semester: Exceptions) -> None:
    """Collect a second download of Moodle, in which one student has handed in again, later; its worksheet says when."""
    person = semester.roles["again"]
    better = semester.roles["anna"]
    key = ON_MOODLE, login(person)
    before, now = semester.works[key], semester.works[ON_MOODLE, login(better)]
    semester.works[key], semester.answered[key] = now, semester.answered[ON_MOODLE, login(better)]
    for name in semester.happened.worth[ON_MOODLE]:
        if (*key, name) in semester.happened.marks and cell_source(before, name) != cell_source(now, name):
            semester.happened.reopened.add((*key, name))
    with zipfile.ZipFile(semester.folder / "again.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        folder = f"{person.name}_{person.number + 700}_assignsubmission_file"
        archive.writestr(f"{folder}/{ON_MOODLE}.ipynb", semester.works[key])
    moment = datetime(2026, 10, 26, 9, 0)
    write_worksheet(semester.folder / "worksheet.csv", [person], {person.number: moment})
    semester.run("autograde", "03", "--submissions", semester.folder / "again.zip", *_OPTIONS)
    semester.run("students", semester.folder / "worksheet.csv", "--chapter", "03")
    _hand_in(semester, *key, moment.replace(tzinfo=ZONE), "moodle")


def _take_back(semester: Exceptions) -> None:
    """The stranger is a test account; the student who left is back, and the excused one counts."""
    withdrawn, excused = login(semester.roles["withdrawn"]), login(semester.roles["excused"])
    semester.run("students", "--ignore", "kim-unknown")
    semester.has_stranger = False
    semester.happened.ignored.add("kim-unknown")
    semester.run("students", "--add", withdrawn)
    semester.run("students", "--include", excused, "03")
    semester.happened.withdrawn.clear()
    semester.happened.excused.clear()


def _change_check(semester: Exceptions) -> None:
    """Grade again with a check that has changed; submissions are not run again, which other tests do."""
    executor = ChangedCheck(Course(semester.course), "causal_mask")
    semester.patch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    semester.patch.setattr(
        "autograder.grading.run._run_locally",
        lambda workers, settings, submissions: map(executor.grade_one, submissions),
    )
    semester.output["regrade"] = semester.run("regrade", "03", *_OPTIONS)


def _append(semester: Exceptions, text: str) -> None:
    with (semester.course / "course.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{text}")
