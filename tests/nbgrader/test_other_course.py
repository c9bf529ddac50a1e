"""A course on nothing that this project teaches, graded through the same configuration: the engine is of use to others.

Its notebook is not named after its assignment, a second assignment numbers its problems alike, and its test cells are what people write:
plain ``assert``, NumPy's and PyTorch's comparisons, a ``unittest.TestCase``, and partial credit as the value of the last line.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from tests.corpus.material import mark

ASSIGNMENT, NOTEBOOK, NEXT = "week_1", "problems", "week_2"

PLAIN = "c = get_config()  # noqa: F821\n"
# What the manual tells people to write, and nothing else.
SWITCHED_ON = f"from autograder.grading.plugin import configure\n\n{PLAIN}configure(c)\n"


@dataclass(frozen=True)
class Exercise:
    """One exercise: what is given, its solution, its tests and what they are worth; and other attempts by name."""

    name: str
    points: int
    head: str
    solution: str
    tests: str
    hidden: str
    others: Mapping[str, str]


def code(text: str) -> str:
    """Return source as it is written into a cell."""
    return dedent(text).strip("\n")


def body(text: str) -> str:
    """Return source as the body of a function or class."""
    return indent(code(text), "    ")


SETUP = code("""
    import itertools
    import unittest

    import numpy as np
    import torch
    from torch import nn
