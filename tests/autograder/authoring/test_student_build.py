"""The students' package: what is in it, what is not, and how it behaves where nothing else is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import Parser
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from autograder.course.authoring.solution_notebook import source_notebook
from autograder.course.release.student_build import build_student_wheel
from autograder.errors import CourseError

FIRST, SECOND = "90_first", "91_second"

# Runs without the environment's own paths: the student's package, and the libraries that it may need.
ISOLATED = """\
import json, sys
package, libraries = sys.argv[1:3]
sys.path[:0] = [package]
sys.path.append(libraries)

class OnlyWhatIsDeclared:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        # Not what torch itself looks for, such as pandas: it wants to be told that it is not there, and to go on.
        if top in {"nbgrader", "traitlets", "IPython", "ipykernel", "jupyter_client", "jupyter_core", "jupytext", "nbformat",
                   "nbclient", "nbconvert", "click", "rich", "sqlalchemy", "num2words", "babel", "datasets"}:
            raise ImportError(f"{name} is not among what the package declares")
        return None

sys.meta_path.insert(0, OnlyWhatIsDeclared())
"""


@pytest.fixture
def wheels(small: Any, tmp_path: Path) -> dict[str, Path]:
    return {name: build_student_wheel(small.root, small.chapter(name), tmp_path / "wheels") for name in (FIRST, SECOND)}


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def run(package: Path, code: str, *arguments: str) -> dict[str, Any]:
    """Run code in a process that sees the package, torch, numpy and safetensors, and no installation of ours."""
    libraries = sysconfig.get_paths()["purelib"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ISOLATED + code, str(package), libraries, *arguments],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def installed(wheel: Path, target: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*command, "--target", str(target), str(wheel)], check=True, capture_output=True)
    return target


def test_the_wheel_is_named_and_described_as_what_it_is(small: Any, wheels: dict[str, Path], tmp_path: Path) -> None:
    wheel = wheels[FIRST]
    assert wheel.name == "tfcourse-0.4.0+ch90-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    distribution = PathDistribution(tmp_path / "unpacked" / "tfcourse-0.4.0+ch90.dist-info")
    metadata = Parser().parsestr(contents(wheel)["tfcourse-0.4.0+ch90.dist-info/METADATA"].decode())
    assert metadata["Version"] == "0.4.0+ch90"
    needed = [(line.split(">")[0], line.partition("extra == ")[2].strip('"')) for line in distribution.requires or []]
    assert sorted(name for name, extra in needed if not extra) == ["numpy", "safetensors", "torch"]
    # The package says itself how to install these.
    assert sorted((extra, name) for name, extra in needed if extra) == [
        ("corpora", "datasets"),
        ("data", "babel"),
        ("data", "num2words"),
        ("notebooks", "einops"),
    ]
    assert metadata.get_all("Provides-Extra") == ["notebooks", "data", "corpora"]
    assert {entry.group: entry.value for entry in distribution.entry_points} == {
        "console_scripts": "autograder.checking.validate:main",
        "tfcourse.checks": "autograder.checking.recorded:check",
        "tfcourse.quizzes": "autograder.quizzes.questions.with_recordings:quiz",
    }


def test_it_holds_the_engine_and_its_recordings_and_nothing_else_of_the_autograder(wheels: dict[str, Path]) -> None:
    names = {name for name in contents(wheels[FIRST]) if name.startswith("autograder/")}
    others = {name for name in names if not name.startswith(("autograder/checking/", "autograder/quizzes/questions/"))}
    operators = ("__init__", "expressions", "guards", "operators", "places", "statements")
    packages = {"autograder/__init__.py", "autograder/quizzes/__init__.py"}
    assert others == packages | {f"autograder/quizzes/mutation/{name}.py" for name in operators}
    assert "autograder/quizzes/questions/with_reference.py" not in names
    recordings = {Path(name).stem for name in names if name.endswith(".safetensors")}
    assert recordings == {"causal_mask", "masked_attention_weights"}
    later = {Path(name).stem for name in contents(wheels[SECOND]) if name.endswith(".safetensors")}
    assert later == {"causal_mask", "masked_attention_weights", "split_heads", "MultiHeadAttention"}


def test_the_quiz_asks_about_own_code_without_the_reference(wheels: dict[str, Path], tmp_path: Path) -> None:
    mine = """def masked_attention_weights(q, k, mask=None):
    scale = math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-2, -1)
    scores = scores / scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask
    return weights
