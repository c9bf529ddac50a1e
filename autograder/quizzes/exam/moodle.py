"""Write the questions of an exam as Moodle XML, for a question bank."""

from __future__ import annotations

import html
from xml.etree import ElementTree as ET

from autograder.grading.feedback.markup import in_code
from autograder.quizzes.exam.compose import Exam
from autograder.quizzes.exam.item import KINDS, Item
from autograder.quizzes.exam.pages import names_sentence
from autograder.quizzes.questions.question import numbered_code


def moodle_xml(exam: Exam, *, title: str) -> bytes:
    """Return all versions as multiple-choice questions: a category for each question, so that a quiz draws one version of it at random."""
    quiz = ET.Element("quiz")
    for number, items in enumerate(zip(*exam.versions, strict=True), start=1):
        category = ET.SubElement(quiz, "question", type="category")
        path = f"$course$/top/{title.replace('/', ' ')}/{number:02}"
        ET.SubElement(ET.SubElement(category, "category"), "text").text = path
        for letter, item in zip(exam.letters, items, strict=True):
            _add(quiz, f"{number:02}{letter} {item.exercise}, {KINDS[item.kind]}", item)
    ET.indent(quiz, " ")
    return bytes(ET.tostring(quiz, encoding="utf-8", xml_declaration=True)) + b"\n"


def question_html(item: Item) -> str:
    """Return what stands above the options as HTML: task, code and question."""
    uses = names_sentence(item)
    parts = [
        f"<p><code>{item.exercise}</code>: {in_code(item.task)} The code has exactly one mistake. {in_code(uses)}</p>",
        f"<pre>{html.escape(numbered_code(item.code))}</pre>",
        f"<p>{in_code(item.question)}</p>",
    ]
    return "".join(parts)


def _add(quiz: ET.Element, name: str, item: Item) -> None:
    question = ET.SubElement(quiz, "question", type="multichoice")
    ET.SubElement(ET.SubElement(question, "name"), "text").text = name
    _html(question, "questiontext", question_html(item))
    _html(question, "generalfeedback", f"<p>{html.escape(item.explanation)}</p><p>{in_code(item.proof)}</p>")
    settings = {"defaultgrade": "1", "single": "true", "shuffleanswers": "false", "answernumbering": "ABCD"}
    for tag, text in settings.items():
        ET.SubElement(question, tag).text = text
    for index, (option, refuted) in enumerate(zip(item.options, item.refuted, strict=True)):
        answer = _html(question, "answer", str(in_code(option)), fraction="100" if index == item.key else "0")
        _html(answer, "feedback", str(in_code(refuted)))


def _html(parent: ET.Element, tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, {"format": "html", **attributes})
    ET.SubElement(element, "text").text = text
    return element
