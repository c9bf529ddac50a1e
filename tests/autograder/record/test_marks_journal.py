"""The journal of marks keeps rubric ticks, and reads what earlier versions wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.grading.record.marks_journal import Change, Entry, MarksJournal, MarkState, RubricTick, cached_ticks

CHAPTER = "03_scaled_dot_product"
TICKS = (RubricTick("the variance", 2.0, 1.0), RubricTick("the root", 1.0, 0.5))
BEFORE, AFTER = MarkState(None, True, None), MarkState(2.5, False, "Good.")
# A line as version 0.2 wrote it, before there were ticks.
EARLIER = {
    "chapter": CHAPTER,
    "id": "0123456789ab",
    "marker": "ada",
    "question": "question_root",
    "time": "2026-03-02T10:00:00+01:00",
    "undoes": "",
    "changes": {"bob": {"before": BEFORE.to_json(), "after": AFTER.to_json()}},
}


@pytest.fixture
def journal(tmp_path: Path) -> MarksJournal:
    return MarksJournal(Course(tmp_path))


def _entry(entry_id: str, **changes: Change) -> Entry:
    return Entry(entry_id, "2026-03-02T10:00:00+01:00", "ada", CHAPTER, "question_root", changes)


def test_ticks_survive_the_disk(journal: MarksJournal) -> None:
    entry = _entry("a", bob=Change(BEFORE, AFTER, None, TICKS))
    journal.begin(entry)
    journal.commit("a")
    assert journal.entries() == ([entry], [])
    assert journal.ticks(CHAPTER)["question_root", "bob"].ticks == TICKS
    assert journal.ticks("01_recurrent") == {}


def test_a_mark_of_an_earlier_version_is_read(journal: MarksJournal) -> None:
    journal.path.parent.mkdir()
    journal.path.write_text(json.dumps({"begin": EARLIER}) + "\n" + json.dumps({"committed": EARLIER["id"]}) + "\n")
    (entry,), unfinished = journal.entries()
    assert (entry.changes, entry.reason, unfinished) == ({"bob": Change(BEFORE, AFTER)}, "", [])
    assert not journal.ticks(CHAPTER)["question_root", "bob"].belong_to(2.5)


def test_the_last_committed_mark_counts(journal: MarksJournal) -> None:
    journal.begin(_entry("a", bob=Change(BEFORE, AFTER, None, TICKS)))
    journal.commit("a")
    journal.begin(_entry("b", bob=Change(BEFORE, AFTER, None, TICKS).inverse()))
    assert journal.ticks(CHAPTER)["question_root", "bob"].ticks == TICKS
    journal.commit("b")
    assert journal.ticks(CHAPTER)["question_root", "bob"].ticks is None


def test_ticks_are_read_again_when_the_journal_has_changed(journal: MarksJournal) -> None:
    root = journal.path.parents[1]
    assert cached_ticks(root, CHAPTER) == {}
    for number, name in enumerate(("bob", "cyd"), start=1):
        journal.begin(_entry(name, **{name: Change(BEFORE, AFTER, None, TICKS)}))
        journal.commit(name)
        assert len(cached_ticks(root, CHAPTER)) == number
