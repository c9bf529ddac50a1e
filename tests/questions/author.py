"""Answer questions as the author of the code would with time and a computer: from the text of a question and the code, and nothing else.

It shares no mechanism with the questions. It writes a call into the code's text where a value is asked for, changes a line as the question
says, and runs the whole check. As a program it answers, in a process of its own, a line of JSON for each line that it reads.
"""

from __future__ import annotations

import ast
import json
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autograder.checking.judges import same_answer
from autograder.checking.request import Observation, Request
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.quizzes.questions.inputs import Input, result_text, short_text, visible_inputs
from autograder.quizzes.questions.properties import properties

sys.path.insert(0, str(Path(__file__).parents[1] / "autograder" / "checks"))
_SECONDS = 120
_SHAPE = re.compile(r"For (?P<input>.*): which shape does `(?P<name>.*)` have after line (?P<line>\d+)\?")
_PARAMETERS = re.compile(r"For (?P<input>.*): how many numbers can (?P<part>.*) learn\?")
_RESULT = re.compile(
    r"(?:(?P<change>Lines? .*?\.) )?What does the code (?:then )?return for (?P<input>.*)\?", re.DOTALL
)
_MISTAKE = re.compile(r"(?P<change>Lines? .*\.) What goes wrong\?", re.DOTALL)
_PURPOSE = re.compile(r"(?P<change>Lines? .*\.) For exactly which inputs does the result change\?", re.DOTALL)
_INPUT = re.compile(
    r"(?P<change>Lines? .*?(?:`\.|left out\.))(?: With (?P<stem>.*):)? Which of these calls alone gives "
    r"(?P<how>another result|the same result as before)\?",
    re.DOTALL,
)
_ROWS = re.compile(
    r"For (?P<input>.*): row (?P<row>\d+) of `(?P<name>.*)` gets other numbers\. Which rows of the result change\?"
)
_INVARIANCE = re.compile(r"For (?P<input>.*): which of these (?P<verb>leaves the result as it is|changes the result)\?")
_EQUAL = re.compile(
    r"In line (?P<line>\d+), which of these in the place of `(?P<text>.*)` (?P<verb>changes no result|changes results)\?"
)
_CHANGE = re.compile(r"Lines? (\d+)(?:–(\d+))? (?:(?:is|are) left out|becomes? `(.*)`)\.", re.DOTALL)


