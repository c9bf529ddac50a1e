"""The files of an exam, and the command that writes them."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from autograder.commands.main import main
from autograder.errors import CourseError
from autograder.quizzes.exam.compose import Exam, compose_exam
from autograder.quizzes.exam.kinds import KINDS, ExamQuestion
from autograder.quizzes.exam.pages import render_pages
from autograder.quizzes.exam.question_banks import canvas_zip, moodle_xml

pytestmark = pytest.mark.usefixtures("one_thread")
CHAPTER = "03_scaled_dot_product"


@pytest.fixture(scope="module")
def exam() -> Exam:
    """Return an exam of two versions on one chapter."""
    return compose_exam([CHAPTER], 5, 2, "test")


def run(*arguments: str) -> Result:
    """Run ``tfcourse exam``."""
    return CliRunner().invoke(main, ["exam", *arguments])


def test_versions_are_equal_in_kinds_and_exercises(exam: Exam) -> None:
    first, second = ([(item.kind, item.exercise) for item in items] for items in exam.versions)
    assert first == second
    assert {kind for kind, _ in first} == set(KINDS)
    assert len({exercise for _, exercise in first}) == len(first), "none comes twice while others are left"
    assert all(a.mistake != b.mistake and a.code != b.code for a, b in zip(*exam.versions, strict=True))


def test_a_struck_question_is_replaced_and_the_others_stay(exam: Exam) -> None:
    other = compose_exam([CHAPTER], 5, 2, "test", without=[2])
    for before, after in zip(exam.versions, other.versions, strict=True):
        same = [(a.code, a.question) == (b.code, b.question) for a, b in zip(before, after, strict=True)]
        assert same == [True, False, True, True, True]


def test_a_paper_has_no_key(exam: Exam) -> None:
    paper = render_pages(exam, title="Exam")["paper-A.html"].decode()
    for item in exam.versions[0]:
        assert item.proof not in paper
        assert paper.count(f"<code>{item.exercise}</code>: ") == 1
    assert exam.seed not in paper


def test_the_keys_name_every_letter(exam: Exam) -> None:
    keys = render_pages(exam, title="Exam")["keys.html"].decode()
    rows = re.findall(r'<tr><th scope="row">([AB])</th>(.*?)</tr>', keys)
    assert {letter: re.findall("<td>(.)</td>", row) for letter, row in rows} == {
        letter: [item.letter for item in items] for letter, items in zip("AB", exam.versions, strict=True)
    }


def test_the_keys_refute_each_wrong_option_under_its_letter(exam: Exam) -> None:
    keys = render_pages(exam, title="Exam")["keys.html"].decode()
    for item in exam.versions[1]:
        letters = [letter for letter, text in zip("ABCD", item.refuted, strict=True) if text]
        assert letters == [letter for letter in "ABCD" if letter != item.letter]
    sections = re.findall(r'<section class="item">(.*?)</section>', keys, re.DOTALL)
    items = [item for items in exam.versions for item in items]
    for section, item in zip(sections, items, strict=True):
        assert re.findall(r"<li>([A-D])\)", section) == [letter for letter in "ABCD" if letter != item.letter]


def test_text_of_code_is_escaped(exam: Exam) -> None:
    for content in render_pages(exam, title="Exam").values():
        assert re.search(r"<(?!/?[a-z]+[ >0-9]|!DOCTYPE)", content.decode()) is None


def test_moodle_gets_each_version_with_its_key(exam: Exam) -> None:
    root = ET.fromstring(moodle_xml(exam, title="Exam"))
    questions = [one for one in root if one.get("type") == "multichoice"]
    assert len(questions) == sum(map(len, exam.versions))
    assert len(root) - len(questions) == len(exam.versions[0])
    in_order = [item for pair in zip(*exam.versions, strict=True) for item in pair]
    for question, item in zip(questions, in_order, strict=True):
        shares = [answer.get("fraction") for answer in question.findall("answer")]
        assert shares.index("100") == item.key
        assert shares.count("0") == 3


def test_canvas_gets_a_quiz_for_each_version_with_its_keys(exam: Exam) -> None:
    space = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"
    with zipfile.ZipFile(io.BytesIO(canvas_zip(exam, title="Exam"))) as archive:
        manifest = ET.fromstring(archive.read("imsmanifest.xml"))
        names = [one.get("href", "") for one in manifest.iter() if one.tag.endswith("}resource")]
        roots = [ET.fromstring(archive.read(name)) for name in names]
    assert len(roots) == len(exam.versions)
    for root, items in zip(roots, exam.versions, strict=True):
        assert [one.text for one in root.iter(f"{space}varequal")] == [item.letter for item in items]
        assert len(list(root.iter(f"{space}response_label"))) == 4 * len(items)


def test_options_keep_their_evidence_in_another_order() -> None:
    item = ExamQuestion(
        *("input", "c", "e", "t"), (), (), "code", "q", ("a", "b", "c", "d"), 1, "m", "x", "p", ("1", "", "3", "4")
    )
    moved = item.reorder([3, 1, 0, 2])
    assert moved.options == ("d", "b", "a", "c")
    assert moved.refuted == ("4", "", "1", "3")
    assert moved.answer == item.answer


def test_too_many_questions_are_refused_with_their_number() -> None:
    with pytest.raises(CourseError, match=r"give \d+ questions, and 9 are wanted"):
        compose_exam([CHAPTER], 9, 2, "test", selects=lambda chapter, name: name in ("causal_mask", "padding_mask"))


def test_an_exam_asks_about_selected_exercises_alone() -> None:
    made = compose_exam([CHAPTER], 2, 2, "test", selects=lambda chapter, name: name in ("causal_mask", "padding_mask"))
    assert {item.exercise for item in made.versions[0]} == {"causal_mask", "padding_mask"}


def test_the_command_writes_the_same_files_for_the_same_seed(tmp_path: Path) -> None:
    arguments = ["03", "--questions", "2", "--versions", "2", "--seed", "s", "--course", str(tmp_path)]
    contents = []
    for name in ("midterm", "again"):
        result = run(*arguments, "--name", name)
        assert result.exit_code == 0, result.output
        contents.append({path.name: path.read_bytes() for path in (tmp_path / "exam" / name).iterdir()})
    assert contents[0] == contents[1]
    assert sorted(contents[0]) == ["canvas.zip", "keys.html", "moodle.xml", "paper-A.html", "paper-B.html"]
