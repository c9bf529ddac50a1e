"""What tests in several folders share."""

import gc
import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import pytest

import autograder  # noqa: F401 - first, for what it spares all that import nbformat
from autograder.course.authoring import lesson_cache

from .believed import Believer
from .pretend.own_process import ACCELERATOR, REPORTS, Elsewhere, Reporter
from .pretend.own_process import accelerator as name_of_accelerator
from .scheduling import PARTS, part_of, place_of, scheduler

# Outputs of lessons that tests have executed stay apart from those that a build shows, and all tests share them.
lesson_cache.EXECUTIONS = Path(".cache", "site-tests", "execution")

ROOT = Path(__file__).parents[1]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Let PyTorch run on one thread, which is faster for small tensors."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose tests."""
    parser.addoption(
        "--chapter", default="", metavar="NN", help="only what is about one chapter: its reference, checks and lesson"
    )
    parser.addoption("--part", choices=PARTS, help="only the files of one part: course or deep (tests/scheduling.py)")
    parser.addoption(
        "--believe", action="store_true", help="leave out what has passed and has not changed since (tests/believed.py)"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import test files that ``--chapter`` or ``--part`` leaves out."""
    part, chapter = config.getoption("--part"), config.getoption("--chapter")
    if part == "course" and part_of(collection_path) == "deep":
        return True
    if collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    left_out = (part and part_of(collection_path) != part) or (chapter and collection_path not in _files_of(chapter))
    return True if left_out else None


@cache
def _files_of(number: str) -> frozenset[Path]:
    """Return the test files about a chapter: those of the modules that its exercises are in, of its checks, and of its lesson."""
    from autograder.checks import exercises

    about = [item for item in exercises().values() if item.chapter.startswith(f"{number}_")]
    if not about:
        raise pytest.UsageError(f"--chapter {number}: the course has no exercises of such a chapter")
    modules = {item.reference.__module__.rpartition(".")[2] for item in about}
    here = Path(__file__).parent
    return frozenset(
        {
            *(here / "tfcourse" / f"test_{module}.py" for module in modules),
            *here.glob(f"chapters/test_lesson_{number}.py"),
            here / "chapters" / "test_lessons.py",
            here / "autograder" / "checks" / "test_quality.py",
            here / "autograder" / "checks" / "test_mutants.py",
        }
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have the tests marked ``cuda`` run on a pretend accelerator, in a process of their own, unless this is that process."""
    if REPORTS in os.environ:
        config.pluginmanager.register(Reporter(config, os.environ[REPORTS]))
    if ACCELERATOR not in os.environ:
        config.pluginmanager.register(Elsewhere())
    if config.getoption("--believe"):
        config.pluginmanager.register(Believer(config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Return the scheduler that shares the tests out; None leaves the choice to pytest-xdist."""
    return scheduler(config, log)


def pytest_collection_finish() -> None:
    """Spare the tests what takes seconds again and again."""
    # There are hundreds of megabytes of objects to look through, and little of them is garbage.
    gc.set_threshold(20_000)
    if (api := sys.modules.get("nbgrader.api")) is not None:
        # For each new gradebook, nbgrader starts a program that answers the same.
        api.get_alembic_version = cache(api.get_alembic_version)


@pytest.fixture(scope="session")
def shared_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if hasattr(request.config, "workerinput") else base


@pytest.fixture(scope="session")
def accelerator() -> str:
    """The device of a test marked ``cuda``: CUDA where there is one, else the pretend accelerator."""
    return name_of_accelerator()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests that are best begun with first, and leave the rest in order; with ``--chapter``, leave other chapters out."""
    if number := config.getoption("--chapter"):
        items[:] = [item for item in items if _is_about(item, number)]
    items.sort(key=lambda item: place_of(item.path))


def _is_about(item: pytest.Item, number: str) -> bool:
    """Whether a test is about a chapter: one that has an exercise or a chapter as its parameter is about that one."""
    from autograder.checks import exercises

    given = getattr(getattr(item, "callspec", None), "params", {})
    name, chapter = given.get("name"), given.get("chapter")
    if name in exercises():
        return exercises()[name].chapter.startswith(f"{number}_")
    return chapter is None or str(chapter).startswith(number)


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:  # noqa: F821 - playwright is imported where it is needed
    """Debian's chromium, driven by playwright; one process for a module.

    It ends with the module: as long as playwright runs, its thread has an event loop, and no other test there can start one.
    """
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("needs a browser, and there is no chromium here: apt-get install chromium")
    sync_api = importlib.import_module("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


def _load_command(folder: Path, name: str) -> ModuleType:
    """Load a module of a folder of commands, which is no package, and leave no module behind."""
    spec = importlib.util.spec_from_file_location(f"{folder.name}_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        for other in {spec.name, *(path.stem for path in folder.glob("*.py"))} - before:
            sys.modules.pop(other, None)
    return module


@pytest.fixture(scope="session")
def experiment() -> Callable[[str], ModuleType]:
    """Return a function that loads a module of experiments/ by name."""
    return partial(_load_command, ROOT / "experiments")


@pytest.fixture(scope="session")
def benchmark_script() -> Callable[[str], ModuleType]:
    """Return a function that loads a module of benchmarks/ by name."""
    return partial(_load_command, ROOT / "benchmarks")