class Author:
    """The author of one definition.

    Args:
        exercise: the exercise.
        source: the code.
        namespace: its global names.
        sheet: the check.
    """

    def __init__(self, name: str, source: str, namespace: Mapping[str, Any], sheet: Sheet) -> None:
        self._name, self._source, self._namespace, self._sheet = name, source, namespace, sheet
        self._inputs = {short_text(item): item for item in visible_inputs(sheet)}
        self._calls = [
            request
            for section in sheet.sections
            for probe, expected in zip(section.probes, section.expected, strict=True)
            for request, answer in zip(probe.requests, expected, strict=True)
            if request.action == "call" and request.method != "get_parameter" and not answer.error
        ]

    def answer(self, text: str, options: list[str]) -> str:
        """Return the answer to a question."""
        for pattern, method in (
            *((_SHAPE, self._shape), (_PARAMETERS, self._parameters), (_MISTAKE, self._mistake)),
            *((_PURPOSE, self._purpose), (_INPUT, self._input), (_ROWS, self._rows), (_INVARIANCE, self._invariance)),
            *((_EQUAL, self._equal), (_RESULT, self._result)),
        ):
            if found := pattern.fullmatch(text):
                return method(found, options)
        raise ValueError(text)

    def _answers(self, source: str, requests: Sequence[Request]) -> list[Observation]:
        return [LocalSubject(self._made(source)).observe(request) for request in requests]

    def _differing(self, source: str, requests: Sequence[Request]) -> list[bool]:
        before, after = self._answers(self._source, requests), self._answers(source, requests)
        return [not same_answer(a, b) for a, b in zip(before, after, strict=True)]

    def _patched(self, sentence: str) -> str:
        found = _CHANGE.fullmatch(sentence)
        assert found is not None, sentence
        return self._with(int(found[1]), int(found[2] or found[1]), [found[3] or "pass"])

    def _result(self, found: re.Match[str], options: list[str]) -> str:
        source = self._patched(found["change"]) if found["change"] else self._source
        return result_text(self._answers(source, [self._inputs[found["input"]].request])[0])

    def _mistake(self, found: re.Match[str], options: list[str]) -> str:
        mine = self._answers(self._patched(found["change"]), self._calls)
        fitting = []
        for option in options:
            names = [one for one in exercise(self._name).misconceptions if one.explanation.startswith(option)]
            wrong = [[LocalSubject(one.wrong).observe(request) for request in self._calls] for one in names]
            if any(all(map(same_answer, mine, other)) for other in wrong):
                fitting.append(option)
        return " or ".join(fitting)

    def _purpose(self, found: re.Match[str], options: list[str]) -> str:
        differing = self._differing(self._patched(found["change"]), self._calls)
        holds = {one: [one.removeprefix("where ") in properties(call) for call in self._calls] for one in options}
        return " or ".join(option for option, holding in holds.items() if holding == differing)

    def _input(self, found: re.Match[str], options: list[str]) -> str:
        items = {}
        for option in options:
            parts = {*f"{found['stem']}, {option}".split(", ")} if found["stem"] else {*option.split(", ")}
            items[option] = next(item for text, item in self._inputs.items() if {*text.split(", ")} == parts)
        differing = self._differing(self._patched(found["change"]), [item.request for item in items.values()])
        wanted = found["how"] == "another result"
        return " or ".join(option for option, differs in zip(items, differing, strict=True) if differs is wanted)

    def _rows(self, found: re.Match[str], options: list[str]) -> str:
        request, name, row = _ordinary(self._inputs[found["input"]]), found["name"], int(found["row"])
        value = request.arguments[name].clone()
        rows = value.movedim(-2, 0) if value.ndim > 1 else value
        rows[row] = rows[row] - 0.7
        before, after = (
            self._tensor(one) for one in (request, replace(request, arguments={**request.arguments, name: value}))
        )
        if before.ndim > 1:
            before, after = before.movedim(-2, 0), after.movedim(-2, 0)
        changed = [
            i for i, (a, b) in enumerate(zip(before, after, strict=True)) if not torch.allclose(a, b, equal_nan=True)
        ]
        names = {"none": [], "all": [*range(len(before))]}
        said = {one: names[one] if one in names else _numbers(one) for one in options}
        return " or ".join(option for option, numbers in said.items() if numbers == changed)

    def _tensor(self, request: Request) -> Tensor:
        return next(iter(self._answers(self._source, [request])[0].outputs.values())).double()

    def _invariance(self, found: re.Match[str], options: list[str]) -> str:
        request = _ordinary(self._inputs[found["input"]])
        before = self._tensor(request)
        kept = {}
        for option in options:
            names = re.findall(r"`(\w+)`", option)
            other = {name: _transformed(option, request.arguments[name]) for name in names}
            after = self._tensor(replace(request, arguments={**request.arguments, **other}))
            kept[option] = before.shape == after.shape and torch.allclose(before, after, 1e-3, 1e-4, equal_nan=True)
        return " or ".join(option for option, keeps in kept.items() if keeps is found["verb"].startswith("leaves"))

    def _equal(self, found: re.Match[str], options: list[str]) -> str:
        number = int(found["line"])
        line = self._source.split("\n")[number - 1]
        fitting = []
        for option in options:
            lines = [line.replace(found["text"], f"({option.strip('`')})", 1).strip()]
            differing = self._differing(self._with(number, number, lines), self._calls)
            if any(differing) is (found["verb"] == "changes results"):
                fitting.append(option)
        return " or ".join(fitting)

    def _made(self, source: str, see: Callable[..., Any] | None = None) -> Any:
        namespace = {**self._namespace, "see_of_the_author": see}
        exec(compile("from __future__ import annotations\n" + source, "<author>", "exec"), namespace)
        made = namespace[ast.parse(source).body[0].name]  # type: ignore[attr-defined]
        made.__name__ = self._name
        return made

    def _statement(self, line: int) -> ast.stmt:
        """Return the statement that ends on a line."""
        nodes = (n for n in ast.walk(ast.parse(self._source)) if isinstance(n, ast.Assign | ast.AugAssign))
        return next(n for n in nodes if line in range(n.lineno, (n.end_lineno or 0) + 1))

    def _with(self, first: int, last: int, new: list[str]) -> str:
        lines = self._source.split("\n")
        indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        return "\n".join([*lines[: first - 1], *(indent + item for item in new), *lines[last:]])

    def _shape(self, found: re.Match[str], options: list[str]) -> str:
        seen: list[Tensor] = []
        node = self._statement(int(found["line"]))
        lines = self._source.split("\n")
        margin = lines[node.lineno - 1][: node.col_offset]
        source = "\n".join(
            [*lines[: node.end_lineno], f"{margin}see_of_the_author({found['name']})", *lines[node.end_lineno or 0 :]]
        )
        LocalSubject(self._made(source, seen.append)).observe(self._inputs[found["input"]].request)
        return str(tuple(seen[0].shape))

    def _parameters(self, found: re.Match[str], options: list[str]) -> str:
        items = self._inputs.items()
        request = next(item.request for text, item in items if text.partition("; call:")[0] == found["input"])
        module = self._made(self._source)(**(request.init or {}))
        if found["part"].startswith("self."):
            module = getattr(module, found["part"].removeprefix("self."))
        weights = [module] if isinstance(module, Tensor) else list(module.parameters())
        return str(sum(weight.numel() for weight in weights))


def _ordinary(item: Input) -> Request:
    """Return an input with ordinary numbers where its text does not give them."""
    torch.manual_seed(1)
    large = {
        name: torch.randn(value.shape).to(value.dtype)
        for name, value in item.request.arguments.items()
        if isinstance(value, Tensor) and value.is_floating_point() and not item.complete
    }
    return replace(item.request, arguments={**item.request.arguments, **large})


def _numbers(text: str) -> list[int]:
    numbers = [int(one) for one in re.findall(r"\d+", text)]
    return [*range(numbers[0], numbers[1] + 1)] if " to " in text else numbers


def _transformed(option: str, value: Tensor) -> Tensor:
    if "3 is added" in option:
        return value + 3
    if "doubled" in option:
        return value * 2
    if "sign" in option:
        return -value
    return value.flip(-1 if "columns" in option or value.ndim == 1 else -2)


def solutions(name: str) -> list[Callable[..., Any]]:
    """Return the reference of an exercise and its alternatives."""
    from test_quality import alternatives

    return [exercise(name).reference, *alternatives().get(name, ())]


def _stop(number: int, frame: object) -> None:
    raise TimeoutError(f"no answer within {_SECONDS} seconds")


def main() -> None:
    """Answer the questions about one definition per line of standard input."""
    from autograder.quizzes.questions.code import Code

    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _stop)
    for line in sys.stdin:
        order = json.loads(line)
        code = Code.of(solutions(order["exercise"])[order["number"]])
        author = Author(code.name, code.source, code.namespace, exercise(order["exercise"]).sheet())
        answers = []
        for text, options in order["questions"]:
            signal.alarm(_SECONDS)
            try:
                answers.append(author.answer(text, options))
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
        signal.alarm(0)
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
