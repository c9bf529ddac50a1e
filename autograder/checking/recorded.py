"""Check without the reference: write and read sheets of test cases with recorded answers.

A student build carries one file per exercise: inputs, expected outputs, and what the known mistakes answer. It holds numbers and
sentences only, never code, so the diagnoses work on a student's machine and the solutions stay where they are.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from autograder.checking.called_exercises import explain_failing_dependency
from autograder.checking.decision import decide, has_right_numbers
from autograder.checking.request import Observation, Request, Value
from autograder.checking.rows import Probe
from autograder.checking.sheet import Answers, Section, Sheet
from autograder.checking.similar_names import explain_no_exercise
from autograder.checking.stamp import SITE
from autograder.checking.subject import LocalSubject
from autograder.checking.verdict import Diagnosis, Verdict

FOLDER = Path(__file__).parent / "recordings"
# A sheet begins with its exercise and its chapter, in JSON within JSON.
_CHAPTER = re.compile(rb'\\"chapter\\": \\"([^"\\]+)\\"')
_HEAD = 4096


def check(
    candidate: Callable[..., Any], *, hidden: bool = False, seed: int | None = None, device: str | None = None
) -> Verdict:
    """Check an implementation against the recorded answers of this student build.

    Args:
        candidate: your function or class; the exercise is found by its name.
        hidden: must be False: only the grader runs hidden tests.
        seed: must be None or 0: one set of tests is recorded.
        device: must be None or ``"cpu"``: that is where the answers were recorded.

    Raises:
        LookupError: if this build has no exercise of that name.
        ValueError: if an option selects tests that were not recorded.
    """
    if hidden or seed not in (None, 0) or device not in (None, "cpu"):
        raise ValueError(
            "a student build can run the visible tests with seed 0 on the CPU; "
            f"asked for hidden={hidden}, seed={seed}, device={device}"
        )
    name = getattr(candidate, "__name__", type(candidate).__name__)
    path = FOLDER / f"{name}.safetensors"
    if not path.is_file():
        chapters = {file.stem: _read_chapter(file) for file in sorted(FOLDER.glob("*.safetensors"))}
        latest = max(chapters.values(), default="")
        names = [stem for stem, chapter in chapters.items() if chapter == latest]
        raise LookupError(explain_no_exercise(candidate, names, list(chapters)))
    verdict = decide(_load_sheet(path), LocalSubject(candidate))
    note = "" if verdict.passed else explain_failing_dependency(candidate, _has_right_numbers)
    return replace(verdict, site=SITE, note=note)


def _has_right_numbers(candidate: Any) -> bool | None:
    path = FOLDER / f"{candidate.__name__}.safetensors"
    return has_right_numbers(_load_sheet(path), LocalSubject(candidate)) if path.is_file() else None


def _read_chapter(path: Path) -> str:
    """Return the chapter of a recorded sheet from its first bytes, because reading the whole file is slow."""
    with path.open("rb") as file:
        match = _CHAPTER.search(file.read(_HEAD))
    return match[1].decode() if match else ""


@cache
def _load_sheet(path: Path) -> Sheet:
    return read_sheet(path)


def write_sheet(sheet: Sheet, path: Path) -> None:
    """Write a sheet with all its answers to a safetensors file, deterministically."""
    store = _Store()
    content: dict[str, Any] = {
        "exercise": sheet.exercise,
        "chapter": sheet.chapter,
        "rules": [_pack(probe, store) for probe in sheet.rules],
        "sections": [
            {
                "aspect": section.aspect,
                "title": section.title,
                "points": section.points,
                "side": section.side,
                "probes": [_pack(probe, store) for probe in section.probes],
                "expected": _pack_answers(section.expected, store),
            }
            for section in sheet.sections
        ],
        "misconceptions": [
            {
                "diagnosis": vars(diagnosis),
                "answers": [_pack_answers(sheet.list_mistake_answers(i, j), store) for j in range(len(sheet.sections))],
            }
            for i, diagnosis in enumerate(sheet.misconceptions)
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    content["shared"] = [json.loads(text) for text in store.shared]
    path.write_bytes(save(store.tensors, metadata={"sheet": json.dumps(content)}))


def read_sheet(path: Path) -> Sheet:
    """Read a sheet that :func:`write_sheet` wrote."""
    with safe_open(path, framework="pt") as file:
        content = json.loads(file.metadata()["sheet"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    store = _Store(tensors, [json.dumps(item) for item in content["shared"]])
    answers = [[_unpack_answers(item, store) for item in m["answers"]] for m in content["misconceptions"]]
    return Sheet(
        exercise=content["exercise"],
        chapter=content["chapter"],
        rules=[_unpack_probe(probe, store) for probe in content["rules"]],
        sections=[
            Section(
                aspect=section["aspect"],
                title=section["title"],
                points=section["points"],
                probes=[_unpack_probe(probe, store) for probe in section["probes"]],
                expected=_unpack_answers(section["expected"], store),
                side=section["side"],
            )
            for section in content["sections"]
        ],
        misconceptions=[Diagnosis(**m["diagnosis"]) for m in content["misconceptions"]],
        ask_mistake=lambda mistake, section, probe: answers[mistake][section][probe],
    )


@dataclass
class _Store:
    """Stores a sheet's shared parts: tensors by content hash, and requests and observations, each packed once.

    Most answers of mistakes equal the reference's answers, and most inputs occur in several requests.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    shared: list[str] = field(default_factory=list)

    def find_index(self, packed: Value) -> int:
        """Return the index of a packed request or observation, adding it if it is new."""
        text = json.dumps(packed)
        if text not in self._indices:
            self._indices[text] = len(self.shared)
            self.shared.append(text)
        return self._indices[text]

    def get_packed(self, index: int) -> Value:
        """Return the packed value at an index."""
        return json.loads(self.shared[index])

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {}


