"""Packages import in one direction, as one table says, and none is too large to be looked through."""

from __future__ import annotations

from collections import Counter

import pytest

from tools import draw_packages
from tools.import_graph import ROOMS, all_imports, circles, imports_in, modules, offenders, room_of

# The reference is flat, a check's parts are one vocabulary, and a chapter's checks are one module per exercise.
LARGE = ("tfcourse", "autograder.checking", "autograder.commands", "autograder.checks.")
MODULES, LINES = 15, 400
# They wait to be divided: take off the list what has been.
LONG = {
    "autograder.checking.judges",
    "autograder.checking.subject",
    "autograder.engine.sandbox.lockdown",
    "autograder.engine.transport.serialization",
    "autograder.mistakes.source_edits",
    "autograder.intake.notebook.restore",
}


def test_rooms_import_only_from_rooms_before_them():
    assert offenders(all_imports()) == []
    assert {room_of(name) for name in modules()} - {None} == set(ROOMS)


def test_nothing_imports_in_a_circle():
    assert circles(all_imports()) == []
    module, text = "autograder.engine.transport.channel", "import autograder.engine.checker.checker"
    found = circles([*all_imports(), *imports_in(module, text, modules())])
    assert ["engine.checker", "engine.transport"] in found


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("autograder.engine.checker.checker", "from autograder.engine.student import rpc_server"),
        ("autograder.intake.roster", "def f():\n    from autograder.grading import plugin"),
        ("autograder.quizzes.questions.code", "from autograder.course import folder"),
        ("autograder.checking.rows", "from autograder.checks import exercises"),
        ("tfcourse.gpt", "from autograder import errors"),
        (
            "autograder.engine.workers.pool",
            "from .. import missing\nfrom autograder.grading.autograde import grade_chapter",
        ),
    ],
)
def test_one_wrong_import_is_named(module, text):
    found = offenders(list(imports_in(module, text, modules())))
    assert [line.split(",")[0] for line in found] == [module]


def test_imports_for_type_checkers_do_not_count():
    text = "if TYPE_CHECKING:\n    from autograder.grading import plugin\n"
    assert list(imports_in("autograder.grading.record.results", text, modules())) == []


def test_no_package_has_more_modules_than_one_looks_through():
    sizes = Counter(name.rpartition(".")[0] for name, path in modules().items() if path.name != "__init__.py")
    assert {name: size for name, size in sizes.items() if size > MODULES and not name.startswith(LARGE)} == {}


def test_no_module_is_longer_than_one_reads_at_once():
    lengths = {name: len(path.read_text("utf-8").splitlines()) for name, path in modules().items()}
    long = {name for name, length in lengths.items() if length > LINES and name.startswith("autograder")}
    assert long - LONG == set()
    assert long >= LONG, "shorten the list"


def test_table_and_drawing_in_the_docs_are_up_to_date():
    assert draw_packages.PAGE.read_text("utf-8") == draw_packages.page(), "run: python -m tools.draw_packages"
    assert draw_packages.PICTURE.read_text("utf-8") == draw_packages.drawing(), "run: python -m tools.draw_packages"


def test_the_drawing_has_every_room_once_in_its_order():
    assert [name for names in draw_packages.BANDS.values() for name in names] == list(ROOMS)
