"""Question sheets in files: the same questions, answers and verdicts, and nothing else in them."""

from pathlib import Path

import pytest
import torch

from autograder.checking import recorded
from autograder.checking.recorded import check, read_sheet, write_sheet
from autograder.checking.request import Observation, Request
from autograder.checking.rows import Probe
from autograder.checking.sheet import Section, Sheet


@pytest.fixture
def path(tmp_path, sheet) -> Path:
    """The sheet of the small exercise, in a file."""
    file = tmp_path / "recordings" / "blend.safetensors"
    write_sheet(sheet, file)
    return file


@pytest.fixture
def build(path, monkeypatch) -> Path:
    """A student build that has the small exercise."""
    monkeypatch.setattr(recorded, "FOLDER", path.parent)
    recorded._load_sheet.cache_clear()
    return path.parent


def test_a_sheet_comes_back_as_it_was(sheet, path):
    back = read_sheet(path)
    assert (back.exercise, back.chapter, back.misconceptions) == (sheet.exercise, sheet.chapter, sheet.misconceptions)
    for ours, theirs in zip(back.sections, sheet.sections, strict=True):
        assert (ours.aspect, ours.title, ours.points) == (theirs.aspect, theirs.title, theirs.points)
        assert repr(ours.expected) == repr(theirs.expected)
    # To the last digit: what was read gives the same bytes again, questions, answers and mistakes.
    write_sheet(back, path.with_name("again"))
    assert path.with_name("again").read_bytes() == path.read_bytes()


def test_every_kind_of_value_survives(tmp_path):
    x = torch.tensor([[0.5, -1.25], [3.5, 2.0]])
    request = Request(
        "gradients",
        {"x": x.to(torch.bfloat16), "pair": (x.bool(), [x.long(), None, "ü", 2.5, True])},
        init={"n": 3, "bias": False},
        state={"w": x.double()},
        wrt=("x",),
    )
    seen = Observation({"output[0]": x.half(), "output['a']": (2, 2)}, mutated=("x",), operations=3, largest=4)
    failed = Observation(error="ValueError: no", unfinished=True, functions=("softmax",))
    probe = Probe((request, request), "related", {"views": [[("narrow", 0, 0, 1)], []], "claim": "c"})
    section = Section("a", "t", 0.5, [probe], [[seen, failed]], side=True)
    sheet = Sheet("e", "c", [], [section], [], lambda i: [])
    write_sheet(sheet, tmp_path / "e.safetensors")
    back = read_sheet(tmp_path / "e.safetensors").sections[0]
    assert repr(back) == repr(section)
    assert back.probes[0].requests[0].arguments["x"].dtype == torch.bfloat16
    assert isinstance(back.probes[0].options["views"][0][0], tuple)


@pytest.mark.parametrize(
    ("value", "message"),
    [(torch.empty(2, device="meta"), "meta device"), (object(), "object cannot be recorded"), (1 + 2j, "complex")],
)
def test_what_cannot_be_recorded_is_refused(tmp_path, value, message):
    sheet = Sheet("e", "c", [Probe((Request("call", {"x": value}),), "matches")], [], [], lambda i: [])
    with pytest.raises(TypeError, match=message):
        write_sheet(sheet, tmp_path / "e.safetensors")


def test_a_recording_has_no_code_of_a_solution_or_of_a_mistake(exercise, path):
    text = path.read_bytes().decode("latin-1")
    for code in (exercise.reference, *(item.implementation for item in exercise.misconceptions)):
        assert f"def {code.__name__}" not in text
        assert ".mean(" not in text
    assert "The factor of two is missing." in text, "the words for students are there"


# ------------------------------------------------------------------------------------------------ check, without reference


@pytest.mark.usefixtures("build")
def test_a_student_build_decides_like_the_live_check(exercise, verdict_on):
    for code in (exercise.reference, *(item.implementation for item in exercise.misconceptions)):

        def candidate(x, y, code=code):
            return code(x, y)

        candidate.__name__ = "blend"
        assert check(candidate).to_dict() == verdict_on(candidate).to_dict()


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("asked", [{"hidden": True}, {"seed": 1}, {"device": "cuda"}])
def test_a_student_build_says_what_it_cannot_do(exercise, asked):
    with pytest.raises(ValueError, match="visible"):
        check(exercise.reference, **asked)


def test_a_student_build_names_the_exercises_that_it_has(build):
    def unknown():
        pass

    with pytest.raises(LookupError, match=r"no exercise named 'unknown'; .* This chapter's exercises: blend"):
        check(unknown)
    for file in build.iterdir():
        file.unlink()
    with pytest.raises(LookupError, match=r"function or class\.$"):
        check(unknown)