def _pack_answers(answers: Answers, store: _Store) -> Value:
    return [[_pack(observation, store) for observation in observations] for observations in answers]


def _unpack_answers(packed: Sequence[Sequence[Value]], store: _Store) -> Answers:
    return [[Observation(**_unpack(item, store)) for item in observations] for observations in packed]


def _unpack_probe(packed: Value, store: _Store) -> Probe:
    content = _unpack(packed, store)
    return Probe(
        tuple(Request(**request) for request in content["requests"]), content["judge"], content.get("options", {})
    )


def _pack(value: Value, store: _Store) -> Value:
    """Convert a value to JSON; its tensors are stored under a hash of their content."""
    if isinstance(value, Tensor):
        if value.device.type == "meta":
            raise TypeError("a tensor on the meta device has no data to record")
        data = value.detach().cpu().contiguous().clone()
        name = hashlib.sha256(
            f"{data.dtype} {tuple(data.shape)}".encode() + data.view(-1).view(torch.uint8).numpy().tobytes()
        ).hexdigest()[:16]
        store.tensors[name] = data
        return {"tensor": name}
    if isinstance(value, (Probe, Request, Observation)):
        packed = {"map": {name: _pack(item, store) for name, item in _changed_fields(value).items()}}
        return packed if isinstance(value, Probe) else {"shared": store.find_index(packed)}
    if isinstance(value, Mapping):
        return {"map": {str(key): _pack(item, store) for key, item in value.items()}}
    if isinstance(value, tuple):
        return {"tuple": [_pack(item, store) for item in value]}
    if isinstance(value, list):
        return [_pack(item, store) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(
        f"a {type(value).__name__} cannot be recorded; use tensors, numbers, text, None and containers of them"
    )


def _changed_fields(value: Any) -> dict[str, Value]:
    """Return the fields that differ from their default, which keeps the file small."""
    changed = {}
    for part in fields(value):
        item = getattr(value, part.name)
        default = part.default if part.default_factory is MISSING else part.default_factory()
        if type(item) is not type(default) or item != default:
            changed[part.name] = item
    return changed


def _unpack(value: Value, store: _Store) -> Value:
    if isinstance(value, list):
        return [_unpack(item, store) for item in value]
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind == "tensor":
            return store.tensors[content]
        if kind == "shared":
            return _unpack(store.get_packed(content), store)
        if kind == "tuple":
            return tuple(_unpack(item, store) for item in content)
        return {key: _unpack(item, store) for key, item in content.items()}
    return value
