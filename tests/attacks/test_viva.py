"""Attacks on the questions about students' own code: they run in the sandbox, and nothing of them reaches a page as markup."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from autograder.checks import exercise
from autograder.course.authoring.chapter import find_chapter
from autograder.course.folder import Course
from autograder.course.release.student_build import build_student_wheel
from autograder.engine.settings import GradingSettings
from autograder.grading.course_settings import settings_for_release
from autograder.grading.record.results import ExerciseResult, GradeResult, write_result
from autograder.intake.roster import Student, write_roster
from autograder.quizzes.viva.interviews import Interview, make_interviews
from autograder.quizzes.viva.pages import render_page
from tests.autograder.conftest import PROJECT, RELEASED, course_dir, released  # noqa: F401

CHAPTER, EXERCISE = "03_scaled_dot_product", "causal_mask"
RIGHT = """def causal_mask(T, device=None):
    rows = torch.arange(T, device=device)[:, None]
    columns = torch.arange(T, device=device)
    mask = columns <= rows
    return mask"""
MARKUP = "</pre><script>window.hostile = 1</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"

# A module that prints facts about an input, and mistakes, of a student's own.
FORGED = (
    "import json, sys, types\nforged = types.ModuleType('forged')\n"
    "def forge(sources, names, mark, enough):\n"
    "    given = dict(inputs=[dict(text='an input that I have thought of', complete=True, arguments={}) for n in range(4)],\n"
    "        properties={}, mistakes={'mine': 'a mistake that I have thought of'}, apart={})\n"
    "    facts = dict(exercise='causal_mask', source=sources['causal_mask'], hidden_lines=[], given=given,\n"
    "        runs={n: '' for n in range(4)}, changes=[], effects=[])\n"
    "    print(mark + json.dumps(facts))\n"
    "forged.print_facts = forged.gather = forge\n"
)


def when_traced(action: str) -> str:
    return RIGHT.replace(
        "    return mask", f"    import os, sys\n    if sys.gettrace():\n        {action}\n    return mask"
    )


def printing_facts(after: str, result: str) -> str:
    """Return code that prints facts about a changed line when it is called for facts."""
    return RIGHT.replace(
        "    return mask",
        "    import json, sys\n"
        "    frame = sys._getframe(1)\n"
        "    while frame and 'mark' not in frame.f_locals: frame = frame.f_back\n"
        "    if frame:\n"
        "        told = frame.f_locals\n"
        f"        change = dict(edit=dict(first=4, last=4, after={after!r}), mistake='one key too many', raises=False,\n"
        f"            calls=[0], inputs=[0], results={{0: {result!r}}})\n"
        "        given = dict(inputs=[], properties={}, mistakes={}, apart={})\n"
        "        facts = dict(exercise='causal_mask', source=told['sources']['causal_mask'], hidden_lines=[], given=given,\n"
        "            runs={0: ''}, changes=[change], effects=[])\n"
        "        get_ipython()._streams[0].write(told['mark'] + json.dumps(facts) + '\\n')\n"
        "    return mask",
    )


CODE = {
    "honest": RIGHT,
    "writes-the-question": printing_facts("mask = rows`. Full marks for all. Line 4 becomes `x", ""),
    "moves-the-cursor": printing_facts("mask = columns < rows", "\x1b[2J(3, 7)"),
    "prints-keys": "print('0. A) The key is A')\n\n\n"
    + RIGHT.replace("    return", "    print('\\n{\"key\": 0}\\n' * 99)\n    return"),
    "differs-when-traced": when_traced("return ~mask"),
    "never-ends-when-traced": when_traced("while True: pass"),
    "switches-tracing-off": when_traced("sys.settrace(None)"),
    "ends-its-process": when_traced("os._exit(0)"),
    "markup": RIGHT.replace("    rows", f'    """{MARKUP}"""\n    text = "{MARKUP}"  # {MARKUP}\n    rows', 1),
    # In place of what makes facts: a module under its name, its functions, those of the check, and the loaded function itself.
    "replaces-a-module": f"{FORGED}sys.modules['autograder.quizzes.questions.with_recordings'] = forged\n\n\n" + RIGHT,
    "replaces-functions": f"{FORGED}import autograder.quizzes.questions.with_recordings as w\n"
    "w.gather_facts = w.print_facts = w.make_questions = forged.gather\n\n\n" + RIGHT,
    "replaces-the-check": "import autograder.checking.subject as s\ns.LocalSubject.observe = None\n\n\n" + RIGHT,
    "replaces-what-waits": f"{FORGED}for name in list(globals()):\n"
    "    if callable(globals()[name]) and len(name) == 33:\n        globals()[name] = forged.print_facts\n\n\n" + RIGHT,
    "forbids-the-module": "import sys\nsys.modules['autograder.quizzes.questions'] = None\n\n\n" + RIGHT,
    "raises-what-looks-ours": "for name in list(globals()):\n    if callable(globals()[name]) and len(name) == 33:\n"
    "        globals()[name] = lambda *a: (_ for _ in ()).throw(ImportError('autograder.quizzes.questions\\x1b[2J'))\n\n\n"
    + RIGHT,
    "floods": "import sys\n\n\n" + when_traced("sys.__stdout__.write('x' * 10**7)"),
}
WITHOUT = {
    "writes-the-question",
    "moves-the-cursor",
    "differs-when-traced",
    "never-ends-when-traced",
    "switches-tracing-off",
    "ends-its-process",
    "replaces-what-waits",
    "raises-what-looks-ours",
}


def hand_in(course: Course, student: str, code: str) -> None:
    """Write what grading leaves of a submission with full marks."""
    notebook = nbformat.read(course.folder("release", ".", CHAPTER) / f"{CHAPTER}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == EXERCISE:
            cell.source = code
    for step in ("submitted", "autograded"):
        folder = course.folder(step, student, CHAPTER)
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{CHAPTER}.ipynb")
    points = exercise(EXERCISE).points
    write_result(course, GradeResult(student, CHAPTER, "graded", exercises=(ExerciseResult(EXERCISE, points, points),)))


@pytest.fixture
def made(course_dir: Path) -> tuple[Course, list[Interview]]:  # noqa: F811
    assert RELEASED[CHAPTER] == EXERCISE
    course = Course.open(course_dir)
    # Questions come from recorded answers, which the packages of the shared course lack.
    build_student_wheel(PROJECT, find_chapter(PROJECT, CHAPTER), course.root / "student" / CHAPTER)
    write_roster(course, {student: Student(student, name=f"{student} {MARKUP}") for student in CODE})
    for student, code in CODE.items():
        hand_in(course, student, code)
    settings = settings_for_release(course, CHAPTER, GradingSettings(seed=5, allow_weaker=True))
    return course, make_interviews(course, CHAPTER, 4, settings)


def test_hostile_code_gives_no_question_or_right_ones_and_no_markup(made: tuple[Course, list[Interview]]) -> None:
    course, found = made
    by_student = {interview.student: interview for interview in found}
    assert set(by_student) == set(CODE)
    assert by_student["honest"].count >= 2
    for student, interview in by_student.items():
        expected = 0 if student in WITHOUT else by_student["honest"].count
        assert interview.count == expected or (student == "markup" and interview.count), (student, interview.problem)
        assert interview.problem.isprintable()
        assert not any("thought of" in question.text for _, question in interview.questions)
    for name in ("questions", "keys"):
        html = render_page(name, found, "chapter")
        assert not re.search(r"<(script|img|iframe|a|form|svg|object|link)\b", html)
        assert "49" not in re.findall(r"\{\{.*?\}\}|49", html)
        assert "default-src 'none'" in html
    shown = render_page("questions", found, "chapter")
    assert "&lt;script&gt;" in shown
    assert "The key is A" not in shown
    assert (
        "window.hostile"
        not in render_page("questions", [by_student["honest"]], "chapter").replace(MARKUP, "").partition("<pre")[2]
    )

    # Nothing is run again: what was made before is kept, and so is its seed.
    def refuse(settings: GradingSettings) -> None:
        raise AssertionError("it runs again")

    settings = settings_for_release(course, CHAPTER, GradingSettings(seed=5, allow_weaker=True))
    again = make_interviews(course, CHAPTER, 4, settings, make_executor=refuse)  # type: ignore[arg-type]
    assert again == found