""")

EXERCISES = (
    Exercise(
        "initials",
        2,
        code("""
            def initials(name):
                \"\"\"'grace brewster hopper' -> 'G.B.H.'\"\"\"
        """),
        "    return ''.join(word[0].upper() + '.' for word in name.split())",
        "assert initials('ada lovelace') == 'A.L.'",
        "assert initials('grace brewster hopper') == 'G.B.H.'\nassert initials('') == ''",
        {
            "careless": "def initials(name):\n    return '.'.join(word[0].upper() for word in name.split())",
            "right": code("""
                from functools import lru_cache

                @lru_cache(maxsize=None)
                def initials(name):
                    return dotted([first_letter(word) for word in name.split()])
            """),
        },
    ),
    Exercise(
        "running_mean",
        3,
        code("""
            def running_mean(values, width):
                \"\"\"The mean of every `width` neighbours.\"\"\"
        """),
        "    return np.convolve(values, np.ones(width) / width, mode='valid')",
        "np.testing.assert_allclose(running_mean(np.array([1.0, 2.0, 6.0, 4.0]), 2), [1.5, 4.0, 5.0])",
        code("""
            values = np.linspace(-1.0, 2.0, 7) ** 3
            assert running_mean(values, 3).shape == (5,)
            np.testing.assert_allclose(running_mean(values, 3)[1], values[1:4].mean())
        """),
        {
            "right": code("""
                def running_mean(values, width):
                    sums = np.cumsum(np.concatenate([[0.0], values]))
                    return (sums[width:] - sums[:-width]) / width
            """)
        },
    ),
    Exercise(
        "roman",
        4,
        code("""
            def roman(number):
                \"\"\"A number below 100 in Roman numerals.\"\"\"
        """),
        body("""
            text = ''
            for value, letters in ((90, 'XC'), (50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')):
                while number >= value:
                    text, number = text + letters, number - value
            return text
        """),
        # Partial credit as nbgrader has it: the value of the last line.
        code("""
            points = 0
            for number, expected in ((3, 'III'), (18, 'XVIII'), (4, 'IV'), (99, 'XCIX')):
                points += roman(number) == expected
            points
        """),
        "",
        {
            "careless": code("""
                def roman(number):
                    tens, ones = divmod(number, 10)
                    return 'X' * tens + 'V' * (ones // 5) + 'I' * (ones % 5)
            """)
        },
    ),
    Exercise(
        "Chain",
        4,
        code("""
            class Chain:
                \"\"\"A linked list: `push` puts an item in front, `pop` takes it away again; iterable, and it knows its length.\"\"\"
        """),
        body("""
            def __init__(self):
                self.head = None

            def push(self, item):
                self.head = (item, self.head)

            def pop(self):
                item, self.head = self.head
                return item

            def __iter__(self):
                link = self.head
                while link is not None:
                    item, link = link
                    yield item

            def __len__(self):
                return sum(1 for _ in self)
        """),
        code("""
            chain = Chain()
            for item in ('a', 'b', 'c'):
                chain.push(item)
            assert len(chain) == 3
            assert list(chain) == ['c', 'b', 'a']
            assert chain.pop() == 'c'
        """),
        "chain.push('d')\nassert [chain.pop() for _ in range(3)] == ['d', 'b', 'a']\nassert len(chain) == 0 and len(Chain()) == 0",
        {
            "careless": code("""
                class Chain:
                    def __init__(self):
                        self.items = []

                    def push(self, item):
                        self.items.append(item)

                    def pop(self):
                        return self.items.pop(0)

                    def __iter__(self):
                        return reversed(self.items)

                    def __len__(self):
                        return len(self.items)
            """)
        },
    ),
    Exercise(
        "primes",
        2,
        code("""
            def primes():
                \"\"\"All primes, one after the other, without an end.\"\"\"
        """),
        body("""
            found = []
            for number in itertools.count(2):
                if all(number % prime for prime in found):
                    found.append(number)
                    yield number
        """),
        "assert list(itertools.islice(primes(), 6)) == [2, 3, 5, 7, 11, 13]",
        "numbers = primes()\nassert next(numbers) == 2\nassert next(numbers) == 3\nassert next(primes()) == 2",
        {"careless": "def primes(:\n    yield 2"},
    ),
    Exercise(
        "withdraw",
        2,
        code("""
            def withdraw(balance, amount):
                \"\"\"The balance afterwards; a ValueError that names the amount if there is not enough.\"\"\"
        """),
        body("""
            if amount > balance:
                raise ValueError(f'{amount} is more than there is')
            return balance - amount
        """),
        code("""
            case = unittest.TestCase()
            case.assertEqual(withdraw(10, 4), 6)
            with case.assertRaises(ValueError) as caught:
                withdraw(3, 5)
        """),
        "case.assertIn('5', str(caught.exception))",
        {"careless": "def withdraw(balance, amount):\n    return balance - amount"},
    ),
    Exercise(
        "sort",
        3,
        code("""
            def sort(items):
                \"\"\"Sort a list in place; return nothing.\"\"\"
        """),
        body("""
            for end in range(len(items), 1, -1):
                for i in range(end - 1):
                    if items[i] > items[i + 1]:
                        items[i], items[i + 1] = items[i + 1], items[i]
        """),
        "numbers = [3, 1, 2]\nassert sort(numbers) is None\nassert numbers == [1, 2, 3]",
        "words = ['pear', 'fig', 'apple']\nsort(words)\nassert words == ['apple', 'fig', 'pear']",
        {
            "careless": "def sort(items):\n    items = sorted(items)",
            "right": "def sort(items):\n    items[:] = sorted(items)",
        },
    ),
    Exercise(
        "Affine",
        3,
        code("""
            class Affine(nn.Module):
                \"\"\"x -> weight * x + bias, number by number; both are parameters, ones and zeros in the beginning.\"\"\"
        """),
        body("""
            def __init__(self, width):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(width))
                self.bias = nn.Parameter(torch.zeros(width))

            def forward(self, x):
                return self.weight * x + self.bias
        """),
        code("""
            layer = Affine(3)
            assert sorted(layer.state_dict()) == ['bias', 'weight']
            x = torch.tensor([[1.0, -2.0, 0.5], [0.0, 4.0, 2.0]])
            torch.testing.assert_close(layer(x), x)
        """),
        code("""
            layer.load_state_dict({'weight': torch.tensor([2.0, 0.5, -1.0]), 'bias': torch.tensor([1.0, 0.0, 3.0])})
            torch.testing.assert_close(layer(x), torch.tensor([[3.0, -1.0, 2.5], [1.0, 2.0, 1.0]]))
        """),
        {
            "careless": code("""
                class Affine(nn.Module):
                    def __init__(self, width):
                        super().__init__()
                        self.weight = torch.ones(width)
                        self.bias = torch.zeros(width)

                    def forward(self, x):
                        return self.weight * x + self.bias
            """)
        },
    ),
    Exercise(
        "energy",
        3,
        code("""
            def energy(x):
                \"\"\"Half the sum of squares, differentiable.\"\"\"
        """),
        "    return (x * x).sum() / 2",
        code("""
            x = torch.tensor([1.0, -3.0, 2.0], requires_grad=True)
            energy(x).backward()
            torch.testing.assert_close(x.grad, torch.tensor([1.0, -3.0, 2.0]))
        """),
        "torch.testing.assert_close(energy(torch.tensor([3.0, 4.0])), torch.tensor(12.5))",
        {"careless": "def energy(x):\n    return (x.detach() ** 2).sum() / 2"},
    ),
)
# What it needs lies beside the notebook, as nbgrader lets lecturers put it.
WITH_A_FILE = Exercise(
    "tallest",
    2,
    code("""
        def tallest(path):
            \"\"\"Who is tallest, of a file with a name and a height in every line.\"\"\"
    """),
    body("""
        with open(path, encoding='utf-8') as file:
            rows = [line.split(',') for line in file]
        return max(rows, key=lambda row: float(row[1]))[0]
    """),
    "assert tallest('heights.csv') == 'Mary'",
    "",
    {"careless": "def tallest(path):\n    return 'Anne'"},
)
HEIGHTS = "Anne,1.71\nMary,1.84\nEda,1.66\n"

TESTED = {f"test_{exercise.name}": exercise.points for exercise in EXERCISES}
QUESTION = "why_linked"
ANSWER = "Because an item can go in front without moving the others."

HELPERS = (
    "def first_letter(word):\n    return word[0].upper()\n\n\ndef dotted(letters):\n    return '.'.join([*letters, ''])"
)
CHEAT = code("""
    class Anything(str):
        def __eq__(self, other):
            return True

        __hash__ = str.__hash__


    def agree(*arguments, **options):
        return None


    np.testing.assert_allclose = agree
    torch.testing.assert_close = agree
""")
CHEATS = {
    "initials": "def initials(name):\n    return Anything()",
    "running_mean": "def running_mean(values, width):\n    return np.zeros(len(values) - width + 1)",
    "roman": "def roman(number):\n    return Anything()",
    "energy": "def energy(x):\n    return x.sum()",
}

EVERYTHING: dict[str, float] = {name: float(points) for name, points in TESTED.items()}
NOTHING = dict.fromkeys(TESTED, 0.0)
EXPECTED = {
    "right": EVERYTHING,
    "careless": NOTHING | {"test_running_mean": 3.0, "test_roman": 2.0},
    "blank": NOTHING,
}


def source_notebook() -> Any:
    """Return the notebook as a lecturer writes it."""
    cells = [
        new_markdown_cell("# Problems of the week", id="title"),
        new_code_cell(SETUP, id="setup", metadata=mark("setup", locked=True)),
    ]
    for about in (*EXERCISES, WITH_A_FILE):
        solution = f"{about.head}\n    ### BEGIN SOLUTION\n{about.solution}\n    ### END SOLUTION"
        hidden = f"\n### BEGIN HIDDEN TESTS\n{about.hidden}\n### END HIDDEN TESTS" if about.hidden else ""
        test, marks = f"test_{about.name}", mark(f"test_{about.name}", grade=True, locked=True, points=about.points)
        cells += [
            new_code_cell(solution, id=about.name, metadata=mark(about.name, solution=True)),
            new_code_cell(about.tests + hidden, id=test.replace("_", "-"), metadata=marks),
        ]
    answer = f"### BEGIN SOLUTION\n{ANSWER}\n### END SOLUTION"
    cells += [
        new_markdown_cell("Why is it worth while to link the items of a list?", id="prompt"),
        new_markdown_cell(answer, id="answer", metadata=mark(QUESTION, grade=True, solution=True, points=2)),
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def hand_in(course: Path, student: str, attempts: Mapping[str, str], *, answer: str = "", extra: str = "") -> None:
    """Put a student's notebook where submissions go: the release, with cells replaced and one put in behind the setup."""
    notebook = nbformat.read(course / "release" / ASSIGNMENT / f"{NOTEBOOK}.ipynb", as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = attempts.get(name, cell.source)
        if name == QUESTION and answer:
            cell.source = answer
    if extra:
        notebook.cells.insert(2, new_code_cell(extra, id="extra"))
    path = course / "submitted" / student / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def hand_in_everything(course: Path) -> None:
    """Hand in for the whole class: two who are honest, one who did nothing, one who cheats."""
    exercises = (*EXERCISES, WITH_A_FILE)
    solved = {about.name: f"{about.head}\n{about.solution}" for about in exercises}
    for student in ("right", "careless"):
        own = {about.name: about.others[student] for about in exercises if student in about.others}
        hand_in(course, student, solved | own, answer=ANSWER, extra=HELPERS if student == "right" else "")
    hand_in(course, "blank", {})
    hand_in(course, "cheat", CHEATS, extra=CHEAT)


@dataclass(frozen=True)
class Cell:
    """What the gradebook says about one graded cell of a submission."""

    auto: float | None
    most: float
    waits: bool


def gradebook_of(course: Path) -> dict[str, dict[str, Cell]]:
    """Return everything that the gradebook says, by student and cell."""
    found: dict[str, dict[str, Cell]] = {}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for submission in gradebook.notebook_submissions(NOTEBOOK, ASSIGNMENT):
            found[submission.student.id] = {
                grade.name: Cell(grade.auto_score, grade.max_score, bool(grade.needs_manual_grade))
                for grade in submission.grades
            }
    return found


@pytest.fixture(scope="module")
def graded(
    tmp_path_factory: pytest.TempPathFactory, command: Callable[..., str]
) -> dict[str, dict[str, dict[str, Cell]]]:
    """What nbgrader makes of the same class in two courses that differ in their configuration alone."""
    folder = tmp_path_factory.mktemp("other-course")
    course = folder / "plain"
    for assignment in (ASSIGNMENT, NEXT):
        path = course / "source" / assignment / f"{NOTEBOOK}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(source_notebook(), path)
        path.with_name("heights.csv").write_text(HEIGHTS, encoding="utf-8")
    (course / "nbgrader_config.py").write_text(PLAIN, encoding="utf-8")
    command(course, "nbgrader", "generate_assignment", ASSIGNMENT)
    command(course, "nbgrader", "generate_assignment", NEXT)
    hand_in_everything(course)
    shutil.copytree(course, folder / "switched on")
    (folder / "switched on" / "nbgrader_config.py").write_text(SWITCHED_ON, encoding="utf-8")
    found = {}
    for name in ("plain", "switched on"):
        command(folder / name, "nbgrader", "autograde", ASSIGNMENT)
        found[name] = gradebook_of(folder / name)
    # Whatever comes of it, for it may be refused.
    command(folder / "switched on", "nbgrader", "autograde", ASSIGNMENT, "--force", "--no-execute", ends=(0, 1))
    found["not executed"] = gradebook_of(folder / "switched on")
    return found


@pytest.mark.parametrize("student", EXPECTED)
def test_honest_work_gets_the_scores_that_untouched_nbgrader_gives(
    graded: dict[str, dict[str, dict[str, Cell]]], student: str
) -> None:
    ours, theirs = (
        {name: cell for name, cell in graded[course][student].items() if name != "test_tallest"}
        for course in ("switched on", "plain")
    )
    assert {name: cell.auto for name, cell in ours.items() if name in TESTED} == EXPECTED[student]
    assert ours == theirs


@pytest.mark.parametrize("course", ["plain", "switched on"])
def test_a_file_that_came_with_the_assignment_lies_beside_the_notebook(
    graded: dict[str, dict[str, dict[str, Cell]]], course: str
) -> None:
    found = {student: graded[course][student]["test_tallest"].auto for student in EXPECTED}
    assert found == {"right": 2.0, "careless": 0.0, "blank": 0.0}


def test_an_answer_waits_for_a_person_and_an_empty_one_does_not(graded: dict[str, dict[str, dict[str, Cell]]]) -> None:
    found = {student: cells[QUESTION] for student, cells in graded["switched on"].items()}
    assert found["careless"] == Cell(None, 2.0, waits=True)
    assert found["blank"] == Cell(0.0, 2.0, waits=False)


def test_untouched_nbgrader_believes_the_cheat(graded: dict[str, dict[str, dict[str, Cell]]]) -> None:
    gained = {name for name, cell in graded["plain"]["cheat"].items() if cell.auto}
    assert gained == {f"test_{name}" for name in CHEATS}


def test_a_cheat_gains_no_more_than_from_untouched_nbgrader(graded: dict[str, dict[str, dict[str, Cell]]]) -> None:
    """A lecturer's own tests run beside the submission, as the guide says: only checks of the course are judged outside of it."""
    gained = {course: {name for name, cell in graded[course]["cheat"].items() if cell.auto} for course in graded}
    assert gained["switched on"] <= gained["plain"]


def test_nobody_gains_by_not_being_run(graded: dict[str, dict[str, dict[str, Cell]]]) -> None:
    assert graded["not executed"]["blank"] == graded["switched on"]["blank"]
