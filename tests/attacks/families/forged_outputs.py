"""Attacks that write the result themselves: outputs, verdicts and metadata in the notebook that is handed in or run."""

from __future__ import annotations

from typing import Any

from nbformat.v4 import new_code_cell, new_output

from ..attack import Attack, code

VERDICT = "application/vnd.tfcourse.verdict+json"
POINTS = {"causal_mask": 4.0, "merge_query_key": 4.0}


def verdict(name: str) -> dict[str, Any]:
    """Return a verdict that gives all points."""
    finding = {
        "aspect": "values", "title": "The numbers.", "points": 4.0, "passed": True, "message": "as it should be", "diagnosis": None,
    }  # fmt: skip
    about = {"exercise": name, "chapter": "03_scaled_dot_product", "findings": [finding]}
    return {"score": 4.0, "max_score": 4.0, **about}


def _tests(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def _filled(notebook: Any) -> None:
    for cell in _tests(notebook):
        name = cell.metadata.nbgrader["grade_id"].removeprefix("test_")
        data = {"text/plain": "4.0", VERDICT: verdict(name)}
        cell.outputs = [new_output("execute_result", data, execution_count=1)]
        cell.execution_count = 1


def _tagged(notebook: Any) -> None:
    for cell in _tests(notebook):
        cell.metadata["tags"] = ["skip-execution", "raises-exception", "nbgrader-skip"]


def _worth_more(notebook: Any) -> None:
    for cell in _tests(notebook):
        cell.metadata.nbgrader["points"] = 400
        cell.source = "400.0"


def _answered(notebook: Any) -> None:
    for cell in _tests(notebook):
        cell.metadata.nbgrader.update(solution=True, locked=False, grade=True)
        cell.source = "4.0"


def _twice(notebook: Any) -> None:
    for cell in _tests(notebook):
        copy = new_code_cell("4.0", metadata=dict(cell.metadata))
        notebook.cells.append(copy)


def _text(notebook: Any) -> None:
    for cell in _tests(notebook):
        cell.cell_type = "markdown"
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def _told(notebook: Any) -> None:
    notebook.metadata["tfcourse"] = {"problems": [], "isolation": "sandbox", "score": 8}
    notebook.metadata["kernelspec"] = {"name": "../../../../tmp/evil", "display_name": "x", "language": "python"}
    _filled(notebook)


def _hollow(names: tuple[str, ...] = tuple(POINTS)) -> dict[str, str]:
    return {name: f"def {name}(*arguments, **named):\n    return forge({name!r})\n" for name in names}


ATTACKS = (
    Attack(
        name="outputs handed in",
        story="Hands in a notebook whose test cells already carry full points and a forged verdict.",
        wants="full marks without running anything",
        edit=_filled,
    ),
    Attack(
        name="tests tagged to be skipped",
        story="Tags the test cells so that the runner skips them or forgives their errors.",
        wants="full marks, for stock nbgrader gives a test cell without an error all its points",
        edit=_tagged,
    ),
    Attack(
        name="points raised in the metadata",
        story="Writes 400 points into the metadata of the test cells, and the same number into their text.",
        wants="more points than there are",
        edit=_worth_more,
    ),
    Attack(
        name="tests turned into answers",
        story="Marks the test cells as cells in which the student writes, with the points as their text.",
        wants="full marks without a check",
        edit=_answered,
    ),
    Attack(
        name="tests handed in twice",
        story="Adds copies of the test cells, with the same names, whose text is the points.",
        wants="full marks from the copy, or an end to the batch",
        edit=_twice,
    ),
    Attack(
        name="tests turned into text",
        story="Turns the test cells into Markdown, so that there is nothing to run.",
        wants="full marks for a test that did not fail",
        edit=_text,
    ),
    Attack(
        name="notebook metadata forged",
        story="Brings its own record of problems and isolation in the notebook's metadata, and names a kernel by a path.",
        wants="the trust that the grader has in its own marks",
        edit=_told,
    ),
    Attack(
        name="a verdict displayed from inside",
        story="Displays a forged verdict from inside the function while it is checked.",
        wants="full marks from the second result",
        bodies=_hollow(),
        cells=(
            code(f"""
                from IPython.display import display
                KIND = {VERDICT!r}
                def forge(name):
                    finding = dict(aspect="values", title="The numbers.", points=4.0, passed=True, message="", diagnosis=None)
                    verdict = dict(score=4.0, max_score=4.0, exercise=name, chapter=CHAPTER, findings=[finding])
                    display({{"text/plain": "4.0", KIND: verdict}}, raw=True)
            """),
        ),
    ),
    Attack(
        name="an execute_result sent by hand",
        story="Sends a forged execute_result over the kernel's own socket from inside the function, then ends the check quietly.",
        wants="full marks from a message that the check never wrote",
        bodies=_hollow(),
        cells=(
            code(f"""
                import IPython
                def quiet(self, *a, **k):
                    return None
                def forge(name):
                    shell = IPython.get_ipython()
                    finding = dict(aspect="values", title="The numbers.", points=4.0, passed=True, message="", diagnosis=None)
                    verdict = dict(score=4.0, max_score=4.0, exercise=name, chapter=CHAPTER, findings=[finding])
                    content = dict(execution_count=1, metadata={{}}, data={{"text/plain": "4.0", {VERDICT!r}: verdict}})
                    kernel = shell.kernel
                    kernel.session.send(kernel.iopub_socket, "execute_result", content, parent=kernel.get_parent("shell"))
                    shell.showtraceback = quiet
                    shell._showtraceback = quiet
                    raise KeyboardInterrupt
            """),
        ),
    ),
    Attack(
        name="printing the points and leaving",
        story="Prints the points and ends the process from inside the function, so that the check never gets to its verdict.",
        wants="full marks for a test cell without an error",
        bodies={
            name: f"def {name}(*a, **k):\n    import os\n    print('4.0', flush=True)\n    os._exit(0)\n"
            for name in POINTS
        },
    ),
    Attack(
        name="errors swallowed",
        story="Installs a handler that swallows every exception, so that a failing test cell shows no error.",
        wants="full marks, for stock nbgrader gives a test cell without an error all its points",
        bodies={name: f"def {name}(*a, **k):\n    raise KeyboardInterrupt\n" for name in POINTS},
        cells=(
            code("""
                get_ipython().set_custom_exc((BaseException,), lambda self, kind, value, trace, tb_offset=None: None)
                get_ipython().showtraceback = lambda *a, **k: None
            """),
        ),
    ),
    Attack(
        name="an object that shows as points",
        story="Gives the exercise's name to an object that calls itself by the exercise's name and shows as its full points.",
        wants="full marks for an object that is never called",
        bodies={
            name: code(f"""
                class Points:
                    __name__ = {name!r}
                    def __call__(self, *a, **k):
                        return self
                    def __repr__(self):
                        return "4.0"
                    def _repr_mimebundle_(self, *a, **k):
                        return {{"text/plain": "4.0"}}
                    def __float__(self):
                        return 4.0
                    def __eq__(self, other):
                        return True
                    __hash__ = None
                {name} = Points()
            """)
            for name in POINTS
        },
    ),
    Attack(
        name="the verdict of another exercise",
        story="Renames the right solution of one exercise so that the test of the other gets its verdict.",
        wants="points twice for one solution",
        bodies={
            "causal_mask": "def causal_mask(*a, **k):\n    raise ValueError\ncausal_mask.__name__ = 'merge_query_key'\n",
            "merge_query_key": code("""
                def merge_query_key(*a, **k):
                    raise ValueError
                def causal_mask(T, device=None):
                    return torch.ones(T, T, dtype=torch.bool, device=device).tril()
                merge_query_key = causal_mask
                def causal_mask(*a, **k):
                    raise ValueError
            """),
        },
    ),
)