"""
    asked = """
import builtins, contextlib, io, linecache, math, torch, tfcourse
linecache.cache["<cell>"] = (1, None, MINE.splitlines(keepends=True), "<cell>")
exec(compile(MINE, "<cell>", "exec"))
builtins.input = lambda prompt: "A"
shown = io.StringIO()
with contextlib.redirect_stdout(shown):
    tfcourse.quiz(masked_attention_weights, seed=1)
print(json.dumps({"shown": shown.getvalue()}))
"""
    told = run(installed(wheels[FIRST], tmp_path / "there"), f"MINE = {mine!r}\n{asked}")
    assert " right. Nothing is recorded" in told["shown"]
    assert told["shown"].count("A)  ") >= 1


def test_this_and_later_chapters_are_stubs_and_earlier_ones_whole(wheels: dict[str, Path]) -> None:
    first, second = (contents(wheels[name]) for name in (FIRST, SECOND))
    solution = b"dtype=torch.bool, device=device).tril()"
    assert solution not in first["tfcourse/attention.py"]
    assert solution in second["tfcourse/attention.py"]
    for wheel in (first, second):
        assert b"n_heads, D // n_heads" not in wheel["tfcourse/multihead.py"]
        assert b"Split the width into heads" in wheel["tfcourse/multihead.py"]
    assert first["tfcourse/attention.py"].startswith(b"# Generated by")
    assert "tfcourse/lessons/figures/__init__.py" in first
    assert "tfcourse/lessons/explorers/heads.py" in first
    assert b'__version__ = "0.4.0+ch90"' in first["tfcourse/__init__.py"]


def test_a_stub_earns_nothing_a_solution_everything_and_a_known_mistake_its_diagnosis(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    package = installed(wheels[FIRST], tmp_path / "student")
    found = run(
        package,
        """
import torch, tfcourse
from tfcourse import check
from tfcourse.attention import causal_mask as stub
assert tfcourse.__file__.startswith(package), tfcourse.__file__
untouched = check(stub)

def causal_mask(T, device=None):
    # YOUR CODE HERE
    raise NotImplementedError()
nothing = check(causal_mask)

def causal_mask(T, device=None):
    return torch.arange(T, device=device)[:, None] >= torch.arange(T, device=device)
full = check(causal_mask)

def causal_mask(T, device=None):
    return torch.arange(T, device=device)[:, None] > torch.arange(T, device=device)
mistaken = check(causal_mask)

