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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autograder.checking.decision import first_failure
from autograder.checking.request import Request
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import exercise
from autograder.quizzes.questions.inputs import result_text, visible_inputs

sys.path.insert(0, str(Path(__file__).parents[1] / "autograder" / "checks"))
_SECONDS = 120
TIMES = {"first": 0, "second": 1, "third": 2}
_POINT = re.compile(
    r"For (?P<input>.*): which (?P<kind>shape|value) does `(?P<text>.*)` have "
    r"(?:after line (?P<after>\d+) has run|in line (?P<line>\d+))(?:,? ?(?:when it runs )?the (?P<time>\w+) time)?\?",
    re.DOTALL,
)
_COUNT = re.compile(r"For (?P<input>.*): how often does line (?P<line>\d+) run\?", re.DOTALL)
_BRANCH = re.compile(r"For (?P<input>.*): which of these lines (?P<verb>does not run|runs)\?", re.DOTALL)
_RESULT = re.compile(r"For (?P<input>.*): what is returned\?", re.DOTALL)
_PARAMETERS = re.compile(r"For (?P<input>.*): how many numbers can (?P<part>.*) learn\?", re.DOTALL)
_WHICH = re.compile(
    r"Each of these changes one line of your code. With which one does the check say: (?P<outcome>.*)\?"
)
_RETURNED = re.compile(r"(?P<change>.*)\n   What does the changed code return for (?P<input>.*)\?", re.DOTALL)
_SAYS = re.compile(r"(?P<change>.*)\n   What does the check say of the changed code\?", re.DOTALL)


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
        self._inputs = {item.text: item.request for item in visible_inputs(sheet)}
        self._said: dict[str, str] = {}

    def answer(self, text: str, options: list[str]) -> str:
        """Return the answer to a question."""
        if found := _SAYS.fullmatch(text):
            return self._says(self._changed(found["change"]))
        if found := _RETURNED.fullmatch(text):
            changed = self._made(self._changed(found["change"]))
            return result_text(LocalSubject(changed).observe(self._inputs[found["input"]]))
        if found := _WHICH.fullmatch(text):
            fitting = [one for one in options if self._says(self._changed_as_listed(one)) == found["outcome"]]
            return " or ".join(fitting)
        if found := _POINT.fullmatch(text):
            return self._value(found)
        if found := _COUNT.fullmatch(text):
            return str(self._count(int(found["line"]), self._inputs[found["input"]]))
        if found := _BRANCH.fullmatch(text):
            ran = {one: self._count(int(one.split(":")[0][5:]), self._inputs[found["input"]]) > 0 for one in options}
            return " or ".join(one for one, state in ran.items() if state == (found["verb"] == "runs"))
        if found := _RESULT.fullmatch(text):
            return result_text(LocalSubject(self._made(self._source)).observe(self._inputs[found["input"]]))
        if found := _PARAMETERS.fullmatch(text):
            return self._parameters(found)
        raise ValueError(text)

    def _made(self, source: str, see: Callable[..., Any] | None = None) -> Any:
        namespace = {**self._namespace, "see_of_the_author": see}
        exec(compile("from __future__ import annotations\n" + source, "<author>", "exec"), namespace)
        made = namespace[ast.parse(source).body[0].name]  # type: ignore[attr-defined]
        made.__name__ = self._name
        return made

    def _statement(self, line: int) -> ast.stmt:
        """Return the outermost statement that begins on a line."""
        return next(n for n in ast.walk(ast.parse(self._source)) if isinstance(n, ast.stmt) and n.lineno == line)

    def _with(self, first: int, last: int, new: list[str]) -> str:
        lines = self._source.split("\n")
        indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        return "\n".join([*lines[: first - 1], *(indent + item for item in new), *lines[last:]])

    def _value(self, found: re.Match[str]) -> str:
        seen: list[Any] = []

        def see(value: Any) -> Any:
            seen.append(describe(value, found["kind"]))
            return value

        if found["after"]:
            node = self._statement(int(found["after"]))
            lines = self._source.split("\n")[node.lineno - 1 : node.end_lineno]
            source = self._with(node.lineno, node.end_lineno or 0, [])
            text = [lines[0].strip(), *(line for line in lines[1:])]
            indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
            before = self._source.split("\n")[: node.lineno - 1]
            after = self._source.split("\n")[node.end_lineno or 0 :]
            source = "\n".join(
                [*before, indent + text[0], *text[1:], f"{indent}see_of_the_author({found['text']})", *after]
            )
        else:
            number = int(found["line"])
            line = self._source.split("\n")[number - 1]
            # In an assignment to a part of a tensor, the value stands on the right.
            places = [item.span() for item in re.finditer(rf"(?<!\w){re.escape(found['text'])}(?!\w)", line)]
            first, last = places[-1 if "] = " in line else 0]
            before, text, after = line[:first], line[first:last], line[last:]
            source = self._with(number, number, [f"{before}see_of_the_author({text}){after}".strip()])
        LocalSubject(self._made(source, see)).observe(self._inputs[found["input"]])
        return str(seen[TIMES[found["time"] or "first"]])

    def _count(self, line: int, request: Request) -> int:
        ticks: list[int] = []

        def tick(value: int) -> bool:
            ticks.append(value)
            return True

        text = self._source.split("\n")[line - 1].strip()
        if head := re.fullmatch(r"(el)?if (.*):(\s*#.*)?", text):
            new = [f"{head[1] or ''}if see_of_the_author(0) and ({head[2]}):"]
        else:
            new = ["see_of_the_author(0)", text]
        LocalSubject(self._made(self._with(line, line, new), tick)).observe(request)
        return len(ticks)

    def _changed(self, sentence: str) -> str:
        if found := re.fullmatch(r"Line (\d+), `(.*)`, is removed( with its block)?\.", sentence):
            return self._replaced(int(found[1]), "pass", whole=True)
        if found := re.fullmatch(
            r"The block under line (\d+), `(.*)`, always runs, whatever the condition\.", sentence
        ):
            return self._replaced(int(found[1]), "if True:")
        found = re.fullmatch(r"Line (\d+), `(.*)`, is changed to `(.*)`\.", sentence)
        assert found is not None, sentence
        return self._replaced(int(found[1]), found[3])

    def _changed_as_listed(self, option: str) -> str:
        if found := re.fullmatch(r"line (\d+), `(.*)`, removed", option):
            return self._replaced(int(found[1]), "pass", whole=True)
        if found := re.fullmatch(r"line (\d+), `(.*)`: its block always runs", option):
            return self._replaced(int(found[1]), "if True:")
        found = re.fullmatch(r"line (\d+): `(.*)`", option)
        assert found is not None, option
        return self._replaced(int(found[1]), found[2])

    def _replaced(self, line: int, new: str, *, whole: bool = False) -> str:
        node = self._statement(line)
        block = getattr(node, "body", None)
        last = block[0].lineno - 1 if block and not whole else node.end_lineno
        if block and not whole and block[0].lineno == line:  # a block on the line of its head
            new = f"{new} {self._source.split(chr(10))[line - 1][block[0].col_offset :]}"
        return self._with(line, max(line, last or line), [new])

    def _says(self, source: str) -> str:
        if source not in self._said:
            self._said[source] = self._verdict(LocalSubject(self._made(source)))
        return self._said[source]

    def _verdict(self, subject: LocalSubject) -> str:
        if subject.observe(self._sheet.sections[0].probes[0].requests[0]).error:
            return "its first call raises an error"
        # It stops at the first row that fails: in a later one the changed code may never end.
        failed = first_failure(self._sheet, subject)
        titles = {section.aspect: section.title for section in self._sheet.sections}
        return f"the first row that fails is “{titles[failed].rstrip('.')}”" if failed else "every row passes"

    def _parameters(self, found: re.Match[str]) -> str:
        request = next(r for text, r in self._inputs.items() if text.partition("; call:")[0] == found["input"])
        module = self._made(self._source)(**(request.init or {}))
        if found["part"].startswith("self."):
            module = getattr(module, found["part"].removeprefix("self."))
        weights = [module] if isinstance(module, Tensor) else list(module.parameters())
        return str(sum(weight.numel() for weight in weights))


def describe(value: Any, kind: str) -> str:
    """Return a value as a person writes it down."""
    if kind == "shape":
        return str(tuple(value.shape))
    return str(tuple(value)) if isinstance(value, torch.Size) else repr(value)


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
