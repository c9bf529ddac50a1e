"""Checks without a reference: question sheets written to files, with recorded answers.

A student build carries one file per exercise: inputs, expected outputs, and what the known mistakes answer. It holds numbers and
sentences only, never code, so the diagnoses work on a student's machine and the solutions stay where they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from autograder.checking.request import Observation, Request, Value
from autograder.checking.rows import Probe
from autograder.checking.sheet import Answers, Section, Sheet, decide
from autograder.checking.subject import LocalSubject
from autograder.checking.verdict import Diagnosis, Verdict

FOLDER = Path(__file__).parent / "recordings"


def check(
    candidate: Callable[..., Any], *, hidden: bool = False, seed: int | None = None, device: str | None = None
) -> Verdict:
    """Check an implementation against the recorded answers of this student build.

    Args:
        candidate: your function or class; the exercise is found by its name.
        hidden: must be False: hidden questions are asked by the grader only.
        seed: must be None or 0: one set of questions is recorded.
        device: must be None or ``"cpu"``: that is where the answers were recorded.

    Raises:
        LookupError: if this build has no exercise of that name.
        ValueError: if more is asked for than was recorded.
    """
    if hidden or seed not in (None, 0) or device not in (None, "cpu"):
        raise ValueError(
            "a student build can check the visible questions with seed 0 on the CPU; "
            f"asked for hidden={hidden}, seed={seed}, device={device}"
        )
    name = getattr(candidate, "__name__", type(candidate).__name__)
    path = FOLDER / f"{name}.safetensors"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.safetensors"))) or "none"
        raise LookupError(f"there is no exercise named {name!r} here; this build has: {known}")
    return decide(_load(path), LocalSubject(candidate))


@cache
def _load(path: Path) -> Sheet:
    return read_sheet(path)


def write_sheet(sheet: Sheet, path: Path) -> None:
    """Write a question sheet with all its answers to a safetensors file. The same sheet gives the same bytes."""
    tensors: dict[str, Tensor] = {}
    content = {
        "exercise": sheet.exercise,
        "chapter": sheet.chapter,
        "rules": [_pack(probe, tensors) for probe in sheet.rules],
        "sections": [
            {
                "aspect": section.aspect,
                "title": section.title,
                "points": section.points,
                "side": section.side,
                "probes": [_pack(probe, tensors) for probe in section.probes],
                "expected": _pack_answers(section.expected, tensors),
            }
            for section in sheet.sections
        ],
        "misconceptions": [
            {
                "diagnosis": vars(diagnosis),
                "answers": [_pack_answers(sheet.answers_of(i, j), tensors) for j in range(len(sheet.sections))],
            }
            for i, diagnosis in enumerate(sheet.misconceptions)
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(save(tensors, metadata={"sheet": json.dumps(content)}))


def read_sheet(path: Path) -> Sheet:
    """Read a question sheet that :func:`write_sheet` wrote."""
    with safe_open(path, framework="pt") as file:
        content = json.loads(file.metadata()["sheet"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    answers = [[_unpack_answers(item, tensors) for item in m["answers"]] for m in content["misconceptions"]]
    return Sheet(
        exercise=content["exercise"],
        chapter=content["chapter"],
        rules=[_unpack_probe(probe, tensors) for probe in content["rules"]],
        sections=[
            Section(
                aspect=section["aspect"],
                title=section["title"],
                points=section["points"],
                probes=[_unpack_probe(probe, tensors) for probe in section["probes"]],
                expected=_unpack_answers(section["expected"], tensors),
                side=section["side"],
            )
            for section in content["sections"]
        ],
        misconceptions=[Diagnosis(**m["diagnosis"]) for m in content["misconceptions"]],
        ask_mistake=lambda mistake, section, probe: answers[mistake][section][probe],
    )


def _pack_answers(answers: Answers, tensors: dict[str, Tensor]) -> Value:
    return [[_pack(observation, tensors) for observation in given] for given in answers]


def _unpack_answers(packed: Sequence[Sequence[Value]], tensors: Mapping[str, Tensor]) -> Answers:
    return [[Observation(**_unpack(item, tensors)) for item in given] for given in packed]


def _unpack_probe(packed: Value, tensors: Mapping[str, Tensor]) -> Probe:
    content = _unpack(packed, tensors)
    return Probe(
        tuple(Request(**request) for request in content["requests"]), content["judge"], content.get("options", {})
    )


def _pack(value: Value, tensors: dict[str, Tensor]) -> Value:
    """Turn a value into JSON, with its tensors put aside under a name made of their content."""
    if isinstance(value, Tensor):
        if value.device.type == "meta":
            raise TypeError("a tensor on the meta device has no data to record")
        data = value.detach().cpu().contiguous().clone()
        # Most of what a mistake answers is right, and most inputs are asked about more than once: equal tensors are stored once.
        name = hashlib.sha256(
            f"{data.dtype} {tuple(data.shape)}".encode() + data.view(-1).view(torch.uint8).numpy().tobytes()
        ).hexdigest()[:16]
        tensors[name] = data
        return {"tensor": name}
    if isinstance(value, (Probe, Request, Observation)):
        return {"map": {name: _pack(item, tensors) for name, item in _said(value).items()}}
    if isinstance(value, Mapping):
        return {"map": {str(key): _pack(item, tensors) for key, item in value.items()}}
    if isinstance(value, tuple):
        return {"tuple": [_pack(item, tensors) for item in value]}
    if isinstance(value, list):
        return [_pack(item, tensors) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"a {type(value).__name__} cannot be recorded; use tensors, numbers, text, None and containers of them"
    )


def _said(value: Any) -> dict[str, Value]:
    """Return the fields that differ from their default: most observations say one thing, and there are hundreds in a file."""
    said = {}
    for field in fields(value):
        item = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if type(item) is not type(default) or item != default:
            said[field.name] = item
    return said


def _unpack(value: Value, tensors: Mapping[str, Tensor]) -> Value:
    if isinstance(value, list):
        return [_unpack(item, tensors) for item in value]
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind == "tensor":
            return tensors[content]
        if kind == "tuple":
            return tuple(_unpack(item, tensors) for item in content)
        return {key: _unpack(item, tensors) for key, item in content.items()}
    return value
