"""What holds for the repository as a whole: the weight of imports, docstrings, dependencies, the lock."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import autograder
import tfcourse
from autograder.course.release.student_build import RELEASED

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

IMPORT_ON_A_BARE_MACHINE = """
import sys

class NothingElse:
    wanted = ("jupyter", "nbgrader", "nbformat", "nbclient", "nbconvert", "traitlets", "IPython", "ipykernel")
    wanted += ("matplotlib", "click", "rich", "sphinx", "jupytext", "yaml", "num2words", "babel", "datasets")
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0].startswith(self.wanted):
            raise ImportError(f"{name} is not installed on a bare machine")

sys.meta_path.insert(0, NothingElse())
import importlib, pkgutil, tfcourse
for info in pkgutil.iter_modules(tfcourse.__path__):
    importlib.import_module(f"tfcourse.{info.name}")
from autograder.checks import check, exercises
import autograder.checking.recorded
verdict = check(next(iter(exercises().values())).reference)
assert verdict.passed, str(verdict)
"""


def modules(package):
    return [
        importlib.import_module(info.name) for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]


def test_package_and_checks_run_with_torch_numpy_and_safetensors_alone():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ON_A_BARE_MACHINE], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", [tfcourse, autograder], ids=lambda package: package.__name__)
def test_every_public_module_class_and_function_has_a_docstring(package):
    bare = []
    for module in [package, *modules(package)]:
        if not module.__doc__:
            bare.append(module.__name__)
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if (inspect.isfunction(value) or inspect.isclass(value)) and not inspect.getdoc(value):
                bare.append(f"{module.__name__}.{name}")
    assert not bare


def distribution(requirement):
    return re.split(r"[<>=!~\[ ;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared():
    project = PYPROJECT["project"]
    extras = [item for extra in project["optional-dependencies"].values() for item in extra]
    return {distribution(item) for item in [*project["dependencies"], *extras]}


def test_every_dependency_has_its_line_in_the_docs():
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    assert sorted(name for name in declared() if name not in text) == []


def test_the_lock_pins_every_dependency_and_names_no_registry():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {distribution(line) for line in lock.splitlines() if "==" in line}
    assert sorted(declared() - pinned) == []
    assert "://" not in lock
    assert all(
        re.match(r"[a-z0-9._-]+==[^ +]+", line) for line in lock.splitlines() if line and not line.startswith("#")
    )


def test_one_version_stands_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert PYPROJECT["project"]["version"] == tfcourse.__version__
    assert f"version: {tfcourse.__version__}" in citation


def test_the_readme_promises_commands_that_the_makefile_has():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    promised = set(re.findall(r"(?:^|`)make ([a-z]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= promised <= targets


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: GitHub's names of the headings, and MyST's labels."""
    text = page.read_text(encoding="utf-8")
    headings, labels = (
        re.findall(r"^#+ (.+?)\s*$", text, re.MULTILINE),
        re.findall(r"^\(([\w-]+)\)=", text, re.MULTILINE),
    )
    return set(labels) | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_the_documents_lead_to_files_and_headings_that_exist():
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([\w-]+))?", page.read_text(encoding="utf-8")):
            file = page.parent / target if target else page
            outside = "://" in target or target.startswith("mailto:")
            if not outside and (not file.exists() or (anchor and anchor not in anchors(file))):
                broken.append(f"{page.name}: {target}#{anchor}")
    assert not broken


def test_security_modules_say_what_they_protect_against() -> None:
    folder = ROOT / "autograder"
    modules = [path for path in (folder / "engine" / "sandbox").glob("*.py") if path.name != "__init__.py"]
    modules += [folder / "engine" / "student" / f"{name}.py" for name in ("zygote", "rpc_server", "audit", "forbidden")]
    modules += [folder / "grading" / "feedback" / f"{name}.py" for name in ("markup", "safe_notebook", "formula")]
    modules += [folder / "engine" / "transport" / "serialization.py", folder / "engine" / "checker" / "rpc_client.py"]
    modules += [folder / "course" / "release" / "leaks.py", folder / "intake" / "downloads" / "archive.py"]
    docstrings = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in modules}
    lists = ("\nProtects against:", "\nDoes not protect against:")
    assert [name for name, text in docstrings.items() if not all(heading in text for heading in lists)] == []


def test_files_in_packages_have_the_date_of_the_release():
    released = re.search(r"date-released: (\d+)-(\d+)-(\d+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert released is not None
    assert tuple(map(int, released.groups())) == RELEASED


@pytest.mark.parametrize("package", ["engine", "static_analysis"])
def test_a_test_module_is_called_after_the_module_that_it_tests(package: str) -> None:
    modules = {path.stem for path in (ROOT / "autograder" / package).rglob("*.py")} - {"__init__"}
    tests = [path.stem.removeprefix("test_") for path in (ROOT / "tests" / "autograder" / package).glob("test_*.py")]
    assert tests
    assert [name for name in tests if not any(f"{name}_".startswith(f"{module}_") for module in modules)] == []
