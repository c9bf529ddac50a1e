"""The corpus: what a correct notebook becomes on its way, in the hands of editors, platforms, students and disks.

Every case says what has to come of it: the exercises that lose their points (all others keep them), the problems that are named, and
words that their texts must hold: the cell, the cause, or what to do.
"""

from __future__ import annotations

import codecs
import copy
import io
import json
import textwrap
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .material import ANSWER, CHAPTER, EXERCISES, Work, code, markdown, right, stub

Make = Callable[[Work], "Work | bytes"]
ALL = EXERCISES[CHAPTER]
MASK = right("causal_mask")


@dataclass(frozen=True)
class Case:
    """A file of the corpus.

    Attributes:
        name: the case in a few words.
        make: makes the file of a correct notebook.
        lost: the exercises that get no points.
        kinds: the kinds of the problems that must be named, in order.
        says: what the problems' texts must hold.
        fatal: whether the file cannot be graded.
        answers: whether both answers must reach the person who grades them.
    """

    name: str
    make: Make
    lost: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    fatal: bool = False
    answers: bool = True


CASES: list[Case] = []


def case(
    *, lost: tuple[str, ...] = (), kinds: tuple[str, ...] = (), says: tuple[str, ...] = (), answers: bool = True
) -> Callable[[Make], Make]:
    """Enter a function into the corpus as a file that is graded."""

    def enter(make: Make) -> Make:
        CASES.append(Case(make.__name__.replace("_", " "), make, lost, kinds, says, answers=answers))
        return make

    return enter


def refused(kind: str, *says: str) -> Callable[[Make], Make]:
    """Enter a function into the corpus as a file that cannot be graded, and why."""

    def enter(make: Make) -> Make:
        CASES.append(Case(make.__name__.replace("_", " "), make, ALL, (kind,), says, fatal=True, answers=False))
        return make

    return enter


def _indented(source: str) -> str:
    return textwrap.indent(source, "    ")


# Nothing is wrong with these.


@case()
def source_as_lists_of_lines(work: Work) -> Work:
    for cell in work.cells:
        cell["source"] = cell["source"].splitlines(keepends=True)
    return work


@case()
def crlf_and_bom(work: Work) -> bytes:
    for cell in work.cells:
        cell["source"] = cell["source"].replace("\n", "\r\n")
    return codecs.BOM_UTF8 + work.json().replace(b"\n", b"\r\n")


