"""Answer questions as the author of the code would with time and a computer: from the text of a question and the code, and nothing else.

It shares no mechanism with the questions. It changes a line or an input as the question says, and runs the whole check. As a program it
answers, in a process of its own, a line of JSON for each line that it reads.
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

from autograder.checking.judges import is_same_answer
from autograder.checking.request import Observation, Request
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.quizzes.questions.inputs import Input, result_text, short_text, visible_inputs
from autograder.quizzes.questions.properties import call_properties

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests" / "autograder" / "checks")]
_SECONDS = 120
_RESULT = re.compile(r"(?P<change>Lines? .*?\.) What does the code then return for (?P<input>.*)\?", re.DOTALL)
_MISTAKE = re.compile(r"(?P<change>Lines? .*\.) What goes wrong\?", re.DOTALL)
_PURPOSE = re.compile(r"(?P<change>Lines? .*\.) When can the result change\?", re.DOTALL)
_INPUT = re.compile(
    r"(?P<change>Lines? .*?`\.)(?: With (?P<stem>.*):)? Which of these calls alone gives "
    r"(?P<how>another result|the same result as before)\?",
    re.DOTALL,
)
_ROWS = re.compile(
    r"For (?P<input>.*): `(?P<name>\w+)(?P<index>\[.*\])` changes\. For which i can `result(?:\[0\])?(?P<part>\[.*\])` change\?"
)
_SCALE = re.compile(r"For (?P<input>.*): what happens to the result if `(?P<name>\w+)` is doubled\?")
_INVARIANCE = re.compile(
    r"For (?P<input>.*): which of these (?P<verb>leaves the result as it is, up to rounding|changes the result)\?"
)
_CHANGE = re.compile(r"Lines? (\d+)(?:–(\d+))? becomes? `(.*)`\.", re.DOTALL)


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
            *((_MISTAKE, self._mistake), (_SCALE, self._scale)),
            *((_PURPOSE, self._purpose), (_INPUT, self._input), (_ROWS, self._rows), (_INVARIANCE, self._invariance)),
            (_RESULT, self._result),
        ):
            if found := pattern.fullmatch(text):
                return method(found, options)
        raise ValueError(text)

    def _answers(self, source: str, requests: Sequence[Request]) -> list[Observation]:
        return [LocalSubject(self._made(source)).observe(request) for request in requests]

    def _differing(self, source: str, requests: Sequence[Request]) -> list[bool]:
        before, after = self._answers(self._source, requests), self._answers(source, requests)
        return [not is_same_answer(a, b) for a, b in zip(before, after, strict=True)]

    def _patched(self, sentence: str) -> str:
        found = _CHANGE.fullmatch(sentence)
        assert found is not None, sentence
        return self._with(int(found[1]), int(found[2] or found[1]), [found[3] or "pass"])

    def _result(self, found: re.Match[str], options: list[str]) -> str:
        return result_text(self._answers(self._patched(found["change"]), [self._inputs[found["input"]].request])[0])

    def _scale(self, found: re.Match[str], options: list[str]) -> str:
        request = self._inputs[found["input"]].request
        arguments = {**request.arguments, found["name"]: 2 * request.arguments[found["name"]]}
        before, after = (
            next(iter(one.outputs.values()))
            for one in self._answers(self._source, [request, replace(request, arguments=arguments)])
        )
        return {1: "It stays the same", 2: "It doubles", 4: "It becomes four times as large", 0.5: "It is halved"}[
            round(after / before, 6)
        ]

    def _mistake(self, found: re.Match[str], options: list[str]) -> str:
        mine = self._answers(self._patched(found["change"]), self._calls)
        fitting = []
        for option in options:
            names = [one for one in exercise(self._name).misconceptions if one.explanation.startswith(option)]
            wrong = [[LocalSubject(one.implementation).observe(request) for request in self._calls] for one in names]
            if any(all(map(is_same_answer, mine, other)) for other in wrong):
                fitting.append(option)
        return " or ".join(fitting)

    def _purpose(self, found: re.Match[str], options: list[str]) -> str:
        differing = self._differing(self._patched(found["change"]), self._calls)
        holds = {
            one: [one.removeprefix("only if ") in call_properties(call) for call in self._calls] for one in options
        }
        return " or ".join(
            option
            for option, holding in holds.items()
            if all(holds for holds, differs in zip(holding, differing, strict=True) if differs)
        )

    def _input(self, found: re.Match[str], options: list[str]) -> str:
        items = {}
        for option in options:
            parts = {*f"{found['stem']}, {option}".split(", ")} if found["stem"] else {*option.split(", ")}
            items[option] = next(item for text, item in self._inputs.items() if {*text.split(", ")} == parts)
        differing = self._differing(self._patched(found["change"]), [item.request for item in items.values()])
        wanted = found["how"] == "another result"
        return " or ".join(option for option, differs in zip(items, differing, strict=True) if differs is wanted)

    def _rows(self, found: re.Match[str], options: list[str]) -> str:
        request, name = _ordinary(self._inputs[found["input"]]), found["name"]
        value = request.arguments[name].clone()
        place = _index(found["index"])
        if value.is_floating_point():
            value[place] += (
                torch.rand(value[place].shape, generator=torch.Generator().manual_seed(7)).to(value.dtype) - 2
            )
        else:
            low, high = value.min(), value.max()
            value[place] = (value[place] - low + 1) % (high - low + 1) + low
        before, after = (
            self._tensor(one) for one in (request, replace(request, arguments={**request.arguments, name: value}))
        )
        changed = []
        axis = {"[i]": 0, "[:, i]": 1, "[..., i]": -1, "[..., i, :]": -2}[found["part"]]
        for i, (a, b) in enumerate(zip(before.movedim(axis, 0), after.movedim(axis, 0), strict=True)):
            changed += [i] * (not torch.allclose(a, b, equal_nan=True))
        names = {"none": [], "all": [*range(before.shape[axis])]}
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
            kept[option] = before.shape == after.shape and torch.allclose(before, after, 1e-5, 2e-6, equal_nan=True)
        return " or ".join(option for option, keeps in kept.items() if keeps is found["verb"].startswith("leaves"))

    def _made(self, source: str) -> Any:
        namespace = dict(self._namespace)
        exec(compile("from __future__ import annotations\n" + source, "<author>", "exec"), namespace)
        made = namespace[ast.parse(source).body[0].name]  # type: ignore[attr-defined]
        made.__name__ = self._name
        return made

    def _with(self, first: int, last: int, new: list[str]) -> str:
        lines = self._source.split("\n")
        indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        return "\n".join([*lines[: first - 1], *(indent + item for item in new), *lines[last:]])


def _ordinary(item: Input) -> Request:
    """Return an input with ordinary numbers where its text does not give them."""
    torch.manual_seed(1)
    large = {
        name: torch.randn(value.shape).to(value.dtype)
        for name, value in item.request.arguments.items()
        if isinstance(value, Tensor) and value.is_floating_point() and not item.complete
    }
    return replace(item.request, arguments={**item.request.arguments, **large})


def _index(text: str) -> tuple[Any, ...]:
    """Return an index such as ``[..., 1, :]``."""
    parts = {"...": ..., ":": slice(None)}
    return tuple(parts[part] if part in parts else int(part) for part in text.strip("[]").split(", "))


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
        code = Code.from_candidate(solutions(order["exercise"])[order["number"]])
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
