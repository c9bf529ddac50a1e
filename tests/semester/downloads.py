"""Pack a sample class's notebooks as Canvas and Moodle hand them out."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CANVAS_CHAPTER, MOODLE_CHAPTER = "03_scaled_dot_product", "01_recurrent"


@dataclass(frozen=True)
class Person:
    """A student of the sample class.

    Attributes:
        name: the full name.
        number: the student's number on both platforms.
        works: by chapter, the notebook.
        late: the chapters that came late.
    """

    name: str
    number: int
    works: Mapping[str, bytes]
    late: Collection[str]

    @property
    def on_canvas(self) -> str:
        """The name as Canvas writes it: the last one first, in small letters, without blanks."""
        return "".join(letter for part in self.name.split()[::-1] for letter in part.casefold() if letter.isascii())

    @property
    def canvas_id(self) -> str:
        """The id that the course makes of the name on Canvas."""
        return f"{self.on_canvas}-{self.number}"


def read_people(workshop: Path) -> list[Person]:
    """Return the students of a course folder that ``tfcourse sample-class`` has filled, by name."""
    people = []
    for number, about in enumerate(json.loads((workshop / "sample_class.json").read_text(encoding="utf-8")), start=101):
        files = {path.parent.name: path for path in (workshop / "submitted" / about["id"]).glob("*/*.ipynb")}
        late = {chapter for chapter, work in about["chapters"].items() if work["oddity"] == "late"}
        works = {chapter: path.read_bytes() for chapter, path in files.items()}
        people.append(Person(about["name"], number, works, late))
    return people


def write_class_list(path: Path, people: Sequence[Person]) -> None:
    """Write the class as a table of ids, names and the institution's numbers."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = ((person.canvas_id, person.name, f"s{person.number:04}") for person in people)
        csv.writer(file).writerows([("id", "name", "number"), *rows])


def pack_canvas(path: Path, people: Sequence[Person], again: Mapping[str, bytes]) -> None:
    """Write what Canvas downloads: the latest upload of each student, ``LATE`` where it is late.

    Args:
        path: the archive.
        people: the class.
        again: by ids, the notebooks that were handed in a second time.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for person in people:
            if CANVAS_CHAPTER not in person.works:
                continue
            second = person.canvas_id in again
            late = "LATE_" if CANVAS_CHAPTER in person.late else ""
            upload = person.number + (9000 if second else 5000)
            name = f"{CANVAS_CHAPTER}{'-1' if second else ''}.ipynb"
            notebook = again.get(person.canvas_id, person.works[CANVAS_CHAPTER])
            archive.writestr(f"{person.on_canvas}_{late}{person.number}_{upload}_{name}", notebook)


def pack_moodle(path: Path, people: Sequence[Person]) -> None:
    """Write what Moodle downloads: a folder for each participant."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for person in people:
            if MOODLE_CHAPTER in person.works:
                folder = f"{person.name}_{person.number + 700}_assignsubmission_file"
                archive.writestr(f"{folder}/{MOODLE_CHAPTER}.ipynb", person.works[MOODLE_CHAPTER])