def refused(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

print(json.dumps({
    "nothing": repr(nothing),
    "untouched": [repr(untouched), untouched.findings[0].message],
    "full": [repr(full), full.passed],
    "mistaken": [mistaken.score, [d.name for d in mistaken.diagnoses], "left out" in mistaken._repr_html_()],
    "hidden": refused(lambda: check(causal_mask, hidden=True)),
    "later": refused(lambda: check(tfcourse.multihead.split_heads) if hasattr(tfcourse, "multihead") else
                     check(__import__("tfcourse.multihead", fromlist=["x"]).split_heads)),
    "called": refused(lambda: stub(3)),
    "reference": refused(lambda: __import__("autograder.checks")),
}))
""",
    )
    assert (found["nothing"], found["untouched"][0], found["full"]) == ("0", "0", ["2", True])
    assert "notebook" in found["untouched"][1]
    assert found["mistaken"] == [0.0, ["strictly below"], True]
    raised = {name: found[name].partition(":")[0] for name in ("hidden", "later", "called", "reference")}
    assert list(raised.values()) == ["ValueError", "LookupError", "NotImplementedError", "ModuleNotFoundError"]
    assert "'split_heads'" in found["later"]
    assert "causal_mask is an exercise of chapter 90_first" in found["called"]


def test_a_later_chapter_works_without_the_earlier_one_having_been_solved(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    found = run(
        installed(wheels[SECOND], tmp_path / "student"),
        """
import torch
from tfcourse import check
from tfcourse.attention import causal_mask, masked_attention_weights
from tfcourse.multihead import MultiHeadAttention, split_heads
import tfcourse.lessons.explorers.heads, tfcourse.lessons.figures
q = torch.randn(3, 4)
weights = masked_attention_weights(q, q, causal_mask(3))

def unwritten(call):
    try:
        call()
    except NotImplementedError as error:
        return str(error)

print(json.dumps({
    "sums": weights.sum(-1).tolist(),
    "class": unwritten(lambda: MultiHeadAttention(4, 2)),
    "function": unwritten(lambda: split_heads(q, 2)),
    "points": check(MultiHeadAttention).score,
}))
""",
    )
    assert found["sums"] == pytest.approx([1, 1, 1])
    assert "MultiHeadAttention is an exercise of chapter 91_second" in found["class"]
    assert "split_heads is an exercise of chapter 91_second" in found["function"]
    assert found["points"] == 0


def test_where_no_library_spells_numbers_or_writes_dates_the_rest_works_and_the_package_says_what_to_install(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    found = run(
        installed(wheels[FIRST], tmp_path / "student"),
        """
import importlib, pkgutil
import tfcourse
from tfcourse.data import Vocabulary, batches, date_pairs, number_pairs, recorded_translation, wmt_pairs

for info in pkgutil.iter_modules(tfcourse.__path__):
    importlib.import_module(f"tfcourse.{info.name}")
pairs = [("two one", "zwei eins"), ("one", "eins")]
source, target = (Vocabulary.from_texts(pair[side] for pair in pairs) for side in (0, 1))
(batch,) = batches(pairs, source, target, batch_size=2)

def refused(call):
    try:
        call()
    except ImportError as error:
        return str(error)

print(json.dumps({
    "tokens": batch.target.tolist(),
    "recorded": len(recorded_translation()["runs"]) > 0,
    "numbers": refused(lambda: number_pairs(count=1)),
    "dates": refused(lambda: date_pairs(count=1)),
    "sentences": refused(lambda: wmt_pairs(count=1)),
}))
""",
    )
    assert found["tokens"] == [[1, 5, 4, 2], [1, 4, 2, 0]]
    assert found["recorded"] is True
    assert "pip install num2words, or pip install 'tfcourse[data]'" in found["numbers"]
    assert "pip install babel, or pip install 'tfcourse[data]'" in found["dates"]
    assert "pip install datasets, or pip install 'tfcourse[corpora]'" in found["sentences"]


def test_a_project_without_a_version_is_refused(small: Any, tmp_path: Path) -> None:
    (small.root / "pyproject.toml").unlink()
    with pytest.raises(CourseError, match="version"):
        build_student_wheel(small.root, small.chapter(), tmp_path)


def test_a_package_knows_the_site_where_the_course_has_one_and_differs_in_nothing_else(
    small: Any, wheels: dict[str, Path], tmp_path: Path
) -> None:
    plain = contents(wheels[FIRST])
    (small.root / "_config.yml").write_text("html:\n  baseurl: https://example.org/course\n", encoding="utf-8")
    wheel = build_student_wheel(small.root, small.chapter(FIRST), tmp_path / "linked")
    linked = contents(wheel)
    assert {name for name in plain if linked[name] != plain[name]} == {
        "autograder/checking/stamp.py",
        next(name for name in plain if name.endswith("/RECORD")),
    }
    told = run(
        installed(wheel, tmp_path / "there"),
        "from autograder.checking.stamp import SITE; print(json.dumps({'site': SITE}))",
    )
    assert told == {"site": "https://example.org/course/"}


def test_a_package_and_the_notebook_beside_it_say_the_same_release_of_the_checks(
    small: Any, wheels: dict[str, Path]
) -> None:
    stamp = source_notebook(small.chapter(FIRST)).metadata["tfcourse"]["checks"]
    assert stamp.startswith("0.4.0+")
    assert f'STAMP = "{stamp}"' in contents(wheels[FIRST])["autograder/checking/stamp.py"].decode()


def test_the_same_sources_give_the_same_bytes(small: Any, wheels: dict[str, Path], tmp_path: Path) -> None:
    for name, wheel in wheels.items():
        again = build_student_wheel(small.root, small.chapter(name), tmp_path / "again")
        assert again.read_bytes() == wheel.read_bytes()
