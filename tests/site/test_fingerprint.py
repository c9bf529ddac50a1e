"""The execution cache follows the state of the course's package."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.course.authoring import lesson_cache
from autograder.course.authoring.lesson_cache import execution_cache_path, prune_execution_caches


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course with a package of two modules."""
    for name, text in MODULES.items():
        path = tmp_path / "course" / "tfcourse" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "course"


MODULES = {"attention.py": "scale = 0.125\n", "models/gpt.py": "layers = 96\n"}
# What the modules become, and whether a lesson could tell.
CHANGES: list[tuple[dict[str, str], bool]] = [
    (MODULES | {"models/gpt.py": "layers = 95\n"}, True),
    (MODULES | {"rotary.py": ""}, True),
    ({"attention.py": MODULES["attention.py"]}, True),
    ({"attending.py": MODULES["attention.py"], "models/gpt.py": MODULES["models/gpt.py"]}, True),
    ({"attention.py": "", "models/gpt.py": "scale = 0.125\nlayers = 96\n"}, True),
    (MODULES | {"notes.txt": "not code", "../README.md": "not code either"}, False),
    (MODULES, False),
]


@pytest.mark.parametrize(("modules", "differs"), CHANGES)
def test_the_cache_changes_with_the_modules_and_not_with_where_and_when_they_lie(
    root: Path, tmp_path: Path, modules: dict[str, str], differs: bool
) -> None:
    before = execution_cache_path(root, tmp_path / "cache")
    package = tmp_path / "elsewhere" / "tfcourse"
    for name, text in modules.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
        os.utime(package / name, (1, 1))
    after = execution_cache_path(package.parent, tmp_path / "cache")
    assert (before != after) == differs
    assert before.parent == after.parent == tmp_path / "cache"


def test_another_environment_has_another_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = execution_cache_path(root, root)
    monkeypatch.setattr(lesson_cache, "environment_hash", lambda: "another version of torch")
    assert execution_cache_path(root, root) != before


def test_pruning_keeps_the_current_cache_and_the_most_recently_used(tmp_path: Path) -> None:
    for age, name in enumerate(["newest", "newer", "new", "older", "oldest", "current"]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    prune_execution_caches(tmp_path / "current")
    assert {path.name for path in tmp_path.iterdir()} == {"current", "newest", "newer", "new"}


def test_several_threads_may_open_one_new_cache(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def version(attempt: int) -> object:
        together.wait(timeout=10)
        return lesson_cache.open_execution_cache(tmp_path / str(attempt // 8) / "0123").get_version()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(version, range(80)))) == 1