@case()
def widgets_metadata(work: Work) -> Work:
    state = {"version_major": 2, "state": {f"{i:032x}": {"model_name": "LayoutModel"} for i in range(2_000)}}
    work.data["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    return work


@case()
def nan_and_infinity_in_outputs(work: Work) -> bytes:
    work.cell("causal_mask")["outputs"] = [{"output_type": "display_data", "data": {"x": [float("nan"), float("inf")]}}]
    return work.json()


@case()
def damage_in_an_output(work: Work) -> bytes:
    work.cell("causal_mask")["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "BROKEN"}]
    return work.json().replace(b'"BROKEN"', b"nonsense \xff 12 12")


@case()
def megabytes_of_output(work: Work) -> Work:
    lines = [f"epoch {i} loss 0.123456\n" for i in range(100_000)]
    work.cell("test_causal_mask")["outputs"] = [{"output_type": "stream", "name": "stdout", "text": lines}]
    return work


@case()
def kernel_of_r(work: Work) -> Work:
    work.data["metadata"] = {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}
    return work


@case()
def kernel_of_julia(work: Work) -> Work:
    work.data["metadata"] = {"kernelspec": {"name": "julia-1.10"}, "language_info": {"name": "julia", "version": "1"}}
    return work


@case()
def metadata_of_the_notebook_of_wrong_types(work: Work) -> Work:
    work.data["metadata"] = ["kernelspec", 3, None]
    return work


@case()
def format_4_99(work: Work) -> Work:
    work.data["a field of the future"] = {"cells": []}
    return _format(work, 99)


def _format(work: Work, minor: int) -> Work:
    for cell in work.cells:
        if minor < 5:
            cell.pop("id", None)
    work.data["nbformat_minor"] = minor
    return work


@case()
def ids_duplicated(work: Work) -> Work:
    for cell in work.cells:
        cell["id"] = "same"
    return work


@case()
def ids_of_wrong_types(work: Work) -> Work:
    for number, cell in enumerate(work.cells):
        cell["id"] = [number, None, "", "x" * 500, {"a": 1}][number % 5]
    return work


@case()
def helper_in_another_cell(work: Work) -> Work:
    work.cell("causal_mask")["source"] = "def causal_mask(T, device=None):\n    return _lower(T, device)"
    helper = "def _lower(T, device):\n    return torch.ones(T, T, dtype=torch.bool, device=device).tril()"
    work.cells.insert(work.at("causal_mask"), code(helper))
    return work


@case()
def decorated(work: Work) -> Work:
    decorator = (
        "import functools\n\ndef same(f):\n    @functools.wraps(f)\n    def g(*a, **k):\n        return f(*a, **k)\n"
        "    return g\n\n\n"
    )
    work.cell("causal_mask")["source"] = f"{decorator}@same\n{MASK}"
    return work


@case()
def cells_of_shell_and_files(work: Work) -> Work:
    work.cells[2:2] = [
        code("!pip --version"),
        code("%%bash\necho hello > /dev/null\ndef causal_mask"),
        code("%%writefile nowhere.py\ndef causal_mask(T):\n    return 3"),
        code("torch?"),
    ]
    return work


@case()
def a_second_definition_behind_the_test(work: Work) -> Work:
    work.cells.append(code("def causal_mask(T, device=None):\n    return None  # what if it forgot everything?"))
    return work


# Metadata that were lost, moved or made up.


@case(kinds=("metadata restored",), says=("recognised by their contents",))
def stripped_by_colab(work: Work) -> Work:
    for number, cell in enumerate(work.bare().cells):
        cell["metadata"] = {"id": f"aBcD{number:08d}"} | ({"colab": {"base_uri": "https://x"}} if number % 2 else {})
    work.data["metadata"] = {
        "colab": {"provenance": [], "collapsed_sections": []},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "accelerator": "GPU",
    }
    return work


@case(kinds=("metadata restored",))
def stripped_by_vs_code(work: Work) -> Work:
    for cell in work.bare().cells:
        cell["metadata"] = {"vscode": {"languageId": "python"}}
        cell.pop("id")
    work.data["nbformat_minor"] = 2
    return work


@case(kinds=("metadata restored",))
def nbgrader_metadata_of_wrong_types(work: Work) -> Work:
    wrong = [{"grade_id": 7}, "locked", None, [1], {"grade_id": ["x"], "points": "many"}, {"grade_id": {}}, 3.5, True]
    for number, cell in enumerate(work.cells):
        cell["metadata"] = {"nbgrader": wrong[number % len(wrong)]}
    return work


@case(kinds=("metadata restored",))
def metadata_that_are_no_object(work: Work) -> Work:
    for number, cell in enumerate(work.cells):
        cell["metadata"] = [None, [], "x", 3][number % 4]
    return work


@case()
def points_made_up(work: Work) -> Work:
    for cell in work.cells:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"] |= {"points": 1e9, "grade": True, "locked": False, "solution": True}
    return work


def _swapped(work: Work, one: str, other: str) -> Work:
    a, b = work.cell(one), work.cell(other)
    a["metadata"], b["metadata"] = b["metadata"], a["metadata"]
    return work


@case(kinds=("repeated cells", "metadata restored"), says=("causal_mask",))
def one_name_on_every_cell(work: Work) -> Work:
    metadata = work.cell("causal_mask")["metadata"]
    for cell in work.cells:
        cell["metadata"] = copy.deepcopy(metadata)
    return work


# Cells that were deleted, copied, moved, cut and pasted together.


@case(lost=("causal_mask",), kinds=("cells put back",), says=("causal_mask", "another file"))
def exercise_deleted(work: Work) -> Work:
    del work.cells[work.at("causal_mask")]
    return work


@case(kinds=("cells put back",), says=("test_causal_mask",))
def test_deleted(work: Work) -> Work:
    del work.cells[work.at("test_causal_mask")]
    return work


@case(kinds=("cells put back",), says=("setup",))
def setup_deleted(work: Work) -> Work:
    del work.cells[work.at("setup")]
    return work


@case(kinds=("repeated cells",), says=("causal_mask",))
def exercise_duplicated(work: Work) -> Work:
    work.cells.insert(work.at("causal_mask"), copy.deepcopy(work.cell("causal_mask")))
    return work


@case(kinds=("repeated cells", "stub left out"), says=("causal_mask", "empty stub"))
def stub_left_behind_its_copy(work: Work) -> Work:
    empty = copy.deepcopy(work.cell("causal_mask"))
    empty["source"] = stub("causal_mask")
    work.cells.insert(work.at("causal_mask") + 1, empty)
    return work


@case(kinds=("cells moved",), says=("setup", "test_causal_mask", "top to bottom"))
def order_reversed(work: Work) -> Work:
    questions = work.cells[work.at("prompt_root") :]
    work.data["cells"] = work.cells[: work.at("prompt_root")][::-1] + questions
    return work


@case(kinds=("cells moved",), says=("test_soft_lookup",))
def test_before_its_exercise(work: Work) -> Work:
    work.cells.insert(3, work.cells.pop(work.at("test_soft_lookup")))
    return work


@case()
def exercise_split_in_two_cells(work: Work) -> Work:
    head, _, tail = right("soft_lookup").partition("    wide =")
    work.cell("soft_lookup")["source"] = f"{head}    return _rest(query, keys, values)"
    rest = "def _rest(query, keys, values):\n    wide =" + tail
    work.cells.insert(work.at("soft_lookup") + 1, code(rest))
    return work


@case(lost=("soft_lookup",))
def function_cut_in_the_middle(work: Work) -> Work:
    head, _, tail = right("soft_lookup").partition("    wide =")
    work.cell("soft_lookup")["source"] = head.replace("raise", "return (")
    work.cells.insert(work.at("soft_lookup") + 1, code("    wide =" + tail))
    return work


@case()
def two_exercises_in_one_cell(work: Work) -> Work:
    work.cell("causal_mask")["source"] += "\n\n\n" + right("merge_query_key")
    del work.cells[work.at("merge_query_key")]
    return work


@case(kinds=("stub left out",), says=("merge_query_key",))
def two_exercises_in_one_cell_and_the_empty_stub_behind(work: Work) -> Work:
    work.cell("causal_mask")["source"] += "\n\n\n" + right("merge_query_key")
    work.cell("merge_query_key")["source"] = stub("merge_query_key")
    return work


@case(kinds=("metadata restored", "cells put back"), answers=False)
def everything_in_one_cell_without_metadata(work: Work) -> Work:
    everything = "\n\n\n".join((work.cell("setup")["source"], *map(right, ALL)))
    work.data["cells"] = [code(everything)]
    return work


@case(kinds=("metadata restored", "cells moved"), says=("test_causal_mask", "test_soft_lookup"))
def everything_written_in_the_last_cell(work: Work) -> Work:
    for name in ALL:
        work.cell(name)["source"] = stub(name)
    work.cells.append(code("\n\n\n".join(map(right, ALL))))
    return work


# Cells that became something else.


@case(kinds=("cell type changed",), says=("causal_mask", "markdown", "Turn it back"))
def exercise_turned_to_markdown(work: Work) -> Work:
    work.cells[work.at("causal_mask")] = markdown(MASK, work.cell("causal_mask")["metadata"])
    return work


@case(kinds=("cell type changed", "metadata restored"), says=("causal_mask", "raw"))
def exercise_turned_to_raw_without_metadata(work: Work) -> Work:
    work.cells[work.at("causal_mask")] = {"cell_type": "raw", "metadata": {}, "source": MASK}
    return work


@case(
    lost=("causal_mask",),
    kinds=("cells put back", "exercise not defined"),
    says=("causal_mask", "a markdown cell and does not run", "Turn that cell into code"),
)
def exercise_turned_to_a_text_that_is_no_code(work: Work) -> Work:
    work.cells[work.at("causal_mask")] = markdown(f"My solution:\n\n```python\n{MASK}\n```\nIs it right?")
    return work


@case(kinds=("cell type changed", "test cell edited"), says=("test_causal_mask",))
def test_turned_to_markdown(work: Work) -> Work:
    work.cells[work.at("test_causal_mask")] = markdown("I passed!", work.cell("test_causal_mask")["metadata"])
    return work


@case(kinds=("cell type changed",), says=("question_root", "code"))
def answer_turned_to_code(work: Work) -> Work:
    work.cells[work.at("question_root")] = code(ANSWER, work.cell("question_root")["metadata"])
    return work


@case(kinds=("test cell edited",), says=("test_causal_mask",))
def helper_written_into_a_test(work: Work) -> Work:
    work.cell("causal_mask")["source"] = "def causal_mask(T, device=None):\n    return lower(T)"
    work.cell("test_causal_mask")["source"] = (
        "def lower(T):\n    return torch.ones(T, T, dtype=torch.bool).tril()\n\n\ncheck(causal_mask)"
    )
    return work


@case(kinds=("locked cell edited",), says=("setup",))
def setup_edited(work: Work) -> Work:
    work.cell("setup")["source"] += "\nimport numpy as np\n"
    work.cell("causal_mask")["source"] = (
        "def causal_mask(T, device=None):\n    return torch.tensor(np.tril(np.ones((T, T), dtype=bool)))"
    )
    return work


# Solutions that the check cannot find, or Python cannot read.


@case(kinds=())
def a_chain_as_long_as_a_day(work: Work) -> Work:
    work.cells.append(code("y = x" + ".a" * 20_000))
    work.cells.append(code("z = " + "-" * 5_000 + "1"))
    return work


# Cells that are no cells.


@case(kinds=("damaged cells",), says=("4 of its cells", "cell 1, 2, 3, 4"))
def cells_of_every_other_kind(work: Work) -> Work:
    work.cells[:0] = [None, "text", {"cell_type": "video", "source": "x"}, {"source": "x"}]  # type: ignore[list-item]
    return work


@case()
def lone_surrogates(work: Work) -> bytes:
    work.cell("question_root")["source"] = ANSWER + " \ud800"
    work.cells.append(code("x = '\udfff'"))
    return json.dumps(work.data).encode("ascii")


@case(kinds=("cell too long",), says=("cell 2", "50 MB", "1 MB are allowed", "into a file"))
def one_cell_of_fifty_megabytes(work: Work) -> Work:
    work.cells.insert(1, code("data = '" + "0123456789" * 5_242_880 + "'"))
    return work


@case()
def nested_very_deep_in_an_output(work: Work) -> bytes:
    work.cell("causal_mask")["outputs"] = ["DEEP"]
    return work.json().replace(b'"DEEP"', b"[" * 300_000 + b"]" * 300_000)


@case(lost=("causal_mask",), kinds=("damaged cells", "cells put back"), says=("cell 4",))
def nested_deep_in_a_source(work: Work) -> bytes:
    work.cell("causal_mask")["source"] = "DEEP"
    return work.json().replace(b'"DEEP"', b"[" * 100_000 + b"]" * 100_000)


# Other formats and other encodings of the same.


@case(kinds=("old format",), says=("format 3",))
def format_3(work: Work) -> bytes:
    for cell in work.cells:
        if cell["cell_type"] == "code":
            cell |= {"input": cell.pop("source"), "language": "python", "prompt_number": 1}
    work.cells.insert(0, {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Exercises"]})
    return json.dumps(
        {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": work.cells}]}
    ).encode()


@case(kinds=("newer format",), says=("format 5",))
def format_5(work: Work) -> Work:
    work.data |= {"nbformat": 5, "nbformat_minor": 0}
    return work


@case(kinds=("not UTF-8",), says=("Latin-1",))
def latin_1(work: Work) -> bytes:
    work.cell("causal_mask")["source"] = MASK + "\n# façade, naïve, Ærø"
    text = json.dumps(work.data, ensure_ascii=False)
    return text.encode("latin-1", "ignore")


# No notebooks.


@refused("truncated", "breaks off", "once more")
def truncated_json(work: Work) -> bytes:
    data = work.json()
    return data[: len(data) // 2]


@refused("truncated", "breaks off")
def truncated_in_a_string(work: Work) -> bytes:
    data = work.json()
    return data[: data.index(b"def causal_mask") + 7]


@refused("merge conflict", "from line", "with the conflict resolved")
def conflict_markers_of_git(work: Work) -> bytes:
    lines = work.json().splitlines(keepends=True)
    return b"".join(
        [*lines[:9], b"<<<<<<< HEAD\n", *lines[9:12], b"=======\n", *lines[9:12], b">>>>>>> theirs\n", *lines[12:]]
    )


@refused("not a notebook", "a zip archive")
def a_zip_called_ipynb(work: Work) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{CHAPTER}.ipynb", work.json())
    return archive.getvalue()


@refused("too large", "more than 2 MB")
def a_book_in_small_cells(work: Work) -> Work:
    work.cells.extend(markdown("word " * 100_000) for _ in range(20))
    return work


# Files that an expression makes.


def sourced(name: str, source: Callable[[Work], str]) -> Make:
    """Make a file in which a cell has another text."""

    def make(work: Work) -> Work:
        work.cell(name)["source"] = source(work)
        return work

    return make


def celled(cells: Callable[[Work], list[Any]]) -> Make:
    """Make a file of other cells."""

    def make(work: Work) -> Work:
        work.data["cells"] = cells(work)
        return work

    return make


EXPRESSIONS: list[tuple[str, Callable[[Make], Make], Make]] = [
    ("in order", case(), lambda work: work),
    ("tabs for indentation", case(), sourced("causal_mask", lambda work: MASK.replace("    ", "\t"))),
    ("format 4 0", case(), lambda work: _format(work, 0)),
    ("format 4 1", case(), lambda work: _format(work, 1)),
    ("format 4 2", case(), lambda work: _format(work, 2)),
    ("format 4 3", case(), lambda work: _format(work, 3)),
    ("format 4 4", case(), lambda work: _format(work, 4)),
    ("format 4 5", case(), lambda work: _format(work, 5)),
    (
        "keys twice",
        case(),
        lambda work: work.json().replace(b'"cells": [', b'"nbformat": 3, "cells": 7, "cells": [', 1),
    ),
    (
        "defined by a lambda",
        case(),
        sourced(
            "causal_mask",
            lambda work: (
                "causal_mask = lambda T, device=None: torch.ones(T, T, dtype=torch.bool).tril()\n"
                "causal_mask.__name__ = 'causal_mask'"
            ),
        ),
    ),
    (
        "defined by assignment",
        case(),
        sourced(
            "causal_mask",
            lambda work: (
                MASK.replace("causal_mask", "mine") + ("\n\nmine.__name__ = 'causal_mask'\ncausal_mask = mine")
            ),
        ),
    ),
    ("defined by exec", case(), sourced("causal_mask", lambda work: f"exec({MASK!r})")),
    (
        "defined under an if",
        case(),
        sourced("causal_mask", lambda work: "if True:\n" + _indented(MASK) + "\nelse:\n    causal_mask = None"),
    ),
    (
        "timed by a magic",
        case(),
        sourced("merge_query_key", lambda work: "%matplotlib inline\n" + right("merge_query_key")),
    ),
    (
        "names of two exercises swapped",
        case(kinds=("metadata restored",)),
        lambda work: _swapped(work, "causal_mask", "merge_query_key"),
    ),
    (
        "names of two tests swapped",
        case(kinds=("metadata restored",)),
        lambda work: _swapped(work, "test_causal_mask", "test_soft_lookup"),
    ),
    (
        "name of an exercise on its test",
        case(kinds=("metadata restored",)),
        lambda work: _swapped(work, "causal_mask", "test_causal_mask"),
    ),
    (
        "names of two answers swapped",
        case(kinds=("answer elsewhere", "answer elsewhere"), says=("question_root", "prompt_mask")),
        lambda work: _swapped(work, "question_root", "question_mask"),
    ),
    (
        "nothing left but the solutions",
        case(kinds=("cells put back",), says=("setup", "test_causal_mask", "question_mask"), answers=False),
        celled(lambda work: [work.cell(name) for name in ALL]),
    ),
    (
        "every cell duplicated",
        case(kinds=("repeated cells",), says=("causal_mask",)),
        celled(lambda work: [copy.deepcopy(cell) for cell in work.cells for _ in range(2)]),
    ),
    (
        "order reversed and stripped",
        case(kinds=("metadata restored", "cells moved"), says=("setup",)),
        lambda work: order_reversed(work).bare(),
    ),
    (
        "test edited",
        case(kinds=("test cell edited",), says=("test_causal_mask", "Leave the test cells")),
        sourced("test_causal_mask", lambda work: "print('14 of 14 points')\n14"),
    ),
    (
        "name misspelled",
        case(
            lost=("causal_mask",),
            kinds=("exercise not defined",),
            says=("causal_mask", "defines causal_maks", "rename it"),
        ),
        sourced("causal_mask", lambda work: MASK.replace("causal_mask", "causal_maks")),
    ),
    (
        "exercise renamed",
        case(lost=("causal_mask",), kinds=("exercise not defined",), says=("cell 4 defines triangle",)),
        sourced("causal_mask", lambda work: MASK.replace("causal_mask", "triangle")),
    ),
    (
        "exercise inside a class",
        case(
            lost=("causal_mask",),
            kinds=("exercise not defined",),
            says=("inside the class Masks of cell 4", "left margin"),
        ),
        sourced("causal_mask", lambda work: "class Masks:\n" + _indented(MASK)),
    ),
    (
        "exercise written to a file",
        case(lost=("causal_mask",), kinds=("exercise not defined",), says=("begins with %%writefile", "Take the line")),
        sourced("causal_mask", lambda work: f"%%writefile mask.py\n{MASK}"),
    ),
    (
        "exercise emptied",
        case(
            lost=("causal_mask",), kinds=("exercise not defined",), says=("The cell of causal_mask does not define it",)
        ),
        sourced("causal_mask", lambda work: ""),
    ),
    (
        "exercise imported from nowhere",
        case(lost=("causal_mask",)),
        sourced("causal_mask", lambda work: "from my_solutions import causal_mask"),
    ),
    (
        "syntax error in one exercise",
        case(lost=("causal_mask",)),
        sourced("causal_mask", lambda work: MASK.replace("return", "retrun torch ones (")),
    ),
    (
        "conflict markers in one cell",
        case(lost=("causal_mask",)),
        sourced("causal_mask", lambda work: f"<<<<<<< local\n{MASK}\n=======\n{MASK}\n>>>>>>> remote"),
    ),
    (
        "characters without width",
        case(kinds=("invisible characters",), says=("cell 4", "type the line anew")),
        sourced("causal_mask", lambda work: MASK.replace("return ", "return\u00a0\u200b").replace("(T:", "\ufeff(T:")),
    ),
    (
        "a thousand brackets",
        case(lost=("causal_mask",)),
        sourced("causal_mask", lambda work: "x = " + "(" * 5_000 + ")" * 5_000 + f"\n{MASK}"),
    ),
    (
        "source is a number",
        case(lost=("causal_mask",), kinds=("damaged cells", "cells put back"), says=("1 of its cells", "cell 4")),
        sourced("causal_mask", lambda work: 7),
    ),
    (
        "source is null",
        case(lost=("causal_mask",), kinds=("damaged cells", "cells put back"), says=("cell 4",)),
        sourced("causal_mask", lambda work: None),
    ),
    (
        "source is a list of anything",
        case(),
        sourced("causal_mask", lambda work: [None, 3, *MASK.splitlines(keepends=True), ["x"], {"y": 1}]),
    ),
    ("nul bytes in a cell", case(), sourced("causal_mask", lambda work: MASK.replace("return", "return\0"))),
    (
        "a hundred thousand empty cells",
        case(kinds=("empty cells",), says=("empty cells were left out",)),
        lambda work: work.json().replace(
            b'"cells": [', b'"cells": [' + b'{"cell_type": "code", "source": []},' * 100_000, 1
        ),
    ),
    (
        "an exercise of two megabytes",
        case(
            lost=("causal_mask",),
            kinds=("cell too long", "exercise not defined"),
            says=("cell 4 (causal_mask)", "was left out", "The cell of causal_mask"),
        ),
        sourced("causal_mask", lambda work: MASK + "\n" + "# more\n" * 300_000),
    ),
    ("utf 16", case(kinds=("not UTF-8",), says=("UTF-16",)), lambda work: work.json().decode().encode("utf-16")),
    (
        "utf 16 without a mark",
        case(kinds=("not UTF-8",), says=("UTF-16",)),
        lambda work: work.json().decode().encode("utf-16-le"),
    ),
    (
        "trailing garbage",
        case(kinds=("text behind the end",), says=("something else",)),
        lambda work: work.json() + b"\n</body></html>\n",
    ),
    (
        "two notebooks in one file",
        case(kinds=("text behind the end",), says=("another notebook",)),
        lambda work: work.json() + work.json(),
    ),
    ("padded with nul bytes", case(), lambda work: work.json() + b"\0" * 100_000),
    ("empty file", refused("empty", "The file is empty", "Ask for the notebook"), lambda work: b""),
    ("nothing but nul bytes", refused("empty", "NUL bytes"), lambda work: b"\0" * 4096),
    ("empty notebook", refused("empty", "no cell with anything in it"), celled(lambda work: [])),
    (
        "nul bytes between",
        refused("not JSON", "damaged on its way"),
        lambda work: work.json().replace(b'"cells": [', b'"cells"\0\0\0: [', 1),
    ),
    ("a pdf", refused("not a notebook", "a PDF", "once more"), lambda work: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"),
    (
        "an export as html",
        refused("not JSON", "HTML"),
        lambda work: b"<!DOCTYPE html>\n<html><head><title>Notebook</title></head><body></body></html>",
    ),
    (
        "an export as a script",
        refused("not JSON", "Python script"),
        lambda work: f"#!/usr/bin/env python\n# coding: utf-8\n\n# In[1]:\n\n{MASK}".encode(),
    ),
    (
        "a file of noise",
        refused("not text", "not text"),
        lambda work: bytes((17 * i * i + 131) % 256 for i in range(3_000)),
    ),
    ("a list", refused("not a notebook", "no list of cells"), lambda work: b"[1, 2, 3]"),
    ("nothing but brackets", refused("not a notebook", "no list of cells"), lambda work: b"[" * 1_000_000),
    (
        "a notebook of numbers",
        refused("not a notebook", "None of its cells"),
        lambda work: b'{"cells": [1, 2, 3, NaN], "nbformat": 4}',
    ),
    (
        "a hundred thousand cells of something",
        refused("too many cells", "more than 5000 cells"),
        lambda work: work.json().replace(
            b'"cells": [', b'"cells": [' + b'{"cell_type": "code", "source": "x = 1"},' * 100_000, 1
        ),
    ),
    (
        "half a million cells",
        refused("too many cells", "more than 200000"),
        lambda work: b'{"cells": [' + b"{}," * 500_000 + b"{}]}",
    ),
    (
        "another notebook",
        refused("other notebook", f"Ask for {CHAPTER}.ipynb"),
        celled(lambda work: [markdown("# Dear diary"), code("print('hello')")]),
    ),
]
for name, enter, make in EXPRESSIONS:
    make.__name__ = name
    enter(make)
