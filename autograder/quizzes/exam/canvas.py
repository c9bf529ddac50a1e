"""Write an exam as a QTI 1.2 package, which Canvas imports: one quiz for each version.

The package has what Canvas reads: a manifest, and for each quiz an assessment whose items name their type and their right option.
"""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree as ET

from autograder.grading.feedback.markup import in_code
from autograder.quizzes.exam.compose import Exam
from autograder.quizzes.exam.item import Item
from autograder.quizzes.exam.moodle import question_html
from autograder.quizzes.questions.question import LETTERS

_QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
_PACKAGE = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
# Archives hold the time of their members; a fixed one makes equal exams equal files.
_TIME = (2000, 1, 1, 0, 0, 0)


def canvas_zip(exam: Exam, *, title: str) -> bytes:
    """Return a ZIP archive with a quiz for each version."""
    quizzes = {
        f"version-{letter}/version-{letter}.xml": _assessment(items, f"{title}, version {letter}", letter)
        for letter, items in zip(exam.letters, exam.versions, strict=True)
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, root in {"imsmanifest.xml": _manifest(list(quizzes)), **quizzes}.items():
            ET.indent(root, " ")
            archive.writestr(zipfile.ZipInfo(name, _TIME), ET.tostring(root, encoding="utf-8", xml_declaration=True))
    return buffer.getvalue()


def _manifest(files: list[str]) -> ET.Element:
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


def _assessment(items: tuple[Item, ...], title: str, letter: str) -> ET.Element:
    root = ET.Element("questestinterop", xmlns=_QTI)
    assessment = ET.SubElement(root, "assessment", ident=f"version-{letter}", title=title)
    section = ET.SubElement(assessment, "section", ident="root_section")
    for number, item in enumerate(items, start=1):
        _add(section, f"{letter}{number:02}", f"Question {number}", item)
    return root


def _add(section: ET.Element, identifier: str, title: str, item: Item) -> None:
    element = ET.SubElement(section, "item", ident=identifier, title=title)
    fields = ET.SubElement(ET.SubElement(element, "itemmetadata"), "qtimetadata")
    for label, entry in {"question_type": "multiple_choice_question", "points_possible": "1"}.items():
        field = ET.SubElement(fields, "qtimetadatafield")
        ET.SubElement(field, "fieldlabel").text = label
        ET.SubElement(field, "fieldentry").text = entry
    presentation = ET.SubElement(element, "presentation")
    _text(presentation, question_html(item))
    response = ET.SubElement(presentation, "response_lid", ident="response1", rcardinality="Single")
    choices = ET.SubElement(response, "render_choice")
    for letter, option in zip(LETTERS, item.options, strict=True):
        _text(ET.SubElement(choices, "response_label", ident=letter), str(in_code(option)))
    _add_key(element, item.letter)


def _add_key(element: ET.Element, letter: str) -> None:
    processing = ET.SubElement(element, "resprocessing")
    outcomes = ET.SubElement(processing, "outcomes")
    ET.SubElement(outcomes, "decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
    condition = ET.SubElement(processing, "respcondition", {"continue": "No"})
    ET.SubElement(ET.SubElement(condition, "conditionvar"), "varequal", respident="response1").text = letter
    ET.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "100"


def _text(parent: ET.Element, html: str) -> None:
    ET.SubElement(ET.SubElement(parent, "material"), "mattext", texttype="text/html").text = html
