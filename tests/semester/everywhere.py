"""Compare every number that a course shows with the second computation: gradebook, report, exports, feedback pages and archives."""

from __future__ import annotations

import csv
import html
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook

from .expected import Expected, Key, Row, Total

Run = Callable[..., str]

_SECTION = re.compile(r'<h2 id="([^"]*)">.*?(?=<h2 |\Z)', re.DOTALL)
_TABLE = re.compile(r"<h3>Every student</h3>.*?</table>", re.DOTALL)
_ROW = re.compile(r'<tr><th scope="row">(?P<who>.*?)</th>\s*(?P<cells>.*?)</tr>', re.DOTALL)
_ID = re.compile(r'<span class="note">([^<]*)</span>')
_CELL = re.compile(r'<td class="n">(.*?)</td>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_PAGE_TOTAL = re.compile(r'<p class="total"><strong>(.*?)</strong>(?: of (\S+) points( so far)?)?')
_PAGE_LATE = re.compile(r"It came (.*?) ?late, which cost (\S+) of (\S+) points")


@dataclass(frozen=True)
class About:
    """A number that is shown with so many decimals.

    Attributes:
        number: the number.
        decimals: how many decimals are shown at most.
    """

    number: float
    decimals: int = 2

    def matches(self, shown: str) -> bool:
        """Return whether a text shows the number."""
        digits = re.fullmatch(r"-?\d+(?:\.(\d+))?", shown)
        if digits is None or len(digits[1] or "") > self.decimals:
            return False
        return math.isclose(float(shown), self.number, rel_tol=0, abs_tol=0.5 * 10.0**-self.decimals + 1e-6)

    def __str__(self) -> str:
        return f"{self.number:.{self.decimals}f}"


@dataclass
class Comparison:
    """The outcome of a comparison.

    Attributes:
        compared: how many numbers were compared, by source.
        differences: what a source shows otherwise, one per line.
    """

    compared: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def compare(self, source: str, shown: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
        """Compare what a source shows with what it must show, key by key."""
        self.compared[source] = self.compared.get(source, 0) + len(shown)
        keys = sorted(shown.keys() | expected.keys(), key=str)
        self.differences += [
            f"{source}: {key} is {shown.get(key, 'missing')}, and must be {_text(expected.get(key, 'missing'))}"
            for key in keys
            if key not in shown or key not in expected or not _equal(shown[key], expected[key])
        ]


@dataclass(frozen=True)
class Places:
    """Where the numbers are.

    Attributes:
        course: the course folder.
        run: runs a command of ``tfcourse`` in the course and returns what it prints.
        numbers: by platform and number of a student there, the student; Moodle's are of one chapter each.
    """

    course: Path
    run: Run
    numbers: Mapping[tuple[str, str], str]

    def compare(self, expected: Expected, folder: Path, archives: Mapping[Key, Iterable[str]]) -> Comparison:
        """Compare everything.

        Args:
            expected: the numbers as they must be.
            folder: an empty folder for exports.
            archives: by platform and chapter, the students whose feedback page the archive must have.
        """
        done = Comparison()
        # The report brings penalties in the gradebook up to date, as every command does that shows them.
        _compare_report(done, self, expected)
        _compare_gradebook(done, self.course, expected)
        _compare_csv(done, self, expected, folder)
        for platform, read in (("canvas", _canvas), ("moodle", _moodle)):
            _compare_platform(done, self, expected, folder, platform, read)
        for (platform, chapter), students in archives.items():
            self.run("export", "--feedback", platform, "--to", folder, chapter)
            archive = _archive(self, folder / f"feedback_{platform}_{chapter}.zip", platform)
            done.compare(
                f"archive for {platform}",
                {student: _page(text) for student, text in archive.items()},
                {student: _expected_page(expected.everyone[chapter, student]) for student in students},
            )
        pages = _pages(self.course)
        submitters = {key: row for key, row in expected.everyone.items() if row.submitter == key[1] and row.work}
        done.compare("feedback", pages, {key: _expected_page(row) for key, row in submitters.items()})
        return done


def _text(value: Any) -> str:
    return f"({', '.join(map(_text, value))})" if isinstance(value, list | tuple) else str(value)


def _equal(shown: Any, expected: Any) -> bool:
    if isinstance(expected, About):
        return expected.matches(str(shown))
    if isinstance(shown, float) and isinstance(expected, int | float):
        return math.isclose(shown, expected, abs_tol=2e-6)
    if isinstance(shown, list | tuple) and isinstance(expected, list | tuple):
        return len(shown) == len(expected) and all(map(_equal, shown, expected))
    if isinstance(shown, dict) and isinstance(expected, dict):
        return shown.keys() == expected.keys() and all(_equal(shown[key], expected[key]) for key in shown)
    return bool(shown == expected)


def _compare_gradebook(done: Comparison, course: Path, expected: Expected) -> None:
    """The gradebook has the points of the notebook, and the penalty of these; the rules for single exercises are applied to them."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "tfcourse") as gradebook:
        shown = {
            (chapter.name, one.student_id): (float(one.score), float(one.late_submission_penalty or 0.0))
            for chapter in gradebook.assignments
            for one in gradebook.assignment_submissions(chapter.name)
        }
    own = {key: row for key, row in expected.everyone.items() if row.work is not None and row.submitter == key[1]}
    done.compare("gradebook", shown, {key: (row.plain_raw, row.plain_penalty) for key, row in own.items()})


def _compare_report(done: Comparison, places: Places, expected: Expected) -> None:
    data = json.loads(places.run("report", "--json"))
    page = (places.course / "report.html").read_text(encoding="utf-8")
    sections = {match[1]: match[0] for match in _SECTION.finditer(page)}
    for chapter in data["chapters"]:
        name = chapter["chapter"]
        rows = expected.of_chapter(name)
        done.compare("report --json", *_chapter_data(chapter, expected, rows))
        cards = {label: _card(sections[name], label).split() for label in ("handed in", "average", "median")}
        graded = any(row.graded for row in rows.values())
        done.compare(
            "report's cards",
            cards,
            {
                "handed in": [str(sum(row.work is not None for row in rows.values())), "of", str(len(rows))],
                "average": [About(100 * expected.average(name), 0), "%"] if graded else ["–"],
                "median": [About(100 * expected.median(name), 0), "%"] if graded else ["–"],
            },
        )
        table = _TABLE.search(sections[name])
        assert table
        done.compare(
            "report's table",
            {(name, who): cells for who, cells in _table_rows(table[0])},
            {
                (name, who): [
                    [About(row.score), "/", About(row.best)] if row.graded else ["–"],
                    [About(row.penalty)] if row.penalty else [],
                ]
                for who, row in rows.items()
            },
        )
    outside = {(name, one["student"]): one["reason"] for one in data["not_counted"] for name in one["chapters"]}
    done.compare("not counted", outside, expected.not_counted())
    totals = expected.totals() if "totals" in sections else {}
    shown = dict(_table_rows(sections.get("totals", "")))
    done.compare(
        "report's totals", shown, {who: _total_cells(total, expected.has_grades) for who, total in totals.items()}
    )
    in_json = {who: total.share for who, total in totals.items() if total.share is not None}
    done.compare("totals in JSON", data["totals"], in_json)
    done.compare("grades in JSON", data["grades"], {who: total.grade for who, total in totals.items() if total.grade})


def _chapter_data(chapter: Mapping[str, Any], expected: Expected, rows: Mapping[str, Row]) -> tuple[Any, Any]:
    name = chapter["chapter"]
    keys = ("students", "handed_in", "graded", "average", "median", "absent", "pending", "answers_pending")
    shown = {key: chapter[key] for key in (*keys, "late", "not_gradable", "lateness")}
    shown |= {f"average of {one['name']}": one["average"] for one in chapter["exercises"]}
    late = {who: row for who, row in rows.items() if row.graded and row.penalty > 0}
    own_waiting = {who: row for who, row in rows.items() if row.waiting and row.submitter == who}
    must = {
        "students": len(rows),
        "handed_in": sum(row.work is not None for row in rows.values()),
        "graded": sum(row.graded for row in rows.values()),
        "average": expected.average(name),
        "median": expected.median(name),
        "absent": sorted(who for who, row in rows.items() if row.work is None),
        "pending": sorted(own_waiting),
        "answers_pending": sum(len(row.waiting) for row in own_waiting.values()),
        "late": sorted(late),
        "not_gradable": sorted(who for who, row in rows.items() if row.work is not None and not row.graded),
        "lateness": {who: {"seconds": row.late_by.total_seconds(), "points": row.penalty} for who, row in late.items()},
    }
    exercises = [one["name"] for one in chapter["exercises"]]
    must |= {f"average of {one}": expected.exercise_average(name, one) for one in exercises}
    return {(name, key): value for key, value in shown.items()}, {(name, key): value for key, value in must.items()}


def _card(section: str, label: str) -> str:
    match = re.search(rf'<span class="big">([^<]*)</span> {label}', section)
    return match[1] if match else "missing"


def _table_rows(table: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the id and the cells of numbers of each row."""
    for row in _ROW.finditer(table):
        who = _ID.search(row["who"])
        student = who[1] if who else _TAG.sub("", row["who"])
        yield (
            html.unescape(student).strip(),
            [_TAG.sub("", html.unescape(cell)).split() for cell in _CELL.findall(row["cells"])],
        )


def _total_cells(total: Total, has_grades: bool) -> list[list[str | About]]:
    def percent(share: float | None) -> list[str | About]:
        return ["–"] if share is None else [About(100 * share, 0), "%"]

    cells: list[list[str | About]] = [
        ["does", "not", "count"]
        if share is None
        else [*percent(share), *(["dropped"] if chapter in total.dropped else [])]
        for chapter, share in total.shares.items()
    ]
    points: list[list[str | About]] = [["–"] if total.points is None else [About(total.points)]] if has_grades else []
    return [percent(total.share), *points, *cells]


def _compare_csv(done: Comparison, places: Places, expected: Expected, folder: Path) -> None:
    places.run("export", "--to", folder)
    shown = {
        (row["assignment"], row["student_id"]): (
            *(
                row[name] and float(row[name])
                for name in ("raw_score", "late_submission_penalty", "score", "max_score")
            ),
            *(row[name] for name in ("duedate", "timestamp", "needs_manual_grade")),
        )
        for row in _rows(folder / "grades.csv")
    }
    begun = expected.begun
    rows = {key: row for key, row in expected.rows.items() if key[0] in begun}
    must = {
        key: (
            *("" if row.work and not row.graded else About(number) for number in (row.raw, row.penalty, row.score)),
            About(row.best),
            _moment(row.due),
            _moment(row.work.handed_in if row.work else None),
            str(bool(row.waiting) and row.submitter == key[1]),
        )
        for key, row in rows.items()
    }
    done.compare("grades.csv", shown, must)
    if (folder / "totals.csv").exists():
        _compare_totals(done, expected, folder / "totals.csv")


def _compare_totals(done: Comparison, expected: Expected, path: Path) -> None:
    def number(value: float | None) -> str | About:
        return "" if value is None else About(value)

    shown = {row["student_id"]: {k: v for k, v in row.items() if k in _TOTAL or k[:1].isdigit()} for row in _rows(path)}
    must = {
        who: {
            **{chapter: number(None if share is None else 100 * share) for chapter, share in total.shares.items()},
            "total": number(None if total.share is None else 100 * total.share),
            **(_by_rule(total, number(total.points)) if expected.has_grades else {}),
        }
        for who, total in expected.totals().items()
    }
    done.compare("totals.csv", shown, must)


def _by_rule(total: Total, points: str | About) -> dict[str, str | About]:
    passed = {True: "yes", False: "no", None: ""}[total.passed]
    return {"points": points, "grade": total.grade, "passed": passed, "dropped": " ".join(total.dropped)}


_TOTAL = ("total", "points", "grade", "passed", "dropped")


def _compare_platform(
    done: Comparison, places: Places, expected: Expected, folder: Path, platform: str, read: Callable[..., Any]
) -> None:
    rows = {
        key: row
        for key, row in expected.rows.items()
        if row.work is not None and row.graded and row.work.platform == platform
    }
    if rows:
        places.run("export", "--format", platform, "--to", folder)
        done.compare(
            platform,
            read(places, folder),
            {key: (About(row.score), About(row.best)) for key, row in rows.items()},
        )


def _canvas(places: Places, folder: Path) -> dict[Key, tuple[str, str]]:
    cells = {}
    for path in folder.glob("canvas*.csv"):
        best, *students = _rows(path)
        for row in students:
            for chapter, cell in list(row.items())[5:]:
                assert (chapter, places.numbers["canvas", row["ID"]]) not in cells
                cells[chapter, places.numbers["canvas", row["ID"]]] = cell, best[chapter]
    return cells


def _moodle(places: Places, folder: Path) -> dict[Key, tuple[str, str]]:
    return {
        (path.stem.removeprefix("moodle-"), places.numbers["moodle", row["Identifier"].split()[1]]): (
            row["Grade"],
            row["Maximum grade"],
        )
        for path in folder.glob("moodle-[0-9]*.csv")
        if not path.stem.endswith("-changed")
        for row in _rows(path)
    }


def _archive(places: Places, path: Path, platform: str) -> dict[str, str]:
    """Return the feedback pages in an archive, by student."""
    with zipfile.ZipFile(path) as archive:
        return {
            places.numbers.get((platform, name.split("_")[1]), name): archive.read(name).decode()
            for name in archive.namelist()
        }


def _pages(course: Path) -> dict[Key, tuple[str, ...]]:
    return {
        (path.parent.name, path.parents[1].name): _page(path.read_text(encoding="utf-8"))
        for path in course.glob("feedback/*/*/*.html")
    }


def _page(text: str) -> tuple[str, ...]:
    """Return the total, the points to be earned, whether something waits, and how late the work was and what that cost."""
    total, late = _PAGE_TOTAL.search(text), _PAGE_LATE.search(text)
    assert total
    return total[1], total[2] or "", total[3] or "", *(late.groups() if late else ("", "", ""))


def _expected_page(row: Row) -> tuple[str | About, ...]:
    if not row.graded:
        return ("not graded", "", "", "", "", "")
    waits = " so far" if row.waiting else ""
    late: tuple[str | About, ...] = ("", "", "")
    if row.penalty:
        late = _duration(row.late_by.total_seconds()), About(row.penalty), About(row.raw)
    return About(row.settled), About(row.best - row.waiting_worth), waits, *late


def _duration(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    return " ".join([f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in parts if number][:2])


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(sep=" ", timespec="seconds")


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))
