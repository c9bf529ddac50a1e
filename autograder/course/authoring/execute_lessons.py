"""Execute lessons in parallel.

MyST-NB executes notebooks one by one, when Sphinx reads their pages. Before Sphinx reads the first page, this module executes all lessons
without cached outputs in parallel, each in its own kernel, and writes the outputs to MyST-NB's cache. When Sphinx reads a page, the values
that its prose prints are taken from there. A lesson that fails is not cached: MyST-NB executes it again and reports the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from autograder.course.authoring.lesson_cache import lock_execution_caches, open_execution_cache
from autograder.course.authoring.printed_values import append_values_cell, count_values, fill_in_values, printed_values
from autograder.parallel import available_cores

_LOGGER = logging.getLogger(__name__)


def execute_lessons(app: Sphinx, env: BuildEnvironment, docnames: Sequence[str]) -> None:
    """Execute the uncached notebooks among the pages that Sphinx will read."""
    settings = env.mystnb_config
    if settings.execution_mode == "cache":
        execute_missing(Path(settings.execution_cache_path), _read_notebooks(env, docnames), settings.execution_timeout)


def execute_missing(
    folder: Path, lessons: Sequence[tuple[Path, Any]], timeout: float
) -> tuple[Any, dict[Path, Exception]]:
    """Execute lessons that are not cached, in as many threads as there are processors, but at least two.

    Args:
        folder: the cache, as ``execution_cache_path`` returns it.
        lessons: file and content of each.
        timeout: the seconds that a cell may take.

    Returns:
        The cache, and the error of each lesson that has failed: it is not cached.
    """
    cache, errors = open_execution_cache(folder), {}
    waiting = [(path, notebook) for path, notebook in lessons if not _is_cached(cache, notebook)]
    for path, _ in waiting:
        _LOGGER.info("%s: Executing notebook beside others", path)

    def execute(item: tuple[Path, Any]) -> Any:
        path, notebook = item
        # A kernel warns on the terminal that its sockets are not encrypted; cells' errors are in the result.
        return single_nb_execution(
            notebook,
            cwd=str(path.parent),
            allow_errors=False,
            timeout=timeout,
            meta_override=True,
            extra_arguments=["--log-level=40"],
        )

    with ThreadPoolExecutor(max(2, available_cores())) as threads:
        # The last chapters first: they take longest, and a long lesson should not start last.
        for (path, notebook), result in zip(waiting[::-1], threads.map(execute, waiting[::-1]), strict=True):
            if result.err is not None:
                errors[path] = result.err
                continue
            bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": result.time})
            with lock_execution_caches(folder.parent):
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return cache, errors


def _read_notebooks(env: BuildEnvironment, docnames: Sequence[str]) -> list[tuple[Path, Any]]:
    """Return the path and parsed content of pages that are notebooks to execute."""
    settings, notebooks = env.mystnb_config, []
    for name in docnames:
        path = Path(env.doc2path(name))
        if any(path.match(pattern) for pattern in settings.execution_excludepatterns):
            continue
        text = append_values_cell(path.read_text(encoding="utf-8"), path)
        reader = create_nb_reader(str(path), env.myst_config, settings, text)
        if reader is not None:
            notebooks.append((path, reader.read(text)))
    return notebooks


def _is_cached(cache: Any, notebook: Any) -> bool:
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return True


def print_values(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the expressions in a lesson's prose by the values that its execution printed."""
    settings = app.env.mystnb_config
    path = Path(app.env.doc2path(docname))
    reader = create_nb_reader(str(path), app.env.myst_config, settings, source[0])
    if reader is None or not count_values(source[0]):
        return
    source[0] = append_values_cell(source[0], path)
    with suppress(KeyError):  # it has failed, as MyST-NB will report
        _, executed = open_execution_cache(Path(settings.execution_cache_path)).merge_match_into_notebook(
            reader.read(source[0])
        )
        source[0] = fill_in_values(source[0], printed_values(executed))
