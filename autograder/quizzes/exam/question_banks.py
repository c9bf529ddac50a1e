"""Export exams to learning platforms: Moodle XML for a question bank, and a QTI 1.2 package for Canvas.

The package has a manifest and, for each quiz, an assessment whose items give their type and their right option, as Canvas expects.
"""

from __future__ import annotations

import html
import io
import zipfile
from xml.etree import ElementTree as ET

from autograder.grading.feedback.markup import sentence_html
from autograder.quizzes.exam.compose import Exam
from autograder.quizzes.exam.kinds import KINDS, ExamQuestion
from autograder.quizzes.exam.pages import names_sentence
from autograder.quizzes.questions.question import LETTERS, numbered_code

_QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
_PACKAGE = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
# Archives store the time of their members; with a fixed time, equal exams give equal files.
_TIME = (2000, 1, 1, 0, 0, 0)


def moodle_xml(exam: Exam, *, title: str) -> bytes:
    """Return an exam as Moodle XML; each question is a category with its versions, from which a quiz draws one at random."""
    quiz = ET.Element("quiz")
    for number, items in enumerate(zip(*exam.versions, strict=True), start=1):
        category = ET.SubElement(quiz, "question", type="category")
        path = f"$course$/top/{title.replace('/', ' ')}/{number:02}"
        ET.SubElement(ET.SubElement(category, "category"), "text").text = path
        for letter, item in zip(exam.letters, items, strict=True):
            _add_to_bank(quiz, f"{number:02}{letter} {item.exercise}, {KINDS[item.kind]}", item)
    ET.indent(quiz, " ")
    return bytes(ET.tostring(quiz, encoding="utf-8", xml_declaration=True)) + b"\n"


def question_html(item: ExamQuestion) -> str:
    """Return the question without its options as HTML: task, code and question text."""
    uses = names_sentence(item)
    parts = [
        f"<p><code>{item.exercise}</code>: {sentence_html(item.task)} The code has exactly one mistake. {sentence_html(uses)}</p>",
        f"<pre>{html.escape(numbered_code(item.code))}</pre>",
        f"<p>{sentence_html(item.question)}</p>",
    ]
    return "".join(parts)


def _add_to_bank(quiz: ET.Element, name: str, item: ExamQuestion) -> None:
    question = ET.SubElement(quiz, "question", type="multichoice")
    ET.SubElement(ET.SubElement(question, "name"), "text").text = name
    _add_html(question, "questiontext", question_html(item))
    _add_html(question, "generalfeedback", f"<p>{html.escape(item.explanation)}</p><p>{sentence_html(item.proof)}</p>")
    settings = {"defaultgrade": "1", "single": "true", "shuffleanswers": "false", "answernumbering": "ABCD"}
    for tag, text in settings.items():
        ET.SubElement(question, tag).text = text
    for index, (option, refuted) in enumerate(zip(item.options, item.refuted, strict=True)):
        answer = _add_html(question, "answer", str(sentence_html(option)), fraction="100" if index == item.key else "0")
        _add_html(answer, "feedback", str(sentence_html(refuted)))


def _add_html(parent: ET.Element, tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, {"format": "html", **attributes})
    ET.SubElement(element, "text").text = text
    return element


def canvas_zip(exam: Exam, *, title: str) -> bytes:
    """Return an exam as a QTI archive for Canvas, with a quiz for each version."""
    quizzes = {
        f"version-{letter}/version-{letter}.xml": _build_assessment(items, f"{title}, version {letter}", letter)
        for letter, items in zip(exam.letters, exam.versions, strict=True)
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, root in {"imsmanifest.xml": _build_manifest(list(quizzes)), **quizzes}.items():
            ET.indent(root, " ")
            archive.writestr(zipfile.ZipInfo(name, _TIME), ET.tostring(root, encoding="utf-8", xml_declaration=True))
    return buffer.getvalue()


def _build_manifest(files: list[str]) -> ET.Element:
    manifest = ET.Element("manifest", {"identifier": "exam", "xmlns": _PACKAGE})
    metadata = ET.SubElement(manifest, "metadata")
    ET.SubElement(metadata, "schema").text = "IMS Content"
    ET.SubElement(metadata, "schemaversion").text = "1.1.3"
    ET.SubElement(manifest, "organizations")
    resources = ET.SubElement(manifest, "resources")
    for name in files:
        identifier = name.partition("/")[0]
        resource = ET.SubElement(resources, "resource", identifier=identifier, type="imsqti_xmlv1p2", href=name)
        ET.SubElement(resource, "file", href=name)
    return manifest


def _build_assessment(items: tuple[ExamQuestion, ...], title: str, letter: str) -> ET.Element:
    root = ET.Element("questestinterop", xmlns=_QTI)
    assessment = ET.SubElement(root, "assessment", ident=f"version-{letter}", title=title)
    section = ET.SubElement(assessment, "section", ident="root_section")
    for number, item in enumerate(items, start=1):
        _add_to_quiz(section, f"{letter}{number:02}", f"Question {number}", item)
    return root


def _add_to_quiz(section: ET.Element, identifier: str, title: str, item: ExamQuestion) -> None:
    element = ET.SubElement(section, "item", ident=identifier, title=title)
    fields = ET.SubElement(ET.SubElement(element, "itemmetadata"), "qtimetadata")
    for label, entry in {"question_type": "multiple_choice_question", "points_possible": "1"}.items():
        field = ET.SubElement(fields, "qtimetadatafield")
        ET.SubElement(field, "fieldlabel").text = label
        ET.SubElement(field, "fieldentry").text = entry
    presentation = ET.SubElement(element, "presentation")
    _add_text(presentation, question_html(item))
    response = ET.SubElement(presentation, "response_lid", ident="response1", rcardinality="Single")
    choices = ET.SubElement(response, "render_choice")
    for letter, option in zip(LETTERS, item.options, strict=True):
        _add_text(ET.SubElement(choices, "response_label", ident=letter), str(sentence_html(option)))
    _add_key(element, item.letter)


def _add_key(element: ET.Element, letter: str) -> None:
    processing = ET.SubElement(element, "resprocessing")
    outcomes = ET.SubElement(processing, "outcomes")
    ET.SubElement(outcomes, "decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
    condition = ET.SubElement(processing, "respcondition", {"continue": "No"})
    ET.SubElement(ET.SubElement(condition, "conditionvar"), "varequal", respident="response1").text = letter
    ET.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "100"


def _add_text(parent: ET.Element, html: str) -> None:
    ET.SubElement(ET.SubElement(parent, "material"), "mattext", texttype="text/html").text = html
