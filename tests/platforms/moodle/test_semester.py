"""A chapter on a real Moodle, alone and in teams: after each step, what every file shows is computed a second time, from the facts.

The facts are Moodle's own files, read here with the standard library alone, and the points that each piece of work is given.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autograder.commands.main import main
from autograder.grading import run as run_module
from tests.autograder.grading.scripted import Scripted

from .conftest import CHAPTER, FILES

DUE = datetime(2026, 11, 16, 23, 59)
ALONE = f"""time_zone = "Europe/Warsaw"
[late]
per_day = 0.1
[chapters.{CHAPTER}]
due = {DUE.isoformat()}
"""
TEAMS = f"{ALONE}groups = true\n"


@dataclass
class Facts:
    """What has happened, by e-mail address."""

    rows: dict[str, dict[str, str]]  # Moodle's worksheet
    work: dict[str, str]  # the piece of work that counts for a student
    earned: dict[str, float] = field(default_factory=dict)  # by piece of work, its points; none while it is not graded

    def score(self, email: str) -> float | None:
        """Return the points after the penalty; None if there is no work, or none that is graded."""
        raw = self.earned.get(self.work.get(email, ""))
        if raw is None:
            return None
        extension = re.search("Extension granted until: ([^-]*?) -", self.rows[email]["Status"])
        late = moment(self.rows[email]["Last modified (submission)"]) - max(
            DUE, moment(extension[1]) if extension else DUE
        )
        return raw * (1 - 0.1 * (ceil(late / timedelta(days=1)) if late > timedelta(minutes=15) else 0))


@dataclass
class Term:
    """One course, played through its commands."""

    root: Path
    patch: pytest.MonkeyPatch

    def run(self, *words: object) -> tuple[int, str]:
        done = CliRunner().invoke(main, [*map(str, words), "--course", str(self.root)])
        print(words, done.output)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.output
        return done.exit_code, done.stdout

    def grade(self, points: Mapping[str, float], *words: object, stop_after: int = -1) -> int:
        """Grade, with these points by student; the run is interrupted after some of them."""
        executor = Scripted(
            {who: {"soft_lookup": worth, "causal_mask": 0, "padding_mask": 0} for who, worth in points.items()}
        )

        def executions(_workers: object, _settings: object, submissions: Any) -> Iterator[Any]:
            for count, submission in enumerate(submissions):
                if count == stop_after:
                    raise KeyboardInterrupt
                yield executor.grade_one(submission)

        self.patch.setattr(run_module, "_run_locally", executions)
        code, text = self.run("autograde", CHAPTER, "--device", "cpu", *words)
        print(text)
        return code

    def compare(self, facts: Facts, folder: Path) -> None:
        """Compare the report and every export with the facts."""
        students = json.loads((self.root / "students.json").read_text(encoding="utf-8"))
        email = {name: student["email"] for name, student in students.items() if "email" in student}
        scores = {address: facts.score(address) for address in facts.rows}
        graded = {address: f"{score:.2f}" for address, score in scores.items() if score is not None}
        waiting = facts.work.keys() - graded.keys()
        exits = {self.run("export", "--to", folder)[0], self.run("export", "--format", "moodle", "--to", folder)[0]}
        code, text = self.run("report", "--json")
        assert exits | {code} == {1 if waiting else 0}
        rows = {row["email"]: row["score"] for row in read(folder / "grades.csv")}
        assert {address: f"{float(rows[address]):.2f}" for address in graded} == graded
        assert {address for address, score in rows.items() if not score} == waiting
        assert {row["Identifier"]: row["Grade"] for row in read(folder / f"moodle-{CHAPTER}.csv")} == {
            facts.rows[address]["Identifier"]: score for address, score in graded.items()
        }
        report = json.loads(text)
        (chapter,) = report["chapters"]
        assert chapter["graded"] == len(graded)
        assert {email[name] for name in chapter["absent"]} == scores.keys() - facts.work.keys()
        assert {email[one["student"]] for one in report["not_graded_yet"]} <= waiting


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%A, %d %B %Y, %I:%M %p")


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def worksheet(name: str) -> dict[str, dict[str, str]]:
    return {row["Email address"]: row for row in read(FILES / name)}


@pytest.fixture
def term(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Term:
    return Term(Path(shutil.copytree(pristine, tmp_path / "course")), monkeypatch)


def test_alone_with_a_stopped_run_a_draft_and_an_extension(term: Term, tmp_path: Path) -> None:
    (term.root / "course.toml").write_text(ALONE)
    term.run("students", FILES / "participants_en.csv")
    term.run("students", FILES / "worksheet_en.csv", "--chapter", "03")
    names = {
        **{
            "anna-kowalska-300105": "akowalska1",
            "anna-kowalska-akowalska2@example.org": "akowalska2",
            "u96f7-u674e": "lilei",
            "sean-o-brien": "sobrien",
        },
        **{"dwayne-the-rock-johnson": "rock", "kim-lee-park": "slash", "john-smith-jr": "jsmith"},
    }
    points = {name: 6.0 - 0.75 * place for place, name in enumerate(sorted(names))}
    addresses = {f"{short}@example.org": name for name, short in names.items()}
    facts = Facts(
        rows := worksheet("worksheet_en.csv"),
        # Of the others, Moodle says that they handed in something, but the download has nothing of them.
        {
            email: addresses.get(email, "elsewhere")
            for email, row in rows.items()
            if row["Last modified (submission)"] != "-"
        },
    )
    assert term.grade(points, "--submissions", FILES / "individual_folders_cut.zip", stop_after=3) == 130
    facts.earned = {name: points[name] for name in sorted(names)[:3]}
    term.compare(facts, tmp_path / "stopped")
    assert term.grade(points) == 1
    facts.earned = points
    term.compare(facts, tmp_path / "graded")


def test_in_teams_and_a_student_who_changes_teams_afterwards(term: Term, tmp_path: Path) -> None:
    (term.root / "course.toml").write_text(TEAMS)
    term.run("students", FILES / "participants_en.csv")
    term.run("students", FILES / "worksheet_teams_en.csv", "--chapter", "03")
    rows = worksheet("worksheet_teams_en.csv")
    # By the team's name in Moodle, the points of its work.
    points = {"Team Z": 1.0, "Team 5": 2.0, "Team_2 Ünï": 3.0, "Default group": 4.0}
    work = {
        email: row["Group"]
        for email, row in rows.items()
        if row["Group"] in points or row["Last modified (submission)"] != "-"
    }
    facts = Facts(rows, work, points)
    handed_in = {
        "dora-draft": "Team Z",
        "john-smith-jr": "Team 5",
        "u96f7-u674e": "Team_2 Ünï",
        "emil-leer": "Default group",
    }
    term.grade(
        {name: points[team] for name, team in handed_in.items()}, "--submissions", FILES / "teams_folders_cut.zip"
    )
    term.compare(facts, tmp_path / "graded")
    # The list of today has other groups, and moves nobody's grade; the chapter's own list does.
    today = [{"email": email, "name": row["Full name"], "group": "Team 5"} for email, row in rows.items()]
    with (tmp_path / "today.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(today[0]))
        writer.writeheader()
        writer.writerows(today)
    term.run("students", tmp_path / "today.csv")
    term.compare(facts, tmp_path / "after-the-list")
    (tmp_path / "moved.csv").write_text(
        "email,name,group\nmgarcia@example.org,María del Carmen García-López Hernández,Team Z\n"
    )
    code, text = term.run("students", tmp_path / "moved.csv", "--chapter", "03")
    assert (code, "Team 5 → Team Z" in text, text.count("→")) == (0, True, 1), text
    facts.work["mgarcia@example.org"] = "Team Z"
    term.compare(facts, tmp_path / "moved")
    # The work of Team 5 lies under John's id, and stays the team's when he leaves it, also when the download is collected again.
    (tmp_path / "holder.csv").write_text("email,name,group\njsmith@example.org,John Smith Jr.,Team 4\n")
    code, text = term.run("students", tmp_path / "holder.csv", "--chapter", "03")
    assert (code, "Team 4 now. The work of Team 5" in text) == (1, True), text
    term.compare(facts, tmp_path / "left")
    term.grade(
        {name: points[team] for name, team in handed_in.items()}, "--submissions", FILES / "teams_folders_cut.zip"
    )
    term.compare(facts, tmp_path / "collected-again")
    code, text = term.run("students", "--erase", "u96f7-u674e")
    assert (code, "van-a-nguyen" in text) == (0, True)
