"""The execution cache follows the state of the course's package."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.authoring import lesson_cache
from autograder.authoring.lesson_cache import execution_cache_path, prune_execution_caches, source_fingerprint


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course with a package of two modules."""
    package = tmp_path / "course" / "tfcourse"
    (package / "models").mkdir(parents=True)
    (package / "attention.py").write_text("scale = 0.125\n")
    (package / "models" / "gpt.py").write_text("layers = 96\n")
    return tmp_path / "course"


def test_changing_a_module_of_the_package_changes_the_cache(root: Path) -> None:
    before = execution_cache_path(root, root / "cache")
    (root / "tfcourse" / "models" / "gpt.py").write_text("layers = 95\n")
    after = execution_cache_path(root, root / "cache")
    assert before != after
    assert before.parent == after.parent == root / "cache"


def test_the_same_sources_give_the_same_fingerprint_wherever_and_whenever_they_lie(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    root_before = source_fingerprint(root)
    root.rename(copy)
    os.utime(copy / "tfcourse" / "attention.py", (1, 1))
    assert source_fingerprint(copy) == root_before


@pytest.mark.parametrize("change", ["add", "remove", "rename"])
def test_adding_removing_or_renaming_a_module_changes_the_fingerprint(root: Path, change: str) -> None:
    before = source_fingerprint(root)
    module = root / "tfcourse" / "attention.py"
    if change == "add":
        (root / "tfcourse" / "rotary.py").write_text("")
    elif change == "remove":
        module.unlink()
    else:
        module.rename(module.with_name("attending.py"))
    assert source_fingerprint(root) != before


def test_moving_a_line_from_one_module_to_the_next_changes_the_fingerprint(root: Path) -> None:
    first, second = root / "tfcourse" / "attention.py", root / "tfcourse" / "models" / "gpt.py"
    first.write_text("a = 1\nb = 2\n")
    second.write_text("c = 3\n")
    before = source_fingerprint(root)
    first.write_text("a = 1\n")
    second.write_text("b = 2\nc = 3\n")
    assert source_fingerprint(root) != before


def test_files_that_a_lesson_cannot_import_do_not_count(root: Path) -> None:
    before = source_fingerprint(root)
    (root / "tfcourse" / "notes.txt").write_text("not code")
    (root / "README.md").write_text("not code either")
    assert source_fingerprint(root) == before


def test_another_version_of_torch_changes_the_fingerprint(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = source_fingerprint(root)
    installed = lesson_cache.version
    monkeypatch.setattr(lesson_cache, "version", lambda name: "0.0.1" if name == "torch" else installed(name))
    assert source_fingerprint(root) != before


def test_a_package_that_is_not_installed_counts_as_absent(root: Path) -> None:
    assert source_fingerprint(root, versions=["there-is-no-such-package"]) != source_fingerprint(root, versions=[])


def test_pruning_keeps_the_current_cache_and_the_most_recently_used(tmp_path: Path) -> None:
    for age, name in enumerate(["newest", "newer", "older", "oldest", "current"]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    deleted = prune_execution_caches(tmp_path, tmp_path / "current", keep=3)
    assert {path.name for path in deleted} == {"older", "oldest"}
    assert {path.name for path in tmp_path.iterdir()} == {"current", "newest", "newer"}


def test_pruning_a_cache_that_was_never_made_does_nothing(tmp_path: Path) -> None:
    assert prune_execution_caches(tmp_path / "none", tmp_path / "none" / "current") == []


def test_several_threads_may_open_one_new_cache(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def version(attempt: int) -> object:
        together.wait(timeout=10)
        return lesson_cache.open_execution_cache(tmp_path / str(attempt // 8) / "0123").get_version()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(version, range(80)))) == 1
